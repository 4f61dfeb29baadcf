// The files that a watch needs before its stores can be inspected. The daemon loads them at the start and at each
// reload, `check-config` to check that they can be loaded.

import Diagnostics
import HopdConfiguration
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SwiftDataReading
import SystemPackage

/// The models and mapping models of a watch, and the names that its reference store gives to tables.
package struct WatchModels: Sendable {
  /// All versions, with the mapping models between them.
  package let catalog: ModelCatalog
  /// The relationships known to name a join table of an entity with itself.
  package let naming: JoinTableNaming
  /// Remarks about the models.
  package let warnings: [HopdError]
  /// The snapshot of the files when they were read.
  package var mark: ModelsMark
  /// Models and versions that were left out because they cannot be read.
  package var unread: Set<String> {
    Set(
      catalog.bundles.flatMap(\.omissions).map { "\($0.place) \($0.message)" }
        + warnings.filter { $0.code != .modelRemark }.map { "\($0)" })
  }

  /// Reads the files that the watch names; throws the first error, with the key of the configuration.
  package static func load(_ watch: Configuration.Watch) throws(HopdError) -> WatchModels {
    let key = "watch.\(watch.name)"
    // The snapshot is taken before reading, so that changes during reading are noticed.
    let mark = ModelsMark(of: watch)
    var catalog: ModelCatalog
    do {
      catalog = try ModelCatalog.load(
        watch.models, declaredOrder: watch.versions, source: SwiftDataSourceReader())
    } catch {
      throw error.located(Place(key: "\(key).models"))
    }
    do {
      try catalog.loadMappings(watch.mappings, beside: watch.models)
    } catch {
      throw error.located(Place(key: "\(key).mappings"))
    }
    if let refusal = catalog.refusal(ofTarget: watch.target) { throw refusal.located(Place(key: "\(key).models")) }
    if let target = watch.target, !catalog.canName(target) {
      let names = catalog.versions.map(\.model.name).joined(separator: ", ")
      throw HopdError(
        .noSuchVersion, "no model of this watch has a version \"\(target)\"", at: Place(key: "\(key).target"),
        hint: "use one of: \(names)")
    }
    if let mistake = watch.unknownEntityRule(in: catalog) { throw mistake }
    return WatchModels(
      catalog: catalog, naming: try naming(of: watch, catalog: catalog),
      warnings: catalog.warnings.map { $0.located(Place(key: "\(key).models")) }, mark: mark)
  }

  /// The names of join tables that the watch gives, and those in its reference store.
  private static func naming(
    of watch: Configuration.Watch, catalog: ModelCatalog
  ) throws(HopdError) -> JoinTableNaming {
    var naming = JoinTableNaming(Set(watch.joinTables))
    guard let reference = watch.reference else { return naming }
    let place = Place(store: reference, key: "watch.\(watch.name).migration.reference")
    do {
      naming.add(
        try MigrationPlanner.naming(
          fromReference: StoreLocation(database: reference), catalog: catalog,
          target: watch.target.map { .named($0) } ?? .current
        ))
    } catch {
      throw HopdError.of(error, at: place)
    }
    return naming
  }
}

extension Configuration.Watch {
  /// The error for a rule in `invalid_rows` whose entity no version of these models has; nil if there is none.
  package func unknownEntityRule(in catalog: ModelCatalog) -> HopdError? {
    let named = migration.engine.invalidRows.byEntity.keys.sorted()
    guard let unknown = catalog.unknownEntity(among: named) else { return nil }
    return HopdError(
      .configurationInvalid,
      "`invalid_rows` of the watch \(name) has the entity \(unknown.name.printableLine), which no version of its "
        + "models has",
      at: Place(key: "watch.\(name).migration.invalid_rows.\(unknown.name)"), hint: unknown.hint)
  }
}

extension HopdError {
  /// Returns the same error with the file and line of its key in the configuration, unless it is about another file.
  package func placed(in loaded: LoadedConfiguration) -> HopdError {
    guard place.file == nil, let key = place.key else { return self }
    var copy = self
    copy.place = place.filled(from: loaded.place(of: key))
    return copy
  }

  /// Whether the cause of this failure to read a model may disappear without a change of the configuration: a file
  /// system that is not mounted yet, or a missing right.
  package var mayPass: Bool {
    [.notFound, .noPermission, .inputOutput, .noModels].contains(code)
  }
}
