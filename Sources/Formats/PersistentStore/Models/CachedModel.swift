// Reads the model of a store from the store's own copy. If no model file is available, the copy serves, after a check
// that it is the model of the version in the metadata.

import Diagnostics
import ManagedObjectModel

extension StoreReader {
  /// Returns the model copy in the store, named `name`; nil if the store has none.
  ///
  /// Throws if the copy cannot be read, and if it is of another version than the store: Apple's own tools leave such
  /// copies, and only the hashes in the metadata define a store's version.
  package func cachedModel(name: String) throws -> (model: ManagedObjectModel, warnings: [ModelWarning])? {
    guard let compiled = try modelCache() else { return nil }
    let model: ManagedObjectModel
    let warnings: [ModelWarning]
    do {
      (model, warnings) = try ModelReader.read(compiled: compiled, name: name)
    } catch {
      throw ModelCache.damaged("it is not a model that hopd can read", Place(), cause: error)
    }
    // A store made for one configuration has only the hashes of its entities (docs/formats/version-hashes.md, "Digest
    // and checksum"), so the model may have more.
    let stored = try metadata().versionHashes
    let computed = model.versionHashes
    let different = stored.filter { computed[$0.key] != $0.value }.keys.sorted()
    guard different.isEmpty, !stored.isEmpty else {
      throw HopdError(
        .modelCacheStale,
        "the copy of the model in the store (Z_MODELCACHE) is of another version than the store: it differs in "
          + (different.isEmpty ? "all entities" : different.prefix(10).joined(separator: ", ")),
        hint: "pass the store's model with --models, the app's .momd or its source")
    }
    return (model, warnings)
  }
}
