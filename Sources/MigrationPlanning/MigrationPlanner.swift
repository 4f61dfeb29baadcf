// The planner: from an identified store to the whole migration path, or to every reason why it cannot be made. All
// models, mappings and layouts are ready and all rows are checked before a byte is written anywhere.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

/// Makes plans.
package enum MigrationPlanner {
  /// The plan that brings `store` to `target`; it has no hops when the store is there already.
  ///
  /// `reader` reads the store, unchanged or under the migration's lock. Throws `no-route`, or a refusal with every
  /// reason: layout, tables, rows.
  package static func plan(
    store: IdentifiedStore, catalog: ModelCatalog, target: TargetVersion = .current,
    rules: PlanningRules = PlanningRules(), reader: StoreReader
  ) throws -> MigrationPlan {
    do {
      return try possiblePlan(store, catalog, target, rules, reader)
    } catch let error as HopdError {
      throw error.located(Place(store: store.location.database))
    } catch let error as SQLiteError {
      throw StoreReader.explained(error, location: store.location)
    }
  }

  /// The names of self many-to-many tables in a store that the app made at the wanted version.
  package static func naming(
    fromReference reference: StoreLocation, catalog: ModelCatalog, target: TargetVersion = .current
  ) throws -> JoinTableNaming {
    try StoreReader.withUnchangedStore(at: reference) { reader in
      let found = try StoreIdentifier.identify(reader: reader, location: reference, catalog: catalog, target: target)
      guard found.state == .current, let wanted = found.target, let metadata = found.metadata else {
        throw HopdError(
          .referenceMismatch,
          "the reference store has \(found.version.map { "version \($0.model.name)" } ?? "an unknown version"), not "
            + (found.target?.model.name ?? "the wanted one"),
          at: Place(store: reference.database),
          hint: "give a store that the app made with the version to reach",
          reasons: found.explanation.map { [$0] } ?? [])
      }
      return try reader.joinTableNaming(for: wanted.model, frameworkVersion: metadata.frameworkVersion)
    }
  }

  /// The plan by the first route that the rows allow: where they forbid an inferred hop, a way round it is tried.
  private static func possiblePlan(
    _ store: IdentifiedStore, _ catalog: ModelCatalog, _ target: TargetVersion, _ rules: PlanningRules,
    _ reader: StoreReader
  ) throws -> MigrationPlan {
    var routing = rules.routing
    var first: HopdError?
    while true {
      do {
        var attempt = try PlanAttempt(store, catalog, target, rules, routing, reader)
        return try attempt.plan()
      } catch let error as HopdError {
        // The first refusal is about the way that the versions lead; it says most.
        first = first ?? error
        let reasons = error.reasons.isEmpty ? [error] : error.reasons
        guard let next = wayRound(reasons, routing, of: store, rules) else { throw first ?? error }
        routing = next
      }
    }
  }

  /// What to try after a refusal: to settle rows as the operator said, or a way round the hops that are impossible; nil
  /// where nothing is left.
  private static func wayRound(
    _ reasons: [HopdError], _ routing: RouteRules, of store: IdentifiedStore, _ rules: PlanningRules
  ) -> RouteRules? {
    var next = routing
    // Only where nothing else is wrong: a hop that runs as a mapping model gets no other check.
    if !routing.settlesInvalidRows, reasons.allSatisfy({ isSettled($0, rules.invalidRows) }) {
      next.settlesInvalidRows = true
      return next
    }
    guard rules.route == .progressive else { return nil }
    next.forbidden.formUnion(reasons.filter(\.isAboutRows).compactMap(\.place.hop))
    if reasons.contains(where: { $0.code == .layoutUnsupported }) {
      let framework = store.metadata.frameworkVersion
      next.unusable = Set(
        store.line.versions.filter { version in
          StoreSchema(model: version.model, frameworkVersion: framework).unsupported
            .contains { $0.code == .layoutUnsupported }
        }.map(\.model.name))
    }
    return next == routing ? nil : next
  }

  /// Does the operator's rule say what becomes of the rows?
  private static func isSettled(_ error: HopdError, _ rules: InvalidRowsRules) -> Bool {
    [.missingRequiredValue, .uniquenessViolation, .valuesOutOfBounds].contains(error.code)
      && error.place.entity.map { rules.rule(for: $0) != .fail } ?? false
  }
}

extension HopdError {
  /// Is it about rows that forbid a hop which the models allow?
  fileprivate var isAboutRows: Bool {
    [.rowsForbidInference, .numberDoesNotFit, .missingRequiredValue, .uniquenessViolation].contains(code)
  }
}
