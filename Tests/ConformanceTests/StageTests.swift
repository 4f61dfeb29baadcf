// Chains with stages. Hooks that change nothing, or set every value to itself, give the store that the chain gives
// without them, for all models, over inferred hops and mapping models, in one run or stopped at every progress. Changes
// by hooks are in the store exactly once. HOPD_SEEDS sets how many worlds are tried, HOPD_FIRST_SEED the first.

import BlockingTests
import Diagnostics
import FoundationEssentials
import Glibc
import LocalPolicies
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import MigrationPolicy
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite(.blocking) struct StageTests {
  private static let count = getenv("HOPD_SEEDS").flatMap { UInt64(String(cString: $0)) } ?? 8
  private static let first = getenv("HOPD_FIRST_SEED").flatMap { UInt64(String(cString: $0)) } ?? 1

  // MARK: Hooks

  /// Changes nothing.
  private final class Idle: CustomMigrationStage {
    override func willMigrate(_ stage: StageDescription, manager: MigrationPolicy.MigrationManager) throws {}
    override func didMigrate(_ stage: StageDescription, manager: MigrationPolicy.MigrationManager) throws {}
  }

  /// Sets every value of every object to itself.
  private final class Rewriter: CustomMigrationStage {
    override func willMigrate(_ stage: StageDescription, manager: MigrationPolicy.MigrationManager) throws {
      try rewrite(manager)
    }
    override func didMigrate(_ stage: StageDescription, manager: MigrationPolicy.MigrationManager) throws {
      try rewrite(manager)
    }

    private func rewrite(_ manager: MigrationPolicy.MigrationManager) throws {
      for name in manager.rootEntityNames {
        try manager.forEach(name) { object in
          for key in object.attributeNames { try object.setValue(object.value(forKey: key), forKey: key) }
          for key in object.relationshipNames { try object.setValue(object.value(forKey: key), forKey: key) }
        }
      }
    }
  }

  // MARK: Worlds

  /// Positions in an order are counted anew if a mapping model carries them.
  private func lines(_ location: StoreLocation) throws -> [String] {
    try StoreContent.lines(location).map { line in
      line.split(separator: "|", omittingEmptySubsequences: false).filter { !$0.hasPrefix("Z_FOK_") }
        .joined(separator: "|")
    }
  }

  private enum Way: CaseIterable { case without, idle, rewriting, interrupted }

  @Test func hooksThatChangeNothingLeaveTheResultAsItIs() throws {
    var (worlds, objects) = (0, 0)
    for seed in Self.first..<(Self.first + Self.count) {
      guard let world = ChainWorld(seed: seed) else { continue }
      let environment = try Workshop()
      var results: [(way: Way, objects: [DumpedObject])] = []
      var contents: [[String]] = []
      for way in Way.allCases {
        guard let found = try run(world, way, environment) else { break }
        results.append((way, found))
        contents.append(try lines(StoreLocation(database: environment.folder.appending("\(way)/store.sqlite"))))
      }
      guard results.first != nil else { continue }
      #expect(results.count == Way.allCases.count, "seed \(seed): migrates without stages only")
      worlds += 1
      if contents.count > 1, contents[0] != contents[1] {
        Issue.record("seed \(seed): \(StoreContent.difference(contents[1], contents[0]))")
      }
      for (way, found) in results.dropFirst() {
        #expect(found.count == results[0].objects.count, "seed \(seed), \(way)")
        for (object, wanted) in zip(found, results[0].objects) where object != wanted {
          Issue.record("seed \(seed), \(way): \(object) is not \(wanted)")
          break
        }
        objects += found.count
      }
    }
    print("\(worlds) worlds, \(objects) objects compared")
    #expect(worlds * 2 > Int(Self.count) && objects > 200)
  }

  private func run(_ world: ChainWorld, _ way: Way, _ environment: Workshop) throws -> [DumpedObject]? {
    let folder = environment.folder.appending("\(way)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    let location = StoreLocation(database: folder.appending("store.sqlite"))
    let files = location.externalDataDirectory
    try FreshStore(
      schema: StoreSchema(model: world.versions[0], frameworkVersion: world.framework),
      uuid: FreshStore.uuid(seed: world.seed)
    ).make(
      at: location.database, rows: 60, seed: world.seed,
      external: ExternalSamples { name, content in
        try FileManager.default.createDirectory(atPath: files.string, withIntermediateDirectories: true)
        try Data(content).write(to: URL(filePath: files.appending(name.text).string))
      })
    var paths: [FilePath] = []
    func write(_ name: String, _ text: String) throws {
      paths.append(folder.appending(name))
      try Data(text.utf8).write(to: URL(filePath: folder.appending(name).string))
    }
    for (index, text) in world.mappings { try write("V\(index + 1) to V\(index + 2).hopmap.toml", text) }
    if way != .without {
      let program = way == .rewriting ? "Rewriter" : "Idle"
      try write(
        "World.hopstages.toml",
        (1..<world.versions.count).map { index in
          "[[stage]]\nfrom = \"V\(index)\"\nto = \"V\(index + 1)\"\nwill_migrate = \"\(program)\"\n"
            + "did_migrate = \"\(program)\"\n"
        }.joined())
    }
    var catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: world.versions,
        currentVersionName: world.versions.last?.name)
    ])
    try catalog.loadMappings(paths, beside: [])
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog, naming: world.naming,
      settings: MigrationSettings(verification: .full),
      stateDirectory: environment.folder.appending("state"), job: "0\(world.seed)")
    request.policies = { _, _ in LocalPolicies(stages: ["Idle": Idle.self, "Rewriter": Rewriter.self]) }
    // A stage writes all rows, so the columns are in another order than in an altered file.
    request.engine.altering = .never
    if way == .interrupted { request.engine.chunkRowsMax = 17 }
    do {
      let report = try finish(request, interrupting: way == .interrupted, haste: true)
      let hops = world.versions.count - 1
      if way != .interrupted { #expect(report.hops.count == (way == .without ? hops : hops * 3)) }
    } catch {
      // Chains that fail without hooks do not matter to this test; but hooks must not be the reason.
      if way != .without { Issue.record("seed \(world.seed), \(way): \(error.error)") }
      return nil
    }
    return try dump(location, model: world.versions[world.versions.count - 1])
  }

  /// Runs to the end; `interrupting` stops it again and again, at each progress or, with `haste`, at ever later ones.
  private func finish(
    _ request: MigrationRequest, interrupting: Bool, haste: Bool = false
  ) throws(MigrationFailure) -> MigrationReport {
    var patience = 0
    while true {
      patience += haste ? 1 + patience / 2 : 1
      let stop = StopSignal()
      var events = 0
      do {
        return try MigrationPipeline().run(request, stop: stop) { event in
          guard interrupting, case .progress = event else { return }
          events += 1
          if events == patience { stop.stop() }
        }
      } catch  where error.error.code == .interrupted {
        continue
      }
    }
  }

  // MARK: Changes

  /// Counts rows of a table, and marks every item; a second run over the same rows would show.
  private final class Marker: CustomMigrationStage {
    override func willMigrate(_ stage: StageDescription, manager: MigrationPolicy.MigrationManager) throws {
      var count: Int64 = 0
      try manager.forEach("Item") { item in
        count += 1
        let mark = try item.string(forKey: "mark") ?? ""
        try item.setValue(.string(mark + "w"), forKey: "mark")
        if count.isMultiple(of: 10) { try manager.delete(item) }
      }
      let seen = manager.table("seen")
      try seen.setValue(.integer(count), for: .string(stage.sourceVersion))
      try manager.insertNewObject(forEntityName: "Item").setValue(.string("new"), forKey: "mark")
    }

    override func didMigrate(_ stage: StageDescription, manager: MigrationPolicy.MigrationManager) throws {
      let seen = try manager.table("seen").value(for: .string(stage.sourceVersion))
      guard case .integer(let count) = seen else { throw PolicyError("willMigrate has left nothing") }
      try manager.forEach("Item") { item in
        let mark = try item.string(forKey: "mark") ?? ""
        try item.setValue(.string("\(mark)d\(count)"), forKey: "mark")
      }
    }
  }

  @Test(arguments: [false, true]) func hooksRunOnceAndKnowWhatTheyRemember(_ interrupting: Bool) throws {
    let environment = try Workshop()
    let versions = (1...3).map { number in
      ManagedObjectModel(
        name: "V\(number)",
        entities: [
          Entity(
            name: "Item",
            attributes: [Attribute(name: "mark", type: .string, isOptional: true)]
              + (2...3).filter { $0 <= number }.map {
                Attribute(name: "more\($0)", type: .integer16, isOptional: true)
              })
        ])
    }
    let location = StoreLocation(database: environment.folder.appending("store.sqlite"))
    try FreshStore(schema: StoreSchema(model: versions[0], frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 1))
      .make(at: location.database, rows: 0, seed: 1)
    try Connection.ofApp(location.database).execute(
      "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 1200)"
        + " INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZMARK) SELECT v, 1, 1, 'm' FROM n;"
        + " UPDATE Z_PRIMARYKEY SET Z_MAX = 1200")
    let path = environment.folder.appending("Items.hopstages.toml")
    try Data(
      """
      [[stage]]
      from = "V1"
      to = "V2"
      will_migrate = "Marker"
      did_migrate = "Marker"
      [[stage]]
      from = "V2"
      to = "V3"
      will_migrate = "Marker"
      did_migrate = "Marker"
      """.utf8
    ).write(to: URL(filePath: path.string))
    var catalog = ModelCatalog(bundles: [
      ModelBundle(name: "Items", path: "/Items.xcdatamodeld", versions: versions, currentVersionName: "V3")
    ])
    try catalog.loadMappings([path], beside: [])
    var request = environment.request(location, catalog)
    request.policies = { _, _ in LocalPolicies(stages: ["Marker": Marker.self]) }
    request.engine.chunkRowsMax = 100
    _ = try finish(request, interrupting: interrupting)
    // 1200 items and 120 of them deleted, then one more, of 1081 again 108.
    let connection = try Connection.ofApp(location.database)
    let marks = try connection.rows("SELECT ZMARK, count(*), max(Z_PK) FROM ZITEM GROUP BY 1 ORDER BY 1") { row in
      "\(row.text(at: 0) ?? "") \(row.integer(at: 1)) \(row.integer(at: 2))"
    }
    #expect(marks == ["mwd1200wd1081 972 1198", "newd1081 1 1202", "newd1200wd1081 1 1201"])
    #expect(try connection.rows("SELECT Z_MAX FROM Z_PRIMARYKEY") { $0.integer(at: 0) } == [1202])
    #expect(try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'HOPD%'") == 0)
  }
}
