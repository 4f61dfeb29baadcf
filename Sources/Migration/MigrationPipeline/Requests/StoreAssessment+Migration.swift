// What an assessment means for a migration.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore

extension StoreAssessment {
  /// The facts about the store; nil if its version is not known.
  package var facts: StoreFacts? {
    guard let metadata, let version else { return nil }
    return StoreFacts(
      uuid: metadata.uuid, model: version.modelName, version: version.model.name,
      frameworkVersion: metadata.frameworkVersion)
  }

  /// Returns the store if it is behind its target; nil if it is there. Throws where it cannot be migrated at all.
  package func storeBehind() throws(HopdError) -> IdentifiedStore? {
    if state == .current { return nil }
    if state == .behind, let identified, target != nil { return identified }
    throw explanation ?? HopdError(.internalError, "the store is \(state.rawValue), without a reason")
  }
}
