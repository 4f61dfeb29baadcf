// Small models and stores that the tests make: the tables that StoreSchema predicts, the bookkeeping, and rows by SQL.

import FoundationEssentials
import ManagedObjectModel
import OtherPrograms
import PersistentStore
import PropertyLists
import SQLite
import SystemPackage
import Testing

@testable import MigrationPlanning

func attribute(
  _ name: String, _ type: AttributeType = .string, id: String? = nil, optional: Bool = true,
  value: AttributeDefault? = nil
) -> Attribute {
  Attribute(name: name, type: type, isOptional: optional, defaultValue: value, renamingIdentifier: id)
}

func toOne(_ name: String, _ destination: String, inverse: String? = nil, id: String? = nil) -> Relationship {
  Relationship(name: name, destinationEntityName: destination, inverseName: inverse, renamingIdentifier: id)
}

func toMany(_ name: String, _ destination: String, inverse: String? = nil, id: String? = nil) -> Relationship {
  Relationship(
    name: name, destinationEntityName: destination, inverseName: inverse, isToMany: true, renamingIdentifier: id)
}

func entity(
  _ name: String, id: String? = nil, parent: String? = nil, abstract: Bool = false, unique: [[String]] = [],
  _ attributes: [Attribute] = [], _ relationships: [Relationship] = []
) -> Entity {
  Entity(
    name: name, parentName: parent, isAbstract: abstract, renamingIdentifier: id, attributes: attributes,
    relationships: relationships, uniquenessConstraints: unique)
}

/// Returns a catalog of one model whose versions are V1, V2 …, the last one current.
func catalog(_ versions: [Entity]..., name: String = "Library", current: String? = nil) -> ModelCatalog {
  ModelCatalog(bundles: [bundle(versions, name: name, current: current)])
}

func bundle(_ versions: [[Entity]], name: String, current: String? = nil) -> ModelBundle {
  ModelBundle(
    name: name, path: FilePath("/models/\(name).xcdatamodeld"),
    versions: versions.enumerated().map { ManagedObjectModel(name: "V\($0.offset + 1)", entities: $0.element) },
    currentVersionName: current ?? "V\(versions.count)")
}

/// A store in its own folder, which is removed at the end.
final class SmallStore {
  let folder: FilePath
  let location: StoreLocation
  let schema: StoreSchema

  /// Makes a store of `model` with rows by `sql`.
  init(
    _ model: ManagedObjectModel, framework: Int64 = 1344, naming: JoinTableNaming = JoinTableNaming(),
    hashes: [String: VersionHash]? = nil, metadata extra: [String: PropertyListValue] = [:], _ sql: String = ""
  ) throws {
    folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-small-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    location = StoreLocation(database: folder.appending("Small.sqlite"))
    schema = StoreSchema(model: model, frameworkVersion: framework, naming: naming)
    let connection = try Connection(path: location.database, access: .create)
    for table in schema.tables { try connection.execute(table.createStatement) }
    for join in schema.joinTables { try connection.execute(join.createStatement) }
    for index in schema.indexes { try connection.execute(index.createStatement) }
    try connection.execute(
      "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);"
        + "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);"
        + "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)")
    for (name, number) in schema.numbers {
      let parent = model.entity(named: name)?.parentName.flatMap { schema.number(of: $0) } ?? 0
      try connection.run(
        "INSERT INTO Z_PRIMARYKEY VALUES (?, ?, ?, 0)", [.integer(number), .text(name), .integer(parent)])
    }
    let values = (hashes ?? model.versionHashes).mapValues { PropertyListValue.data($0.bytes) }
    let entries: [String: PropertyListValue] = [
      "NSPersistenceFrameworkVersion": .integer(framework), "NSStoreModelVersionHashes": .dictionary(values),
      "NSStoreModelVersionHashesVersion": .integer(3), "NSStoreType": .string("SQLite"),
    ].merging(extra) { $1 }
    try connection.run(
      "INSERT INTO Z_METADATA VALUES (1, ?, ?)",
      [.text("6E3BD6E0-2D1A-4B8E-9C55-0C4E0C3B7F11"), .blob(PropertyList.encodeBinary(.dictionary(entries)))])
    // Rows first: a trigger would call functions of Core Data's process.
    try connection.execute(sql)
    for trigger in schema.triggers { try connection.execute(trigger.text) }
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  func execute(_ sql: String) throws {
    try Connection.ofApp(location.database).execute(sql)
  }

  func identify(_ catalog: ModelCatalog, _ target: TargetVersion = .current) throws -> StoreAssessment {
    try StoreIdentifier.identify(location, catalog: catalog, target: target)
  }

  func plan(
    _ catalog: ModelCatalog, _ target: TargetVersion = .current, infer: Bool = true,
    naming: JoinTableNaming = JoinTableNaming(), route: RouteRule = .progressive
  ) throws -> MigrationPlan {
    let store = try #require(try identify(catalog, target).identified)
    return try StoreReader.withUnchangedStore(at: location) { reader in
      try MigrationPlanner.plan(
        store: store, catalog: catalog, target: target,
        rules: PlanningRules(infer: infer, route: route, naming: naming),
        reader: reader)
    }
  }
}

extension ModelCatalog {
  /// Returns a version of the first model.
  func model(_ name: String) throws -> ManagedObjectModel {
    try #require(bundles.first?.version(named: name))
  }
}
