// What is known of the hops of a plan whatever rows the store has: their name, and a memo for whatever follows from
// them alone (programs, passes). Stores that go the same way share one; a daemon plans the same migration path for ten
// thousand stores of an app.

import ManagedObjectModel
import PersistentStore

/// The hops of a plan without the rows of its store.
struct MigrationPathCache: Sendable {
  /// `MigrationPlan.migrationPath` but for the numbers of history tables.
  let name: String
  var memo = Memo()

  /// All that decides about the hops. Models and mappings follow from the route, and layouts from models and what the
  /// store shows; whatever else becomes part of `Hop` must become part of this.
  struct Key: Hashable, Sendable {
    let route: RouteKey
    let rules: PlanningRules
    let frameworkVersion: Int64
    /// The layout of the store as it is.
    let sourceNaming: JoinTableNaming
    let provenNames: Set<String>
    /// The last layout; nil for a plan without hops.
    let last: LastLayout?
    let computed: [[SchemaDerivation]]
  }

  /// What decides about the last layout beside its model.
  struct LastLayout: Hashable, Sendable {
    let naming: JoinTableNaming
    let observed: ObservedLayout
    let historyTables: [HistoryLayout.Table: HistoryStatement]
    let historyIndexes: [HistoryStatement]
  }
}
