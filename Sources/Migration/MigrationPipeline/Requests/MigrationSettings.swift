// The settings of migrations. A watch of the configuration and the command line fill the same value, so that both mean
// the same.

import MappingModel
import MigrationEngine
import MigrationPlanning
import StoreReplacement
import StoreVerification

/// The settings of a migration.
package struct MigrationSettings: Sendable, Hashable {
  /// Whether hops may be inferred where no mapping model is given.
  package var infer: Bool
  /// Names that the operator decided where renaming identifiers contradict them.
  package var renames: RenameRules
  /// Which of several chains is taken.
  package var route: RouteRule
  /// The rule for a store with persistent history.
  package var history: HistoryRule
  /// The rule for a store that is mirrored with CloudKit.
  package var cloudKit: CloudKitRule
  /// The rule for the rows of entities that exist in both versions and have no entity mapping.
  package var unmappedEntities: UnmappedEntitiesRule
  /// How thoroughly the result is verified.
  package var verification: VerificationDepth
  /// Journal mode of the migrated store.
  package var journalMode: JournalModeRule
  /// How the new store takes the old one's place; nil for a rename, or in place where a rename is not safe.
  package var replacement: ReplacementMode?
  /// How many backups are kept, for how long, and where.
  package var backup: BackupRule
  /// What ends the pin of a restored store, besides the operator.
  package var pinRule: PinRule
  /// How hops are run.
  package var engine: EngineOptions
  /// Whether stages that run code of the app are passed without it: only for trials with made stores.
  package var leavesOutStages = false

  /// Makes settings with the defaults of the configuration.
  package init(
    infer: Bool = true, renames: RenameRules = RenameRules(), route: RouteRule = .progressive,
    history: HistoryRule = .migrate, cloudKit: CloudKitRule = .refuse, unmappedEntities: UnmappedEntitiesRule = .fail,
    verification: VerificationDepth = .quick, journalMode: JournalModeRule = .keep,
    replacement: ReplacementMode? = nil, backup: BackupRule = BackupRule(), pinRule: PinRule = .byHand,
    engine: EngineOptions = EngineOptions()
  ) {
    self.infer = infer
    self.renames = renames
    self.route = route
    self.history = history
    self.cloudKit = cloudKit
    self.unmappedEntities = unmappedEntities
    self.verification = verification
    self.journalMode = journalMode
    self.replacement = replacement
    self.backup = backup
    self.pinRule = pinRule
    self.engine = engine
  }
}
