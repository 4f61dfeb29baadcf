// What a caller asks of the pipeline: one store, the models, where to go, and the rules. A plain value; the daemon makes
// it from a watch's configuration, hopctl from its command line.

import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import MigrationPolicy
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage

/// Journal mode of the migrated store.
package enum ResultJournalMode: String, Sendable, Hashable, CaseIterable {
  /// As the source had it.
  case keep
  case wal
  case delete
}

/// One store to migrate.
package struct MigrationRequest: Sendable {
  /// The store.
  package var location: StoreLocation
  /// All models known.
  package var catalog: ModelCatalog
  /// The version to reach.
  package var target: TargetVersion
  /// May mappings be inferred?
  package var infer: Bool
  /// Which end names a self many-to-many table, where the caller knows.
  package var naming: JoinTableNaming
  /// What becomes of a store with persistent history.
  package var history: HistoryRule
  /// Write the result here and only read the source; nil replaces the store.
  package var output: FilePath?
  /// How many backups are kept, for how long, and where.
  package var backup: BackupRule
  package var verification: VerificationDepth
  package var journalMode: ResultJournalMode
  /// How the new store takes the old one's place.
  package var replacement = ReplacementMode.rename
  /// Has the operator chosen that way? If not, a store that cannot safely be renamed over is replaced in place.
  package var replacementIsChosen = false
  package var engine: EngineOptions
  /// What becomes of the rows of entities that go on while no mapping takes them.
  package var unmappedEntities: UnmappedEntitiesRule = .fail
  /// Makes the policies that mapping models name; nil where no class is bound.
  package var policies: PolicyMaker? = nil
  /// Has the caller seen a moment ago that the store is behind its target? Then it is locked without another look; what counts is
  /// seen under the lock in any case.
  package var isKnownBehind = false
  /// Did somebody ask for the migration of this very store? Then it is made although a restore has pinned the store, and ends that.
  package var releasesPin = false
  /// Does somebody read statements and decisions (`MigrationEvent.note`)?
  package var takesNotes = false
  /// Where intent records and locks live; it must exist and be writable.
  package var stateDirectory: FilePath
  /// Short lower-case hex text that names this job; an interrupted job's own name wins when it is resumed.
  package var job: String

  /// Makes a request with the defaults of the configuration.
  package init(
    location: StoreLocation, catalog: ModelCatalog, target: TargetVersion = .current, infer: Bool = true,
    naming: JoinTableNaming = JoinTableNaming(), history: HistoryRule = .clear, output: FilePath? = nil,
    backup: BackupRule = BackupRule(),
    verification: VerificationDepth = .quick, journalMode: ResultJournalMode = .keep,
    engine: EngineOptions = EngineOptions(), stateDirectory: FilePath, job: String
  ) {
    self.location = location
    self.catalog = catalog
    self.target = target
    self.infer = infer
    self.naming = naming
    self.history = history
    self.output = output
    self.backup = backup
    self.verification = verification
    self.journalMode = journalMode
    self.engine = engine
    self.stateDirectory = stateDirectory
    self.job = job
  }

  /// Is the class of a policy bound to a program?
  package func isBound(_ policy: String) -> Bool { policies?({ false }, { _, _, _ in }).isBound(policy) ?? false }

  /// The rules of the plan.
  package var rules: PlanningRules {
    PlanningRules(
      infer: infer, naming: naming, history: history, memoryLimit: engine.memoryLimit,
      invalidRows: engine.invalidRows, unmappedEntities: unmappedEntities)
  }
}
