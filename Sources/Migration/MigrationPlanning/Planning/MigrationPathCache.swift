// The facts about the hops of a plan that do not depend on the store's rows: their name, and a cache for results that
// follow from them alone (programs). Stores with the same hops share one; a daemon plans the same migration
// path for ten thousand stores of an app.

import ManagedObjectModel
import PersistentStore

/// The hops of a plan without the rows of its store.
struct MigrationPathCache: Sendable {
  /// `MigrationPlan.migrationPath` without the numbers of history tables.
  let name: String
  var cache = Cache()

  /// Everything that determines the hops. Models and mappings follow from the route, and layouts from models and the
  /// store's observed layout. Every addition to `Hop` must be added here.
  struct Key: Hashable, Sendable {
    let route: RouteKey
    let rules: PlanningRules
    let frameworkVersion: Int64
    /// The layout of the existing store.
    let sourceNaming: JoinTableNaming
    let provenNames: Set<String>
    /// The last layout; nil for a plan without hops.
    let last: LastLayout?
    let computed: [[SchemaDerivation]]
  }

  /// The facts that, with its model, determine the last layout.
  struct LastLayout: Hashable, Sendable {
    let naming: JoinTableNaming
    let observed: ObservedLayout
    let historyTables: [HistoryLayout.Table: HistoryStatement]
    let historyIndexes: [HistoryStatement]
  }
}
