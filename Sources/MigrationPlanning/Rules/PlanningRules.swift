// What the caller decides about a plan, beside the store and the models: a plain value that the configuration and the
// command line fill.

import MappingModel
import PersistentStore

/// The rules under which a plan is made.
package struct PlanningRules: Sendable, Hashable {
  /// May mappings be inferred?
  package var infer: Bool
  /// Names that the operator decided where renaming identifiers contradict them.
  package var renames: RenameRules
  /// Which of several ways is taken.
  package var route: RouteRule
  /// Which end names a self many-to-many table of the last version, where that is known.
  package var naming: JoinTableNaming
  /// What becomes of the rows of persistent history.
  package var history: HistoryRule
  /// What becomes of a store that is mirrored with CloudKit.
  package var cloudKit: CloudKitRule
  /// Bytes that the chunks of a job may use; it bounds the files that may become values of columns.
  package var memoryLimit: Int64
  /// What becomes of rows that break the rules of the version they come to.
  package var invalidRows: InvalidRowsRules
  /// What becomes of the rows of entities that continue while no mapping takes them.
  package var unmappedEntities: UnmappedEntitiesRule

  /// Makes rules; the defaults are those of the configuration.
  package init(
    infer: Bool = true, renames: RenameRules = RenameRules(), route: RouteRule = .progressive,
    naming: JoinTableNaming = JoinTableNaming(), history: HistoryRule = .migrate, cloudKit: CloudKitRule = .refuse,
    memoryLimit: Int64 = 64 << 20, invalidRows: InvalidRowsRules = InvalidRowsRules(),
    unmappedEntities: UnmappedEntitiesRule = .fail
  ) {
    self.infer = infer
    self.renames = renames
    self.route = route
    self.naming = naming
    self.history = history
    self.cloudKit = cloudKit
    self.memoryLimit = memoryLimit
    self.invalidRows = invalidRows
    self.unmappedEntities = unmappedEntities
  }
}

extension PlanningRules {
  /// What of the rules decides about the route.
  var routing: RouteRules { RouteRules(infer: infer, renames: renames, route: route) }
}

extension InvalidRowsRules {
  /// The rules as text, always the same for the same rules.
  var text: String {
    ([standard.rawValue] + byEntity.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.rawValue)" })
      .joined(separator: " ")
  }
}

/// What becomes of the rows of an entity that both versions of a hop have and that no entity mapping takes: Core Data
/// leaves them behind without a word (docs/formats/migration-semantics.md, "Unmapped entities").
package enum UnmappedEntitiesRule: String, Sendable, Hashable, CaseIterable {
  /// The migration is refused.
  case fail
  /// They are dropped, and the report says how many.
  case drop
}
