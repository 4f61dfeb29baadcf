// Options for the layout of a new store.

import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite
import SystemPackage

/// `--framework-version`, `--join-table`, `--configuration`: the layout of a new store.
struct LayoutOptions: ParsableArguments {
  @Option(
    name: .customLong("framework-version"),
    help: ArgumentHelp(
      "NSPersistenceFrameworkVersion, which determines the layout",
      discussion:
        "Versions 241 to 1526 were measured; for others hopd uses the nearest known one."
    ))
  var frameworkVersion: Int64 = 1344

  @Option(
    name: .customLong("join-table"),
    help: ArgumentHelp(
      "Relationship that names the join table of a self-referencing many-to-many; repeatable",
      valueName: "entity.relationship"))
  var joinTables: [String] = []

  @Option(help: "Model configuration whose entities the store has")
  var configuration: String?

  func validate() throws {
    if frameworkVersion < 1 { throw ValidationError("--framework-version expects a number above 0, e.g. 1344.") }
  }

  /// The model, reduced to the entities of `--configuration` if that is given.
  func part(of model: ManagedObjectModel, at path: FilePath) throws(HopdError) -> ManagedObjectModel {
    guard let configuration else { return model }
    do {
      return try model.restricted(toConfiguration: configuration)
    } catch {
      throw error.located(Place(file: path))
    }
  }

  /// The layout; throws if a part of it is unknown.
  func schema(of model: ManagedObjectModel, at path: FilePath) throws(HopdError) -> StoreSchema {
    let schema = StoreSchema(
      model: model, frameworkVersion: frameworkVersion, naming: JoinTableNaming(Set(joinTables)))
    let missing = schema.unsupported.filter { $0.code == .layoutUnsupported }
    if let first = missing.first {
      throw missing.count == 1
        ? first.located(Place(file: path))
        : HopdError(
          .layoutUnsupported, "the layout of \(missing.count) parts of \(model.name) is unknown",
          at: Place(file: path), hint: first.hint, reasons: missing)
    }
    return schema
  }

  /// Remarks on guessed or omitted parts of the layout.
  func remarks(on schema: StoreSchema, at path: FilePath) -> [HopdError] {
    schema.uncertainJoinTables.map {
      HopdError(
        .tableNameGuessed,
        "the table of this many-to-many with its own entity is named after \($0.computed) by a guess; it may be "
          + "\($0.alternative), for \($0.doubt?.words ?? "")",
        at: Place(file: path, entity: $0.entity, property: $0.computed),
        hint: "check a store that the app created, then pass --join-table \($0.entity).\($0.computed) or "
          + "\($0.entity).\($0.alternative)")
    }
      + schema.contradictedJoinTables.map {
        HopdError(
          .joinTableNameUnexpected,
          "the table of this many-to-many is named after \($0.alternative), as configured; Core Data's rule names it "
            + "after \($0.computed)", at: Place(file: path, entity: $0.entity, property: $0.alternative),
          hint: "remove --join-table, unless a store that the app created has that name")
      } + [FrameworkVersion.remark(on: schema.frameworkVersion)].compactMap(\.self)
      + schema.unsupported.filter { $0.code != .layoutUnsupported }.map { $0.located(Place(file: path)) }
  }
}

extension HopdError.Code {
  /// The name of a table cannot be computed and was guessed.
  static let tableNameGuessed = HopdError.Code("table-name-guessed", severity: .warning)
}
