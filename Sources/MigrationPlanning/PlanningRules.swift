// What the caller decides about a plan, beside the store and the models: a plain value that the configuration and the
// command line fill.

import PersistentStore

/// The rules under which a plan is made.
package struct PlanningRules: Sendable, Hashable {
  /// May mappings be inferred?
  package var infer: Bool
  /// Which end names a self many-to-many table of the last version, where that is known.
  package var naming: JoinTableNaming
  /// What becomes of the rows of persistent history.
  package var history: HistoryRule
  /// Bytes that the chunks of a job may use; it bounds the files that may become values of columns.
  package var memoryLimit: Int64

  /// Makes rules; the defaults are those of the configuration.
  package init(
    infer: Bool = true, naming: JoinTableNaming = JoinTableNaming(), history: HistoryRule = .clear,
    memoryLimit: Int64 = 64 << 20
  ) {
    self.infer = infer
    self.naming = naming
    self.history = history
    self.memoryLimit = memoryLimit
  }
}
