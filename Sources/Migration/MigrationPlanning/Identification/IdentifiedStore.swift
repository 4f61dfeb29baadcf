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
  /// Whether it is the model's current version.
  package let isCurrent: Bool
  /// The named configuration to which the model is restricted; nil for a whole model.
  package internal(set) var configuration: String?
  /// Whether the model was read from the inspected store itself, because no given model has its version.
  package internal(set) var isFromStoreItself = false

  /// The version's title: "Library 2", or "Library 2, configuration Main".
  package var title: String {
    model.name + (configuration.map { ", configuration \($0)" } ?? "")
      + (isFromStoreItself ? ", from the store's own model" : "")
  }
}

/// A store whose version is known: the input of a plan.
///
/// Only this target makes one (the memberwise initializer is internal), so a plan never begins with a guess.
package struct IdentifiedStore: Sendable {
  /// The store's location.
  package let location: StoreLocation
  /// Its metadata, verbatim.
  package let metadata: StoreMetadata
  /// The version with which the store was written.
  package let version: CatalogedVersion
  /// The versions among which the store can be migrated.
  package let line: VersionLine
}
