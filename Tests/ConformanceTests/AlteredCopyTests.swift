// Chains on a copy of the store that is altered, against the same chains by rows: the same objects, the same schema but
// for the places of appended columns, and nothing else is ever chosen for it. HOPD_SEEDS sets how many worlds are
// tried.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreVerification
import SystemPackage
import Testing

@Suite struct AlteredCopyTests {
  private static let count = getenv("HOPD_SEEDS").flatMap { Int(String(cString: $0)) } ?? 12

  private final class Folder {
    let path: FilePath

    init() throws {
      path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-altered-\(UUID().uuidString)")
      try FileManager.default.createDirectory(atPath: path.appending("state").string, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path.string) }
  }

  /// A store of the first of some versions, and the catalog of all.
  private final class World {
    let folder: Folder
    let versions: [ManagedObjectModel]
    let location: StoreLocation
    let catalog: ModelCatalog
    let seed: UInt64

    init(seed: UInt64, versions: [ManagedObjectModel], framework: Int64, rows: Int64 = 60) throws {
      self.seed = seed
      self.versions = versions
      folder = try Folder()
      catalog = ModelCatalog(bundles: [
        ModelBundle(
          name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: versions.last?.name)
      ])
      let location = StoreLocation(database: folder.path.appending("original.sqlite"))
      self.location = location
      let samples = ExternalSamples { name, content in
        let files = location.externalDataDirectory
        try FileManager.default.createDirectory(atPath: files.string, withIntermediateDirectories: true)
        try Data(content).write(to: URL(filePath: files.appending(name.text).string))
      }
      try FreshStore(
        schema: StoreSchema(model: try #require(versions.first), frameworkVersion: framework),
        uuid: FreshStore.uuid(seed: seed)
      ).make(at: location.database, rows: rows, seed: seed, external: samples)
    }

    func edit(_ sql: String) throws {
      try Connection.ofApp(location.database).execute(sql)
    }

    func request(_ name: String, alters: Bool, chunk: Int64 = 50_000) -> MigrationRequest {
      var request = MigrationRequest(
        location: location, catalog: catalog, output: folder.path.appending("\(name).sqlite"),
        settings: MigrationSettings(verification: .full),
        stateDirectory: folder.path.appending("state"), job: "0\(seed)"
      )
      request.engine.altersCopies = alters
      request.engine.chunkRowsMax = chunk
      return request
    }

    func plan() throws -> MigrationPlan {
      try StoreReader.withUnchangedStore(at: location) { reader in
        let found = try StoreIdentifier.identify(reader: reader, location: location, catalog: catalog)
        guard let store = found.identified else { throw found.explanation ?? HopdError(.internalError, "no version") }
        return try MigrationPlanner.plan(store: store, catalog: catalog, reader: reader)
      }
    }

    func decision() throws -> AlterDecision { AlterCompiler.decide(try plan()) }

    /// By rows and on a copy.
    func both() throws -> (rows: StoreLocation, copy: StoreLocation) {
      for alters in [false, true] {
        let report = try MigrationPipeline().run(
          request(alters ? "copy" : "rows", alters: alters), stop: StopSignal()
        ) { _ in }
        #expect(report.result == .migrated, "seed \(seed)")
      }
      return (
        StoreLocation(database: folder.path.appending("rows.sqlite")),
        StoreLocation(database: folder.path.appending("copy.sqlite"))
      )
    }
  }

  private static func texts(_ location: StoreLocation, _ sql: String) throws -> [String] {
    try StoreReader.withUnchangedStore(at: location) { reader in
      try reader.connection.rows(sql) { row in
        (0..<row.columnCount).map { row.value(at: $0).literal }.joined(separator: " | ")
      }
    }
  }

  /// Every value of every table, by the names of the columns.
  private static func content(_ location: StoreLocation) throws -> [String] {
    try StoreReader.withUnchangedStore(at: location) { reader in
      try reader.schemaObjects().filter { $0.type == "table" }.map(\.name).sorted().flatMap { table in
        let columns = try reader.columns(of: table).map { SQLiteIdentifier.quoted($0.name) }.sorted()
        return try reader.connection.rows(
          "SELECT \(columns.joined(separator: ", ")) FROM \(reader.qualified(table))"
        ) { row in "\(table): " + (0..<row.columnCount).map { row.value(at: $0).literal }.joined(separator: ", ") }
        .sorted()
      }
    }
  }

  private static func versions(_ seed: UInt64) -> [ManagedObjectModel] {
    var world = RandomModels(seed: seed)
    var versions = [world.model("V1")]
    for number in 2...4 {
      world.evolveInPlace()
      versions.append(world.model("V\(number)"))
    }
    return versions
  }

  @Test func aCopyThatIsAlteredHasTheSameContent() throws {
    var altered = 0
    var columns = 0
    for seed in 1...UInt64(Self.count) {
      let versions = Self.versions(seed)
      guard Set(versions.map(\.versionHashes)).count == versions.count else { continue }
      let framework: Int64 = [977, 1044, 1344][Int(seed % 3)]
      guard StoreSchema(model: versions[0], frameworkVersion: framework).unsupported.isEmpty else { continue }
      let world = try World(seed: seed, versions: versions, framework: framework, rows: 25)
      guard case .copyAndAlter(let program) = try world.decision() else { continue }
      altered += 1
      columns += program.added.count
      let (rows, copy) = try world.both()
      #expect(try Self.content(copy) == Self.content(rows), "seed \(seed)")
      let indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name"
      #expect(try Self.texts(copy, indexes) == Self.texts(rows, indexes), "seed \(seed)")
    }
    print("\(Self.count) worlds, \(altered) altered with \(columns) columns added")
    #expect(altered * 2 > Self.count)
    #expect(columns > altered)
  }

  /// Random changes of every kind: where the copy is chosen its content is that of the rows, and no change of tables
  /// but an added column is among them.
  @Test func nothingElseIsChosen() throws {
    var decided: [String: Int] = [:]
    var refusals: [String: Int] = [:]
    for seed in 1...UInt64(Self.count * 2) {
      var random = RandomModels(seed: seed)
      let first = random.model("V1")
      random.evolve()
      let versions = [first, random.model("V2")]
      guard first.versionHashes != versions[1].versionHashes,
        StoreSchema(model: first, frameworkVersion: 1044).unsupported.isEmpty
      else { continue }
      let world = try World(seed: seed, versions: versions, framework: 1044, rows: 20)
      let decision: AlterDecision
      do { decision = try world.decision() } catch {
        refusals["\((error as? HopdError).map { "\($0.code.name): \($0.message)" } ?? "\(error)")", default: 0] += 1
        continue
      }
      let (before, after) = (
        StoreSchema(model: versions[0], frameworkVersion: 1044), StoreSchema(model: versions[1], frameworkVersion: 1044)
      )
      switch decision {
      case .chunks: decided["rows", default: 0] += 1
      case .copyAndAlter:
        decided["copy", default: 0] += 1
        #expect(before.tables.map(\.name) == after.tables.map(\.name), "seed \(seed)")
        #expect(before.joinTables.map(\.createStatement) == after.joinTables.map(\.createStatement), "seed \(seed)")
        for (old, new) in zip(before.tables, after.tables) {
          #expect(Set(old.columns.map(\.name)).isSubset(of: new.columns.map(\.name)), "seed \(seed)")
        }
        let (rows, copy) = try world.both()
        #expect(try Self.content(copy) == Self.content(rows), "seed \(seed)")
      }
    }
    print(decided, refusals)
    #expect(decided["rows", default: 0] > Self.count / 2)
  }

  // MARK: One store

  private static func library(_ change: (inout [Entity]) -> Void) -> [ManagedObjectModel] {
    var entities = [
      Entity(
        name: "Author",
        attributes: [Attribute(name: "name", type: .string), Attribute(name: "photo", type: .binary)],
        relationships: [
          Relationship(name: "books", destinationEntityName: "Book", inverseName: "author", isToMany: true)
        ]),
      Entity(
        name: "Book",
        attributes: [
          Attribute(name: "title", type: .string), Attribute(name: "year", type: .integer32, isOptional: true),
        ],
        relationships: [
          Relationship(name: "author", destinationEntityName: "Author", inverseName: "books"),
          Relationship(name: "tags", destinationEntityName: "Tag", inverseName: "books", isToMany: true),
        ]),
      Entity(
        name: "Tag", attributes: [Attribute(name: "word", type: .string)],
        relationships: [
          Relationship(name: "books", destinationEntityName: "Book", inverseName: "tags", isToMany: true)
        ]),
    ]
    let first = ManagedObjectModel(name: "V1", entities: entities)
    change(&entities)
    return [first, ManagedObjectModel(name: "V2", entities: entities)]
  }

  private static func withRating(_ entities: inout [Entity]) {
    entities[1].attributes.append(Attribute(name: "rating", type: .integer16, defaultValue: .integer(3)))
    entities[1].attributes.append(Attribute(name: "blurb", type: .string, isOptional: true))
  }

  @Test func theTextsAreThoseOfCoreDatasOwnMigration() throws {
    let world = try World(seed: 1, versions: Self.library(Self.withRating), framework: 1044)
    let (_, copy) = try world.both()
    #expect(
      try Self.texts(copy, "SELECT sql FROM sqlite_master WHERE name = 'ZBOOK'") == [
        "'CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZYEAR INTEGER, ZAUTHOR INTEGER,"
          + " ZTITLE VARCHAR , ZRATING INTEGER, ZBLURB VARCHAR)'"
      ])
    #expect(try Self.texts(copy, "SELECT DISTINCT ZRATING, ZBLURB FROM ZBOOK") == ["3 | NULL"])
    // Such a store goes on: its tables are those of an in-place migration.
    var entities = world.versions[1].entities
    entities[0].attributes.append(Attribute(name: "born", type: .date, isOptional: true))
    entities[1].attributes.append(Attribute(name: "pages", type: .integer32, isOptional: true))
    let third = ManagedObjectModel(name: "V3", entities: entities)
    let catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: world.versions + [third], currentVersionName: "V3")
    ])
    var request = world.request("third", alters: true)
    request.location = copy
    request.catalog = catalog
    let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    #expect(report.hops.map(\.chunks) == [1])
    let third3 = StoreLocation(database: try #require(request.output))
    #expect(
      try Self.texts(third3, "SELECT sql FROM sqlite_master WHERE name = 'ZBOOK'").first?.hasSuffix(
        "ZTITLE VARCHAR , ZRATING INTEGER, ZBLURB VARCHAR, ZPAGES INTEGER)'") == true)
  }

  /// Spoiled in one place at a time: a column more, less or elsewhere, a rule on a column, rows without the default.
  @Test(arguments: [
    "", "ALTER TABLE ZBOOK ADD COLUMN ZMORE INTEGER", "ALTER TABLE ZBOOK DROP COLUMN ZBLURB",
    "ALTER TABLE ZBOOK DROP COLUMN ZBLURB; ALTER TABLE ZBOOK ADD COLUMN ZBLURB VARCHAR DEFAULT 'x'",
    "ALTER TABLE ZBOOK DROP COLUMN ZRATING; ALTER TABLE ZBOOK ADD COLUMN ZRATING INTEGER; UPDATE ZBOOK SET ZRATING = 3",
    "ALTER TABLE ZTAG RENAME TO ZT; ALTER TABLE ZT RENAME TO ZTAG", "DROP INDEX ZBOOK_ZAUTHOR_INDEX",
    "CREATE INDEX mine ON ZBOOK (ZTITLE)", "UPDATE ZBOOK SET ZRATING = NULL WHERE Z_PK = 5",
    "UPDATE ZBOOK SET ZTITLE = NULL WHERE Z_PK = 5",
  ])
  func theVerifierTakesThatLayoutAndNoOther(_ edit: String) throws {
    let world = try World(seed: 6, versions: Self.library(Self.withRating), framework: 1044)
    let (rows, copy) = try world.both()
    let plan = try world.plan()
    let verifier = StoreVerifier(depth: .quick)
    if !edit.isEmpty {
      try Connection.ofApp(copy.database).execute(edit)
      #expect(throws: HopdError.self) { try verifier.verify(staged: copy.database, plan: plan, isAltered: true) }
      return
    }
    _ = try verifier.verify(staged: copy.database, plan: plan, isAltered: true)
    _ = try verifier.verify(staged: rows.database, plan: plan)
    #expect(throws: HopdError.self) { try verifier.verify(staged: copy.database, plan: plan) }
    #expect(throws: HopdError.self) { try verifier.verify(staged: rows.database, plan: plan, isAltered: true) }
  }

  /// What would not come out of a copy as it comes out of rows, each with a word of the reason.
  @Test(arguments: [
    ("CREATE TRIGGER mine AFTER UPDATE ON ZBOOK BEGIN SELECT 1; END", "trigger"), ("ANALYZE", "sqlite_stat1"),
    ("ALTER TABLE ZBOOK ADD COLUMN ZEXTRA INTEGER", "another text"),
    ("ALTER TABLE ZBOOK RENAME COLUMN ZYEAR TO ZOLD; ALTER TABLE ZBOOK ADD COLUMN ZYEAR VARCHAR", "another text"),
    (
      "DROP TABLE ZTAG; CREATE TABLE ZTAG ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZWORD VARCHAR"
        + " DEFAULT 'x' )", "another text"
    ),
    ("CREATE TABLE Zwaste (x); INSERT INTO Zwaste VALUES (zeroblob(900000)); DROP TABLE Zwaste", "free"),
  ])
  func otherFilesGoByRows(_ edit: String, _ reason: String) throws {
    let world = try World(seed: 2, versions: Self.library(Self.withRating), framework: 1044)
    guard case .copyAndAlter = try world.decision() else {
      Issue.record("not chosen as it is")
      return
    }
    try world.edit(edit)
    guard let decision = try? world.decision() else { return }
    guard case .chunks(let told) = decision else {
      Issue.record("chosen after \(edit)")
      return
    }
    #expect(told.contains(reason), "\(told)")
  }

  @Test func oldFrameworksGoByRowsUnlessNoTableChanges() throws {
    for (framework, isChosen) in [(Int64(866), false), (977, true)] {
      let world = try World(seed: 3, versions: Self.library(Self.withRating), framework: framework, rows: 25)
      guard case .copyAndAlter = try world.decision() else {
        #expect(!isChosen)
        continue
      }
      #expect(isChosen)
    }
    let world = try World(
      seed: 3, versions: Self.library { $0[1].attributes[0].versionHashModifier = "again" }, framework: 641)
    guard case .copyAndAlter(let program) = try world.decision() else {
      Issue.record("not chosen where only a hash changes")
      return
    }
    #expect(program.summary == "no table changes")
    let (rows, copy) = try world.both()
    #expect(try Self.content(copy) == Self.content(rows))
  }

  /// Pairs without an end are no pairs; hand-written SQL can leave them.
  @Test func pairsWithoutAnEndStayBehind() throws {
    let world = try World(seed: 4, versions: Self.library(Self.withRating), framework: 1044)
    let join = try #require(
      StoreSchema(model: world.versions[0], frameworkVersion: 1044).joinTables.first)
    try world.edit(
      "INSERT INTO \(join.name) VALUES (NULL, 1); INSERT INTO \(join.name) VALUES (2, NULL);"
        + " INSERT INTO \(join.name) VALUES (NULL, NULL)")
    let (rows, copy) = try world.both()
    #expect(try Self.content(copy) == Self.content(rows))
  }

  /// Stopped at every step, killed after the copy, and left by the other way of running the plan.
  @Test func itGoesOnWhereItWasStopped() throws {
    let world = try World(seed: 5, versions: Self.library(Self.withRating), framework: 1044, rows: 300)
    let (rows, _) = try world.both()
    let place = StoreLocation(database: world.folder.path.appending("place.sqlite"))
    try FileManager.default.copyItem(atPath: world.location.database.string, toPath: place.database.string)
    var request = world.request("unused", alters: true, chunk: 20)
    request.location = place
    request.output = nil
    var runs = 0
    var resumed = 0
    while true {
      runs += 1
      try #require(runs < 200)
      let stop = StopSignal()
      // The first run leaves a store that is filled by rows.
      request.engine.altersCopies = runs > 1
      do {
        let report = try MigrationPipeline().run(request, stop: stop) { event in
          if case .progress = event { stop.stop() }
          if case .resumed = event { resumed += 1 }
        }
        #expect(report.wasResumed)
        break
      } catch {
        guard error.error.code == .interrupted else { throw error }
      }
    }
    #expect(runs > 10)
    #expect(resumed > 8)
    #expect(try Self.content(place) == Self.content(rows))
  }
}
