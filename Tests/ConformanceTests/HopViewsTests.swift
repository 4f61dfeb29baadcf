// Hops that are only viewed: their views must show the rows of the store that the hop would write, value for value and
// storage class for storage class, even for values whose class does not match the attribute's type; and a next hop must
// give the same result from both.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import SeededRandom
import SystemPackage
import Testing

@Suite struct HopViewsTests {
  private static let count = getenv("HOPD_SEEDS").flatMap { Int(String(cString: $0)) } ?? 16

  @Test func viewsShowTheRowsOfTheStoreThatTheHopWouldWrite() throws {
    var (rows, stores) = (0, 0)
    var boundaries: [String] = []
    var present = 0
    for seed in UInt64(1)...UInt64(Self.count) {
      for isMapped in [false, true] {
        guard let world = try ViewedWorld(seed: seed, isMapped: isMapped) else { continue }
        let compared = try world.compare()
        rows += compared
        boundaries += world.boundaries
        present += world.presentColumns
        stores += compared > 0 ? 1 : 0
      }
    }
    print("\(Self.count) worlds, \(stores) hops looked at, \(rows) rows compared, \(present) columns never NULL")
    print(boundaries.joined(separator: "\n"))
    #expect(stores * 3 > Self.count)
    #expect(present > 0)
  }

  /// The workload of the benchmarks is one pass, and no statement of it scans a whole table for a range.
  @Test func theWorkloadIsOnePassOfLookupsByKey() throws {
    let world = try ViewedWorld.workload()
    let groups = try HopFusion.groups(of: world.plan, options: EngineOptions())
    #expect(groups == [HopGroup(hops: 0..<3, boundary: nil)])
    let apart = try HopFusion.groups(of: world.plan, options: EngineOptions(fusesHops: false))
    #expect(apart.map(\.hops) == [0..<1, 1..<2, 2..<3])
    #expect(apart.dropLast().allSatisfy { $0.boundary != nil })
    let connection = try world.connection()
    var space = SourceTables.schema("store")
    for hop in world.plan.hops.dropLast() {
      space = try HopViews.create(
        hop, over: space, connection: connection, options: EngineOptions(), counts: world.memory(of: connection))
    }
    let last = try #require(world.plan.hops.last)
    _ = try world.make(last, from: space, connection: connection, into: "whole.sqlite") { notes in
      for sql in notes where sql.contains("?1") {
        let lines = try connection.rows("EXPLAIN QUERY PLAN \(sql)") { $0.text(at: 3) ?? "" }
        for line in lines {
          let isSearch = line.hasPrefix("SEARCH") || line.contains("SCALAR SUBQUERY")
          #expect(isSearch && !line.contains("AUTOMATIC"), "\(line) in \(sql)")
        }
      }
    }
  }
}

/// A store with a plan of several hops.
private final class ViewedWorld {
  let environment: Workshop
  let location: StoreLocation
  let plan: MigrationPlan
  let title: String
  private(set) var boundaries: [String] = []
  private(set) var presentColumns = 0
  private var memories: [ObjectIdentifier: RowCountCache] = [:]

  private init(_ environment: Workshop, _ location: StoreLocation, _ plan: MigrationPlan, _ title: String) {
    (self.environment, self.location, self.plan, self.title) = (environment, location, plan, title)
  }

  /// Three versions of a random model, with rows; nil if there is no chain between them.
  convenience init?(seed: UInt64, isMapped: Bool) throws {
    var random = RandomModels(seed: seed)
    var versions = [random.model("V1")]
    for number in 2...3 {
      random.evolve()
      versions.append(random.model("V\(number)"))
    }
    guard Set(versions.map(\.versionHashes)).count == versions.count else { return nil }
    var catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: "V3")
    ])
    let environment = try Workshop()
    if isMapped {
      var files: [FilePath] = []
      for (before, after) in zip(versions, versions.dropFirst()) {
        guard let text = try? InferredTextMapping.text(from: before, to: after) else { return nil }
        let file = environment.folder.appending("\(before.name) to \(after.name).hopmap.toml")
        try Data(text.utf8).write(to: URL(filePath: file.string))
        files.append(file)
      }
      try catalog.loadMappings(files, beside: [])
    }
    let schema = StoreSchema(model: versions[0], frameworkVersion: 1344)
    guard schema.unsupported.isEmpty else { return nil }
    let location = StoreLocation(database: environment.folder.appending("store.sqlite"))
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: seed)).make(at: location.database, rows: 40, seed: seed)
    try Self.confuse(location, schema, seed: seed)
    guard let plan = try? Self.plan(location, catalog) else { return nil }
    self.init(environment, location, plan, "seed \(seed) \(isMapped ? "mapped" : "inferred")")
  }

  /// Returns the models and mappings of Benchmarks/Workload with some rows.
  static func workload() throws -> ViewedWorld {
    var folder = FilePath(#filePath)
    for _ in 0..<3 { folder.removeLastComponent() }
    folder.append("Benchmarks/Workload")
    var catalog = try ModelCatalog.load([folder.appending("Workload.xcdatamodeld")])
    try catalog.loadMappings([folder.appending("Mappings")], beside: [])
    let environment = try Workshop()
    let location = StoreLocation(database: environment.folder.appending("store.sqlite"))
    let version = try #require(catalog.bundles.first?.versions.first)
    try FreshStore(schema: StoreSchema(model: version, frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 1))
      .make(at: location.database, rows: 200, seed: 1)
    return ViewedWorld(environment, location, try plan(location, catalog), "workload")
  }

  private static func plan(_ location: StoreLocation, _ catalog: ModelCatalog) throws -> MigrationPlan {
    try StoreReader.withUnchangedStore(at: location) { reader in
      let found = try StoreIdentifier.identify(reader: reader, location: location, catalog: catalog)
      guard let store = found.identified else {
        throw HopdError(.internalError, "no way: \(found.state) \(String(describing: found.explanation))")
      }
      return try MigrationPlanner.plan(store: store, catalog: catalog, rules: PlanningRules(), reader: reader)
    }
  }

  /// Writes values of other classes into attributes; a file may hold them, although Core Data would never write them.
  private static func confuse(_ location: StoreLocation, _ schema: StoreSchema, seed: UInt64) throws {
    var dice = Dice(seed: seed &+ 77)
    let values = ["'x'", "'5'", "'5.0'", "7", "7.0", "2.5", "-0.0", "X'0102'", "NULL", "9007199254740993"]
    let connection = try Connection.ofApp(location.database)
    for table in schema.tables {
      for column in table.columns {
        guard case .attribute = column.role, let value = values.randomElement(using: &dice) else { continue }
        let rest = Int.random(in: 0..<7, using: &dice)
        // Required and unique values stay.
        _ = try? connection.run(
          "UPDATE \(SQLiteIdentifier.quoted(table.name)) SET \(SQLiteIdentifier.quoted(column.name)) = \(value)"
            + " WHERE Z_PK % 7 = \(rest)")
      }
    }
  }

  /// Returns the row counts of one connection's tables.
  func memory(of connection: Connection) -> RowCountCache {
    if let known = memories[ObjectIdentifier(connection)] { return known }
    let memory = RowCountCache()
    memories[ObjectIdentifier(connection)] = memory
    return memory
  }

  func connection() throws -> Connection {
    let connection = try Connection(path: ":memory:", access: .memory)
    try connection.attachUnchanged(location.database, as: "store", access: .immutable)
    return connection
  }

  /// Makes the store of a hop; `check` receives the statements while source and result exist.
  func make(
    _ hop: Hop, from space: SourceTables, connection: Connection, into name: String, isFinal: Bool = true,
    _ check: ([String]) throws -> Void = { _ in }
  ) throws -> FilePath {
    let path = environment.folder.appending(name)
    guard FileManager.default.createFile(atPath: path.string, contents: nil) else {
      throw HopdError(.inputOutput, "no file")
    }
    var options = EngineOptions()
    options.chunkRowsMax = 9
    let taker = Taker()
    let manager = MigrationManager(
      connection: connection, hop: hop, source: space, isFinal: isFinal,
      identity: Checkpoint.Identity(plan: "p", source: "s", boot: "b"), options: options, note: { taker.take($0) },
      references: ReferenceMemory(counts: memory(of: connection)))
    _ = try manager.run(into: path) { _ in true }
    // The hop's own tables no longer exist: statements on them are not checked.
    try check(Array(taker.statements).sorted().filter { !$0.contains("HOPD_") })
    return path
  }

  /// Returns the number of compared rows: those of the first hop's views, and those that the last hop makes of them.
  func compare() throws -> Int {
    let groups = try HopFusion.groups(of: plan, options: EngineOptions())
    if let boundary = groups.first?.boundary { boundaries.append("\(title): \(boundary)") }
    guard plan.hops.count == 2, groups.count == 1 else { return 0 }
    let (first, last) = (plan.hops[0], plan.hops[1])
    let (apart, fused) = (try connection(), try connection())
    var failure: HopdError?
    do {
      _ = try make(first, from: .schema("store"), connection: apart, into: "first.sqlite", isFinal: false)
    } catch let error as HopdError {
      failure = error
    }
    var space = SourceTables.schema("store")
    do {
      space = try HopViews.create(
        first, over: space, connection: fused, options: EngineOptions(), counts: memory(of: fused))
      #expect(failure == nil, "\(title): only the views can be had")
    } catch let error as HopdError {
      #expect(error.code == failure?.code, "\(title): \(error) and not \(String(describing: failure))")
      return 0
    }
    var compared = 0
    let staged = SourceTables.schema(StagedStore.schemaName(ofHop: 0))
    for (table, columns) in Self.columns(of: first.destinationSchema) {
      let expected = try rows(apart, staged.qualified(table), columns)
      let found = try rows(fused, space.qualified(table), columns)
      #expect(found == expected, "\(title): \(table)")
      compared += found.count
    }
    #expect(
      try StoreReader(connection: fused, space: space, memory: memory(of: fused)).primaryKeys()
        == StoreReader(connection: apart, space: staged).primaryKeys(), "\(title)")
    #expect(
      try StoreReader(connection: fused, space: space, memory: memory(of: fused)).metadata()
        == StoreReader(connection: apart, space: staged).metadata(), "\(title)")
    try compareCounts(of: first, StoreReader(connection: apart, space: staged), fused, space)
    var results: [[[String]]] = []
    for (connection, source, name) in [(apart, staged, "apart.sqlite"), (fused, space, "fused.sqlite")] {
      do {
        _ = try make(last, from: source, connection: connection, into: name)
        let space = SourceTables.schema(StagedStore.schemaName(ofHop: 1))
        results.append(
          try Self.columns(of: last.destinationSchema).flatMap { table, columns in
            try rows(connection, space.qualified(table), columns)
          })
      } catch let error as HopdError {
        results.append([[error.code.name]])
      }
    }
    #expect(results[0] == results[1], "\(title): the hop behind makes something else of it")
    return compared + results[0].count
  }

  /// The counts of the store determine how many rows its views have.
  private func compareCounts(
    of hop: Hop, _ staged: StoreReader, _ connection: Connection, _ views: SourceTables
  ) throws {
    let memory = RowCountCache()
    for (schema, space) in [(hop.sourceSchema, SourceTables.schema("store")), (hop.destinationSchema, views)] {
      let census = StoreCensus(
        schema: schema, reader: StoreReader(connection: connection, space: space, memory: memory))
      for table in schema.tables {
        let counts = try census.rowCounts(of: table)
        if space.isViews { #expect(try counts == staged.rowCounts(of: table.name), "\(title): \(table.name)") }
      }
    }
    // The views' counts also use counts of the store's columns, for columns that are carried.
    let below = StoreCensus(
      schema: hop.sourceSchema, reader: StoreReader(connection: connection, space: .schema("store"), memory: memory))
    for table in hop.sourceSchema.tables {
      _ = try below.values(table.columns.map { .init(column: $0.name, entities: nil) }, in: table.name)
    }
    for table in hop.destinationSchema.tables {
      for column in table.columns where views.isPresent(column.name, of: table.name, by: memory) {
        presentColumns += 1
        let nulls = try staged.connection.integer(
          "SELECT count(*) FROM \(staged.qualified(table.name)) WHERE \(SQLiteIdentifier.quoted(column.name)) IS NULL")
        #expect(nulls == 0, "\(title): \(table.name).\(column.name)")
      }
    }
  }

  private func rows(_ connection: Connection, _ table: String, _ columns: [String]) throws -> [[String]] {
    let names = columns.map(SQLiteIdentifier.quoted)
    let values = names.map { "typeof(\($0)) || ' ' || quote(\($0))" }.joined(separator: ", ")
    return try connection.rows(
      "SELECT \(values) FROM \(table) ORDER BY \(names[0]), \(names[1])"
    ) { row in columns.indices.map { row.text(at: Int32(clamping: $0)) ?? "" } }
  }

  private static func columns(of schema: StoreSchema) -> [(String, [String])] {
    schema.tables.map { ($0.name, $0.columns.map(\.name)) } + schema.joinTables.map { ($0.name, $0.columns) }
  }
}

/// Collects the statements that a hop reports.
private final class Taker {
  var statements: Set<String> = []
  func take(_ note: HopNote) { if case .statement(let sql, _, _) = note { statements.insert(sql) } }
}
