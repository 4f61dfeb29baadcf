// Combined features in one store: counts, external storage and persistent history over every order of small versions. A
// chain is refused with its own reason or gives exactly the oracle's objects.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MappingModel
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

/// Makes stores of one version and migrates them to others.
final class Workshop {
  let folder: FilePath
  private var counter = 0

  init() throws {
    folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-combine-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  /// Returns a store with sample rows, some binary values in files, and history with rows.
  func store(_ model: ManagedObjectModel, rows: Int64, seed: UInt64) throws -> StoreLocation {
    counter += 1
    let location = StoreLocation(database: folder.appending("store\(counter).sqlite"))
    var schema = StoreSchema(model: model, frameworkVersion: 1344)
    var history = HistoryLayout.made(byFramework: 1344, tombstones: 1)
    history.numbers = history.numbers.map {
      PrimaryKeyEntry(number: $0.number, name: $0.name, parent: 0, highWaterMark: 40)
    }
    schema.history = history
    let files = location.externalDataDirectory
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: seed)).make(
      at: location.database, rows: rows, seed: seed,
      external: ExternalSamples { name, content in
        try FileManager.default.createDirectory(atPath: files.string, withIntermediateDirectories: true)
        try Data(content).write(to: URL(filePath: files.appending(name.text).string))
      })
    try Connection.ofApp(location.database).execute(
      "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZENTITY, ZENTITYPK, ZTRANSACTIONID) VALUES (7, 16001, 1, 1, 41);"
        + " INSERT INTO ATRANSACTION (Z_PK, Z_ENT) VALUES (41, 16002)")
    return location
  }

  func request(_ location: StoreLocation, _ catalog: ModelCatalog, output: Bool = false) -> MigrationRequest {
    MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      output: output ? folder.appending("copy of \(location.fileName)") : nil,
      settings: MigrationSettings(verification: .full),
      stateDirectory: folder.appending("state"), job: "01")
  }

  /// Runs to the end, stopped again and again if `interrupts` is true.
  func run(_ request: MigrationRequest, interrupts: Bool) throws(HopdError) -> MigrationReport {
    for _ in 0..<500 {
      let stop = StopSignal()
      var events = 0
      do {
        return try MigrationPipeline().run(request, stop: stop) { event in
          guard interrupts, case .progress = event else { return }
          events += 1
          if events == 9 { stop.stop() }
        }
      } catch {
        if interrupts, error.error.code == .interrupted { continue }
        throw error.error
      }
    }
    throw HopdError(.internalError, "it never ends")
  }
}

@Suite struct CombinationTests {
  /// Only every so many chains are tried: the more worlds HOPD_SEEDS sets, the more. A prime, so that all kinds occur.
  private static let step: UInt64 =
    switch getenv("HOPD_SEEDS").flatMap({ Int(String(cString: $0)) }) ?? 12 {
    case 100...: 1
    case 50...: 7
    default: 97
    }

  /// Errors that no user should ever read.
  private static let ours: Set<HopdError.Code> = [.internalError, .verificationFailed, .relationshipUnsupported]

  /// Returns the number of objects after the chain; nil if it is refused.
  private func tryChain(
    _ environment: Workshop, _ models: [ManagedObjectModel], seed: UInt64, rows: Int64 = 40, title: String
  ) throws -> Int? {
    guard Set(models.map(\.versionHashes)).count == models.count, let last = models.last else { return nil }
    let schema = StoreSchema(model: models[0], frameworkVersion: 1344)
    guard !schema.unsupported.contains(where: { [.layoutUnsupported, .derivationUnsupported].contains($0.code) })
    else { return nil }
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: models, currentVersionName: last.name)
    ])
    let location = try environment.store(models[0], rows: rows, seed: seed)
    var expected = try dump(location, model: models[0])
    var isInferable = true
    for (before, after) in zip(models, models.dropFirst()) {
      guard let mapping = try? MappingInference.infer(from: before, to: after) else {
        isInferable = false
        break
      }
      expected = ObjectOracle(source: before, destination: after, mapping: mapping).migrate(expected)
    }
    var request = environment.request(location, catalog, output: seed % 3 == 0)
    request.engine.chunkRowsMax = seed % 2 == 0 ? 7 : 50_000
    do {
      _ = try environment.run(request, interrupts: seed % 4 == 0 && request.output == nil)
    } catch {
      #expect(!Self.ours.contains(error.code), "\(title): \(error) \(error.reasons.map(\.message))")
      return nil
    }
    #expect(isInferable, "\(title): migrated, but the oracle cannot")
    let result = StoreLocation(database: request.output ?? location.database)
    let found = try dump(result, model: last)
    if found != expected {
      let pair = zip(found, expected).first { $0 != $1 }
      Issue.record("\(title): \(String(describing: pair?.0)) is not \(String(describing: pair?.1))")
    }
    try inspect(result, last, title: title)
    return found.count
  }

  /// Checks everything in addition to the rows.
  private func inspect(_ location: StoreLocation, _ model: ManagedObjectModel, title: String) throws {
    try StoreReader.withUnchangedStore(at: location) { reader in
      let schema = StoreSchema(model: model, frameworkVersion: 1344)
      let objects = try reader.schemaObjects()
      let triggers = Set(objects.filter { $0.type == "trigger" }.map(\.name))
      #expect(triggers == Set(schema.derivations.flatMap(\.triggers).map(\.name)), "\(title)")
      let marks = try reader.primaryKeys().filter(\.isReserved).map(\.highWaterMark)
      // The transaction that marks the migration, and its two texts.
      #expect(marks == [40, 42, 42], "\(title)")
      let changes = try reader.connection.rows(
        "SELECT c.Z_PK, ZENTITYPK, ZTRANSACTIONID, Z_NAME IS NOT NULL FROM \(reader.qualified("ACHANGE")) AS c "
          + "LEFT JOIN "
          + "\(reader.qualified("Z_PRIMARYKEY")) AS p ON p.Z_ENT = ZENTITY"
      ) { row in (0..<4).map { row.integer(at: $0) } }
      #expect(changes == [[7, 1, 41, 1]], "\(title)")
      let cache = try reader.modelCacheContent()
      #expect(cache == (try? ModelCache.content(for: schema)), "\(title)")
    }
  }

  // MARK: Counts

  private struct Counted: Hashable, CaseIterable {
    enum Kind: CaseIterable { case absent, plain, derived }
    enum Shape: CaseIterable { case oneToMany, manyToMany, oneWay }
    var kind: Kind
    var onParent: Bool
    var shape: Shape
    var renamed: Bool

    static var allCases: [Counted] {
      Kind.allCases.flatMap { kind in
        [false, true].flatMap { onParent in
          Shape.allCases.flatMap { shape in
            [false, true].map { Counted(kind: kind, onParent: onParent, shape: shape, renamed: $0) }
          }
        }
      }
    }

    func model(_ name: String) -> ManagedObjectModel {
      let (pages, pageCount) = renamed ? ("leaves", "leafCount") : ("pages", "pageCount")
      let owner = onParent ? "Book" : "Novel"
      var relationships = [
        Relationship(
          name: pages, destinationEntityName: "Page", inverseName: shape == .oneWay ? nil : "book", isToMany: true,
          renamingIdentifier: "pages")
      ]
      if shape == .oneWay { relationships[0].inverseName = nil }
      var attributes: [Attribute] = []
      switch kind {
      case .absent: break
      case .plain:
        attributes.append(
          Attribute(name: pageCount, type: .integer64, isOptional: true, renamingIdentifier: "pageCount"))
      case .derived:
        attributes.append(
          Attribute(
            name: pageCount, type: .integer64, isOptional: true, renamingIdentifier: "pageCount",
            derivationExpression: "\(pages).@count"))
      }
      let payload = Attribute(
        name: renamed ? "data" : "payload", type: .binary, isOptional: true, renamingIdentifier: "payload",
        allowsExternalStorage: kind != .plain)
      return ManagedObjectModel(
        name: name,
        entities: [
          Entity(
            name: "Book", attributes: onParent ? attributes : [], relationships: onParent ? relationships : []),
          Entity(
            name: "Novel", parentName: "Book", attributes: (onParent ? [] : attributes) + [payload],
            relationships: onParent ? [] : relationships),
          Entity(name: "Atlas", parentName: "Book"),
          Entity(
            name: "Page", attributes: [Attribute(name: "text", type: .string, isOptional: true)],
            relationships: shape == .oneWay
              ? []
              : [
                Relationship(
                  name: "book", destinationEntityName: owner, inverseName: pages, isToMany: shape == .manyToMany)
              ]),
        ])
    }
  }

  @Test func countsInEveryOrderOfSmallVersions() throws {
    let environment = try Workshop()
    var migrated = 0
    var chains = 0
    var seed: UInt64 = 0
    for first in Counted.allCases {
      for second in Counted.allCases where second != first {
        seed += 1
        guard seed % Self.step == 0 else { continue }
        chains += 1
        var models = [first.model("V1"), second.model("V2")]
        if seed % 5 == 0, let third = Counted.allCases.dropFirst(Int(seed) % 35).first {
          models.append(third.model("V3"))
        }
        if try tryChain(environment, models, seed: seed, title: "\(first) → \(second), \(seed)") != nil {
          migrated += 1
        }
      }
    }
    print("\(chains) worlds, \(migrated) migrated")
    #expect(migrated * 4 > chains)
  }

  // MARK: External storage

  private struct Stored: Hashable {
    enum Kind: CaseIterable { case absent, plain, external }
    enum Place: CaseIterable { case parent, child, both }
    var kind: Kind
    var place: Place
    var renamed: Bool
    var required: Bool

    static var all: [Stored] {
      Kind.allCases.flatMap { kind in
        Place.allCases.flatMap { place in
          [(false, false), (true, false), (false, true)].map {
            Stored(kind: kind, place: place, renamed: $0.0, required: $0.1)
          }
        }
      }
    }

    func model(_ name: String) -> ManagedObjectModel {
      let payload = Attribute(
        name: renamed ? "data" : "payload", type: .binary, isOptional: !required,
        defaultValue: required ? .binary([1, 2, 3]) : nil,
        renamingIdentifier: "payload", allowsExternalStorage: kind == .external)
      let own = kind == .absent ? [] : [payload]
      // In both siblings, each with its own column; the other one has the other storage.
      var other = payload
      other.allowsExternalStorage.toggle()
      let mark = Attribute(name: "mark", type: .integer16, isOptional: true)
      return ManagedObjectModel(
        name: name,
        entities: [
          Entity(name: "Thing", attributes: [mark] + (place == .parent ? own : [])),
          Entity(name: "Asset", parentName: "Thing", attributes: place == .parent ? [] : own),
          Entity(name: "Zebra", parentName: "Thing", attributes: place == .both && kind != .absent ? [other] : []),
        ])
    }
  }

  @Test func externalStorageInEveryOrderOfSmallVersions() throws {
    let environment = try Workshop()
    var migrated = 0
    var chains = 0
    var seed: UInt64 = 1000
    for first in Stored.all {
      for second in Stored.all where second != first {
        seed += 1
        guard seed % Self.step == 0 else { continue }
        chains += 1
        var models = [first.model("V1"), second.model("V2")]
        if seed % 3 == 0 { models.append(Stored.all[Int(seed / 3) % Stored.all.count].model("V3")) }
        if try tryChain(environment, models, seed: seed, title: "\(first) → \(second), \(seed)") != nil {
          migrated += 1
        }
      }
    }
    print("\(chains) worlds, \(migrated) migrated")
    #expect(migrated * 4 > chains)
  }
}
