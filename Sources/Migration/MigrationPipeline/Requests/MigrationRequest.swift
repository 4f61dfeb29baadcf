// The input of the pipeline: one store, the models, the target, and the rules. A plain value; the daemon makes it from
// a watch's configuration, hopctl from its command line.

import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import MigrationPolicy
import PersistentStore
import StoreReplacement
import SystemPackage

/// One store to migrate. Its settings can be read and set as if they were its own.
@dynamicMemberLookup
package struct MigrationRequest: Sendable {
  /// The store.
  package var location: CanonicalStoreLocation
  /// The store's path as the configuration leads to it, where that is not the canonical one.
  private let configuredName: FilePath?
  /// The store's path for messages and reports.
  package var name: FilePath { configuredName ?? location.database }
  /// All models known.
  package var catalog: ModelCatalog
  /// The version to reach.
  package var target: TargetVersion
  /// Which end names a self many-to-many table, where the caller has determined it.
  package var naming: JoinTableNaming
  /// Write the result here and only read the source; nil replaces the store.
  package var output: FilePath?
  /// How the migration is made.
  package var settings: MigrationSettings
  /// Creates the policies that mapping models name; nil where no class is bound.
  package var policies: PolicyMaker? = nil
  /// Whether the caller has just found the store behind its target. Then it is locked without another inspection; the
  /// inspection under the lock decides in any case.
  package var isKnownBehind = false
  /// Whether the operator asked for the migration of this very store. Then it is made although a restore has pinned the
  /// store, and removes the pin.
  package var releasesPin = false
  /// Whether the objects are made first that the store's version has and the store lacks. A watch never does that: an
  /// operator has to see what is missing.
  package var repairs = false
  /// Whether the caller reads statements and decisions (`MigrationEvent.note`).
  package var takesNotes = false
  /// The directory of intent records and locks; it must exist and be writable.
  package var stateDirectory: FilePath
  /// Short lower-case hex text that names this job; a resumed job keeps its own name.
  package var job: String

  /// Creates a request.
  package init(
    location: CanonicalStoreLocation, name: FilePath? = nil, catalog: ModelCatalog, target: TargetVersion = .current,
    naming: JoinTableNaming = JoinTableNaming(), output: FilePath? = nil,
    settings: MigrationSettings = MigrationSettings(), stateDirectory: FilePath, job: String
  ) {
    self.location = location
    configuredName = name
    self.catalog = catalog
    self.target = target
    self.naming = naming
    self.output = output
    self.settings = settings
    self.stateDirectory = stateDirectory
    self.job = job
  }

  package subscript<Value>(dynamicMember setting: WritableKeyPath<MigrationSettings, Value>) -> Value {
    get { settings[keyPath: setting] }
    set { settings[keyPath: setting] = newValue }
  }

  /// Whether the class of a policy is bound to a program.
  package func isBound(_ policy: String) -> Bool { policies?({ false }, { _, _, _ in }).isBound(policy) ?? false }

  /// The rules of the plan.
  package var rules: PlanningRules {
    PlanningRules(
      infer: settings.infer, renames: settings.renames, route: settings.route, naming: naming,
      history: settings.history, cloudKit: settings.cloudKit, memoryLimit: settings.engine.memoryLimit,
      invalidRows: settings.engine.invalidRows, unmappedEntities: settings.unmappedEntities)
  }
}
