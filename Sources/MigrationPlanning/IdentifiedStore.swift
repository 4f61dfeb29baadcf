import ManagedObjectModel
import PersistentStore
import SystemPackage

/// One version of one model in the catalog.
package struct CatalogedVersion: Sendable {
  /// Name of the model (the bundle without extension).
  package let modelName: String
  /// The bundle's path.
  package let path: FilePath
  /// The version; its name is `model.name`.
  package let model: ManagedObjectModel
  /// Its hashes by entity.
  package let versionHashes: [String: VersionHash]
  /// Position in the model's version order, from 0.
  package let position: Int
  /// Is it the model's current version?
  package let isCurrent: Bool

  /// Makes an entry.
  package init(
    modelName: String, path: FilePath, model: ManagedObjectModel, versionHashes: [String: VersionHash], position: Int,
    isCurrent: Bool
  ) {
    self.modelName = modelName
    self.path = path
    self.model = model
    self.versionHashes = versionHashes
    self.position = position
    self.isCurrent = isCurrent
  }
}

/// A store whose version is known: the input of a plan.
///
/// Only this target makes one (the memberwise initializer is internal), so a plan cannot begin with a guess.
package struct IdentifiedStore: Sendable {
  /// Where it is.
  package let location: StoreLocation
  /// Its metadata, verbatim.
  package let metadata: StoreMetadata
  /// The version it was made with.
  package let version: CatalogedVersion
}
