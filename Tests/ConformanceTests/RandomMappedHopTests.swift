// Random hops with mapping models by every path of the engine: at once, in tiny chunks, stopped at every chunk and
// resumed, with every expression evaluated object by object. All results must equal the oracle's.

import Diagnostics
import Expressions
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MappingModel
import MigrationEngine
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import MigrationPlanning

@Suite struct RandomMappedHopTests {
  private static let count = getenv("HOPD_SEEDS").flatMap { Int(String(cString: $0)) } ?? 12
  private static let first = getenv("HOPD_FIRST_SEED").flatMap { UInt64(String(cString: $0)) } ?? 1

  private enum Way: CaseIterable { case whole, tinyChunks, interrupted }

  private struct Tally {
    var compared = 0
    var refusedAtCompile = 0
    var refusedAtRows = 0
    var merged: Int64 = 0
  }

  @Test func everyPathGivesTheObjectsOfTheOracle() throws {
    var tally = Tally()
    for seed in Self.first..<(Self.first + UInt64(Self.count)) { try tryWorld(seed, &tally) }
    print(
      "\(Self.count) worlds: \(tally.refusedAtCompile) refused by name, \(tally.refusedAtRows) refused for their rows,"
        + " \(tally.compared) objects compared, \(tally.merged) merged")
    #expect(tally.compared > Self.count * 10)
    #expect(tally.refusedAtCompile * 2 < Self.count)
  }

  private func tryWorld(_ seed: UInt64, _ tally: inout Tally) throws {
    let world = RandomMappedHop(seed: seed)
    let (source, destination) = (world.source, world.destination)
    let layout = StoreSchema(model: source, frameworkVersion: 1344)
    let target = StoreSchema(model: destination, frameworkVersion: 1344)
    guard !world.mappings.isEmpty, layout.unsupported.isEmpty, target.unsupported.isEmpty else { return }
    let environment = try Workshop()
    let location = StoreLocation(database: environment.folder.appending("source.sqlite"))
    try FreshStore(schema: layout, uuid: FreshStore.uuid(seed: seed)).make(at: location.database, rows: 70, seed: seed)
    try number(location, layout)
    let oracle = MappedOracle(
      source: source, destination: destination, hop: world.hop, objects: try dump(location, model: source))
    oracle.run()
    let hop = Hop(
      index: 0, source: source, destination: destination, sourceSchema: layout, destinationSchema: target,
      mapping: world.hop.nameTrail(source: source, destination: destination), mapped: world.hop, entities: [])
    for way in Way.allCases {
      let staged = environment.folder.appending("staged-\(way).sqlite")
      let result: StagedStore
      do {
        result = try run(hop, from: location, into: staged, way)
      } catch let error as HopdError {
        if error.code == .mappingUnsupported {
          tally.refusedAtCompile += 1
          return
        }
        #expect(
          error.code == .relationshipNotUnique && (oracle.hasSeveral || oracle.isContested),
          "seed \(seed) \(way): \(error)")
        if way == .whole { tally.refusedAtRows += 1 }
        continue
      }
      #expect(!oracle.hasSeveral, "seed \(seed) \(way): a to-one got several objects without an error")
      if oracle.isContested { continue }
      let objects = try dump(StoreLocation(database: staged), model: destination)
      try compare(objects, oracle, destination, title: "seed \(seed) \(way)")
      tally.compared += objects.count
      var merged: [String: Int64] = [:]
      for (index, count) in oracle.merged where count > 0 { merged["M\(index)"] = count }
      #expect(result.tallies.merged == merged, "seed \(seed) \(way)")
      tally.merged += merged.values.reduce(0, +)
      let names = try Connection.ofApp(staged, .readOnly).integer(
        "SELECT count(*) FROM sqlite_master WHERE name LIKE 'HOPD%'")
      #expect(names == 0, "seed \(seed) \(way)")
    }
  }

  /// Writes numbers that identify objects over all tables, and few distinct values for the keys of groups.
  private func number(_ location: StoreLocation, _ layout: StoreSchema) throws {
    let connection = try Connection.ofApp(location.database)
    for (index, table) in layout.tables.enumerated() {
      try connection.execute(
        "UPDATE \(SQLiteIdentifier.quoted(table.name)) SET ZUID = Z_PK + \((index + 1) * 1000), ZFLAG = Z_PK % 3,"
          + " ZCODE = CASE Z_PK % 5 WHEN 4 THEN NULL ELSE 'c' || (Z_PK * 7 % 11) END")
    }
  }

  private func run(_ hop: Hop, from location: StoreLocation, into staged: FilePath, _ way: Way) throws -> StagedStore {
    guard FileManager.default.createFile(atPath: staged.string, contents: nil) else {
      throw HopdError(.inputOutput, "no file")
    }
    var options = EngineOptions()
    if way == .tinyChunks || way == .interrupted { options.chunkRowsMax = 11 }
    let identity = Checkpoint.Identity(plan: "p", source: "s", boot: "b")
    for _ in 0..<5000 {
      let connection = try Connection(path: ":memory:", access: .memory)
      try connection.attachUnchanged(location.database, as: "source", access: .immutable)
      let executor = HopExecutor(
        connection: connection, hop: hop, source: .schema("source"), isFinal: true, identity: identity, options: options
      )
      do {
        // Every committed chunk ends a run.
        let result = try executor.run(into: staged) { progress in way != .interrupted || progress.chunkRows == -1 }
        try executor.seal()
        return result
      } catch let error as HopdError where error.code == .interrupted {
        continue
      }
    }
    throw HopdError(.internalError, "it never ends")
  }

  private func compare(
    _ objects: [DumpedObject], _ oracle: MappedOracle, _ model: ManagedObjectModel, title: String
  ) throws {
    // Names of the oracle's objects by their identity.
    var names: [String: String] = [:]
    for (name, object) in oracle.objects { names[identity(object.attributes)] = name }
    #expect(names.count == oracle.objects.count, "\(title): the world has objects that cannot be told apart")
    var nameByID: [String: String] = [:]
    for object in objects { nameByID[object.id] = names[identity(object.attributes)] ?? "?" }
    #expect(Set(nameByID.values) == Set(oracle.objects.keys), "\(title): other objects")
    #expect(objects.count == oracle.objects.count, "\(title): count")
    for object in objects {
      guard let name = nameByID[object.id], let expected = oracle.objects[name],
        let entity = model.entity(named: object.entity)
      else { continue }
      #expect(object.entity == expected.entity, "\(title): \(name)")
      for attribute in object.attributes.keys {
        #expect(
          object.attributes[attribute] == expected.attributes[attribute] ?? .null, "\(title): \(name).\(attribute)")
      }
      for (key, relationship) in model.allRelationships(of: entity) {
        let found = ids(object.relationships[key]).map { nameByID[$0] ?? "?" }
        let wanted = expected.relationships[key] ?? []
        let agrees =
          relationship.isOrdered && expected.sequenced.contains(key)
          ? found == wanted : found.sorted() == wanted.sorted()
        #expect(agrees, "\(title): \(name).\(key) is \(found), not \(wanted)")
      }
    }
  }

  private func identity(_ attributes: [String: JSON]) -> String {
    ["via", "uid", "uid2"].map { (attributes[$0] ?? .null).description }.joined(separator: ":")
  }

  private func ids(_ value: JSON?) -> [String] {
    switch value {
    case .string(let id)?: [id]
    case .array(let ids)?: ids.compactMap { if case .string(let id) = $0 { id } else { nil } }
    default: []
    }
  }
}
