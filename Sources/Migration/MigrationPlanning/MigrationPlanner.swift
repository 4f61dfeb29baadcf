// The planner makes the whole migration path of an identified store, or returns every reason why it cannot. All models,
// mappings and layouts are ready and all rows are checked before any byte is written.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

/// Makes plans.
package enum MigrationPlanner {
  /// Returns the plan that migrates `store` to `target`; it has no hops if the store is already there.
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

  /// Returns the names of self many-to-many tables in a store that the app made at the target version.
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
          hint: "pass a store of the target version that the app created",
          reasons: found.explanation.map { [$0] } ?? [])
      }
      return try reader.joinTableNaming(for: wanted.model, frameworkVersion: metadata.frameworkVersion)
    }
  }

  /// Returns the plan of the first chain that the rows allow; if they forbid an inferred hop, chains without it are
  /// tried.
  private static func possiblePlan(
    _ store: IdentifiedStore, _ catalog: ModelCatalog, _ target: TargetVersion, _ rules: PlanningRules,
    _ reader: StoreReader
  ) throws -> MigrationPlan {
    var attempt = try PlanAttempt(store, catalog, target, rules, rules.routing, reader)
    var first: HopdError?
    while true {
      do {
        return try attempt.plan()
      } catch let error as HopdError {
        // The first refusal is about the chain by the versions; it is the most useful one.
        let refusal = first ?? error
        first = refusal
        let reasons = error.reasons.isEmpty ? [error] : error.reasons
        guard let next = alternativeRoute(reasons, attempt.routing, of: store, rules) else { throw refusal }
        do {
          let routing = try allowed(next, after: attempt)
          attempt = try PlanAttempt(store, catalog, target, rules, routing, reader)
        } catch is HopdError {
          throw refusal
        }
      }
    }
  }

  /// Returns the rules for a chain of which no hop is known to be refused: each hop around a refused one that the rows
  /// forbid is forbidden.
  private static func allowed(_ next: RouteRules, after attempt: PlanAttempt) throws -> RouteRules {
    guard next.forbidden != attempt.routing.forbidden else { return next }
    let detour = DetourInspection(attempt)
    do {
      _ = try attempt.catalog.route(of: attempt.store, to: attempt.target, rules: next, key: nil, rows: detour)
    } catch {
      throw detour.failure ?? error
    }
    var routing = next
    routing.forbidden.formUnion(detour.forbidden)
    return routing
  }

  /// Returns the rules for the next attempt after a refusal: rows are settled by the operator's rule, or impossible
  /// hops are avoided; nil if nothing is left to try.
  private static func alternativeRoute(
    _ reasons: [HopdError], _ routing: RouteRules, of store: IdentifiedStore, _ rules: PlanningRules
  ) -> RouteRules? {
    var next = routing
    // Only if nothing else is wrong: a hop that runs as a mapping model gets no other check.
    if !routing.settlesInvalidRows, reasons.allSatisfy({ $0.isSettled(rules.invalidRows) }) {
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
}
