// The caller's decisions about a plan, in addition to the store and the models: a plain value that the configuration
// and the command line fill.

import MappingModel
import PersistentStore

/// The rules under which a plan is made.
package struct PlanningRules: Sendable, Hashable {
  /// Whether mappings may be inferred.
  package var infer: Bool
  /// The operator's names where renaming identifiers contradict them.
  package var renames: RenameRules
  /// The choice between several chains.
  package var route: RouteRule
  /// Which end names a self many-to-many table of the last version, if known.
  package var naming: JoinTableNaming
  /// The rule for the rows of persistent history.
  package var history: HistoryRule
  /// The rule for a store that is mirrored with CloudKit.
  package var cloudKit: CloudKitRule
  /// Bytes that the chunks of a job may use; it limits the files that may become values of columns.
  package var memoryLimit: Int64
  /// The rules for rows that break the rules of their destination version.
  package var invalidRows: InvalidRowsRules
  /// The rule for the rows of entities that continue without an entity mapping.
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
  /// The rules that decide about the route.
  var routing: RouteRules { RouteRules(infer: infer, renames: renames, route: route) }
}

extension InvalidRowsRules {
  /// The rules as text; equal rules give equal text.
  var text: String {
    ([standard.rawValue] + byEntity.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.rawValue)" })
      .joined(separator: " ")
  }
}

/// The rule for the rows of an entity that both versions of a hop have and that no entity mapping takes: Core Data
/// silently leaves them out (docs/formats/migration-semantics.md, "Unmapped entities").
package enum UnmappedEntitiesRule: String, Sendable, Hashable, CaseIterable {
  /// The migration is refused.
  case fail
  /// They are dropped, and the report has their number.
  case drop
}
