// Stores with the same chain share the results computed for the first of them: names, passes, programs, views. Results
// that depend on rows must not be shared: a store with dangling references next to one without, with gaps in its keys,
// with other keys, with no rows. Each must become the same as when it is migrated alone. HOPD_SEEDS sets how many
// worlds are tried; a failure names its seed.

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
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite struct SharedJourneyTests {
  private static let count = getenv("HOPD_SEEDS").flatMap { UInt64(String(cString: $0)) } ?? 6

  /// The changes to the rows of a store; every world has one store for each.
  private enum Rows: CaseIterable {
    case sound, dangling, gaps, otherKeys, none, wrongEntity

    func change(_ connection: Connection, _ schema: StoreSchema) throws {
      for table in schema.tables {
        let name = SQLiteIdentifier.quoted(table.name)
        let references = table.columns.filter { if case .toOne = $0.role { true } else { false } }.map(\.name)
        switch self {
        case .sound: break
        case .dangling:
          for column in references.map(SQLiteIdentifier.quoted) {
            try connection.execute("UPDATE \(name) SET \(column) = 9000 + Z_PK WHERE Z_PK % 5 = 0")
          }
        case .gaps: try connection.execute("DELETE FROM \(name) WHERE Z_PK % 3 = 1")
        case .otherKeys:
          // All keys of the store are moved by the same amount, with all references to them.
          let columns = (["Z_PK"] + references).map(SQLiteIdentifier.quoted)
          try connection.execute("UPDATE \(name) SET Z_PK = -Z_PK")
          try connection.execute(
            "UPDATE \(name) SET \(columns.map { "\($0) = 700 + abs(\($0))" }.joined(separator: ", "))")
        case .none: try connection.execute("DELETE FROM \(name)")
        case .wrongEntity:
          guard let number = table.entities.compactMap({ schema.number(of: $0) }).last else { continue }
          try connection.execute("UPDATE \(name) SET Z_ENT = \(number) WHERE Z_PK % 4 = 0")
        }
      }
      for join in schema.joinTables {
        let name = SQLiteIdentifier.quoted(join.name)
        switch self {
        case .none: try connection.execute("DELETE FROM \(name)")
        case .otherKeys:
          let keys = join.columns.filter { !$0.hasPrefix("Z_FOK") }.map(SQLiteIdentifier.quoted)
          try connection.execute("UPDATE \(name) SET \(keys.map { "\($0) = 700 + \($0)" }.joined(separator: ", "))")
        default: break
        }
      }
      if self == .otherKeys { try connection.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 900 WHERE Z_MAX > 0") }
    }
  }

  private struct Tally {
    var (worlds, stores, failed, apart) = (0, 0, 0, 0)
  }

  @Test func storesOfOneJourneyShareNothingThatDependsOnRows() throws {
    var tally = Tally()
    for seed in 1...Self.count {
      guard let world = ChainWorld(seed: seed) else { continue }
      try tryWorld(world, &tally)
    }
    print(
      "\(Self.count) seeds: \(tally.worlds) worlds, \(tally.stores) stores, \(tally.failed) that cannot be migrated,"
        + " \(tally.apart) that differ from the sound one of their world")
    #expect(tally.worlds * 2 > Int(Self.count) && tally.failed * 2 < tally.stores)
    #expect(tally.apart > tally.worlds)
  }

  private func tryWorld(_ world: ChainWorld, _ tally: inout Tally) throws {
    let environment = try Workshop()
    let schema = StoreSchema(model: world.versions[0], frameworkVersion: world.framework)
    var originals: [Rows: StoreLocation] = [:]
    for rows in Rows.allCases {
      let location = StoreLocation(database: environment.folder.appending("\(rows).sqlite"))
      let files = location.externalDataDirectory
      try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: world.seed)).make(
        at: location.database, rows: 25, seed: world.seed,
        external: ExternalSamples { name, content in
          try FileManager.default.createDirectory(atPath: files.string, withIntermediateDirectories: true)
          try Data(content).write(to: URL(filePath: files.appending(name.text).string))
        })
      let connection = try Connection.ofApp(location.database)
      try SchemaTrigger.registerFunctions(on: connection)
      try rows.change(connection, schema)
      originals[rows] = location
    }
    tally.worlds += 1
    // A store is alone with a separate catalog.
    var alone: [Rows: [String]] = [:]
    for (rows, location) in originals {
      alone[rows] = try ending(of: location, in: catalog(world, environment), world, environment)
      tally.stores += 1
      if alone[rows]?.first?.hasPrefix("failure") == true { tally.failed += 1 }
    }
    tally.apart += alone.values.filter { $0 != alone[.sound] }.count
    let shared = try catalog(world, environment)
    let order = world.seed % 2 == 0 ? Rows.allCases : Rows.allCases.reversed()
    // The first one again at the end: it uses the results of all others.
    for rows in order + order.prefix(1) {
      guard let location = originals[rows], let wanted = alone[rows] else { continue }
      let found = try ending(of: location, in: shared, world, environment)
      if found != wanted {
        Issue.record("seed \(world.seed), \(rows): \(StoreContent.difference(found, wanted))")
      }
    }
  }

  private func catalog(_ world: ChainWorld, _ environment: Workshop) throws -> ModelCatalog {
    var catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: world.versions,
        currentVersionName: world.versions.last?.name)
    ])
    var texts: [FilePath] = []
    for (index, text) in world.mappings {
      texts.append(environment.folder.appending("V\(index + 1) to V\(index + 2).hopmap.toml"))
      try Data(text.utf8).write(to: URL(filePath: texts[texts.count - 1].string))
    }
    try catalog.loadMappings(texts, beside: [])
    return catalog
  }

  /// Returns the result of a copy of the store, or its error.
  private func ending(
    of original: StoreLocation, in catalog: ModelCatalog, _ world: ChainWorld, _ environment: Workshop
  ) throws -> [String] {
    let folder = environment.folder.appending("copy")
    try? FileManager.default.removeItem(atPath: folder.string)
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    let copy = StoreLocation(database: folder.appending("store.sqlite"))
    try FileManager.default.copyItem(atPath: original.database.string, toPath: copy.database.string)
    if FileManager.default.fileExists(atPath: original.supportDirectory.string) {
      try FileManager.default.copyItem(
        atPath: original.supportDirectory.string, toPath: copy.supportDirectory.string)
    }
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: copy.database), catalog: catalog, naming: world.naming,
      settings: MigrationSettings(verification: .full),
      stateDirectory: environment.folder.appending("state"), job: "0\(world.seed)")
    request.engine.altering = .never
    do {
      _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    } catch {
      return ["failure \(error.error.code): \(error.error.message)"]
        + error.error.reasons.map { "\($0.code): \($0.message) at \($0.place.entity ?? "-")" }
    }
    return try StoreContent.lines(copy)
  }
}
