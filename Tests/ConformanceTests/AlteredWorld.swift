// A store of the first of some versions with the catalog of all, migrated to the last one by writing all rows and by
// altering a copy; and the comparisons afterwards.

import Diagnostics
import FoundationEssentials
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

private final class Folder {
  let path: FilePath

  init() throws {
    path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-altered-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: path.appending("state").string, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }
}

/// A store of the first of some versions, and the catalog of all.
final class AlteredWorld {
  private let directory: Folder
  var folder: FilePath { directory.path }
  let versions: [ManagedObjectModel]
  let location: StoreLocation
  let catalog: ModelCatalog
  let seed: UInt64

  /// Makes a store with that many rows of each entity.
  init(seed: UInt64, versions: [ManagedObjectModel], framework: Int64, rows: Int64 = 60) throws {
    self.seed = seed
    self.versions = versions
    directory = try Folder()
    catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: versions.last?.name)
    ])
    let location = StoreLocation(database: directory.path.appending("original.sqlite"))
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
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      output: folder.appending("\(name).sqlite"),
      settings: MigrationSettings(verification: .full),
      stateDirectory: folder.appending("state"), job: "0\(seed)"
    )
    request.engine.altering = alters ? .wherePossible : .never
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

  static var options: EngineOptions {
    var options = EngineOptions()
    options.altering = .wherePossible
    return options
  }

  /// Returns the program of the first hop, which alters a copy.
  func program() throws -> AlterProgram {
    let decision = try decision()
    guard case .alter(let program) = decision else {
      throw HopdError(.internalError, "no copy is altered: \(decision)")
    }
    return program
  }

  /// The decision for the first hop.
  func decision() throws -> HopDecision { try #require(try decisions().first) }

  func decisions() throws -> [HopDecision] { try AlterCompiler.decide(try plan(), options: Self.options) }

  /// Migrates by rows and on a copy; returns nil if one of them fails, which is an issue.
  func bothOrWhy(_ programs: [AlterProgram]) -> (rows: StoreLocation, copy: StoreLocation)? {
    do {
      return try both()
    } catch {
      let reported = (error as? MigrationFailure)?.error.description ?? "\(error)"
      Issue.record("seed \(seed): \(reported) \(programs.map(\.changes))")
      return nil
    }
  }

  /// Migrates by rows and on a copy.
  func both() throws -> (rows: StoreLocation, copy: StoreLocation) {
    for alters in [false, true] {
      let report = try MigrationPipeline().run(
        request(alters ? "copy" : "rows", alters: alters), stop: StopSignal()
      ) { _ in }
      #expect(report.result == .migrated, "seed \(seed)")
    }
    return (
      StoreLocation(database: folder.appending("rows.sqlite")),
      StoreLocation(database: folder.appending("copy.sqlite"))
    )
  }
}

extension StoreLocation {
  /// Returns the rows of a query, each as one text.
  func answers(_ sql: String) throws -> [String] {
    try StoreReader.withUnchangedStore(at: self) { reader in
      try reader.connection.rows(sql) { row in
        (0..<row.columnCount).map { row.value(at: $0).literal }.joined(separator: " | ")
      }
    }
  }

  /// Returns every value of every table, by the names of the columns.
  func content() throws -> [String] {
    try StoreReader.withUnchangedStore(at: self) { reader in
      try reader.schemaObjects().filter { $0.type == "table" }.map(\.name).sorted().flatMap { table in
        let columns = try reader.columns(of: table).map { SQLiteIdentifier.quoted($0.name) }.sorted()
        return try reader.connection.rows(
          "SELECT \(columns.joined(separator: ", ")) FROM \(reader.qualified(table))"
        ) { row in "\(table): " + (0..<row.columnCount).map { row.value(at: $0).literal }.joined(separator: ", ") }
        .sorted()
      }
    }
  }
}

/// Versions of a small library.
enum LibraryModels {
  static func versions(_ change: (inout [Entity]) -> Void) -> [ManagedObjectModel] {
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

  static func withRating(_ entities: inout [Entity]) {
    entities[1].attributes.append(Attribute(name: "rating", type: .integer16, defaultValue: .integer(3)))
    entities[1].attributes.append(Attribute(name: "blurb", type: .string, isOptional: true))
  }

  /// One added entity in the middle of the alphabet, an added column in one table and a removed one in another, a
  /// renamed entity, and a removed one.
  static func withShelves(_ entities: inout [Entity]) {
    withRating(&entities)
    entities[0].attributes.remove(at: 1)
    entities[2].name = "Word"
    entities[2].renamingIdentifier = "Tag"
    entities[1].relationships[1].destinationEntityName = "Word"
    entities.append(
      Entity(
        name: "Basket", attributes: [Attribute(name: "label", type: .string, isOptional: true)],
        relationships: [
          Relationship(name: "words", destinationEntityName: "Word", inverseName: "baskets", isToMany: true)
        ]))
    entities[2].relationships.append(
      Relationship(name: "baskets", destinationEntityName: "Basket", inverseName: "words", isToMany: true))
  }
}
