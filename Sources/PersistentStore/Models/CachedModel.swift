// The model of a store out of the store itself: where no model file is at hand, its own copy serves, once it is shown
// to be the model of the version that the metadata name.

import Diagnostics
import ManagedObjectModel

extension StoreReader {
  /// The model that the store carries, named `name`; nil where it carries none.
  ///
  /// Throws where the copy cannot be read, and where it is of another version than the store: Apple's own tools leave
  /// such copies behind, and only the hashes in the metadata say what a store is.
  package func cachedModel(name: String) throws -> (model: ManagedObjectModel, warnings: [ModelWarning])? {
    guard let compiled = try modelCache() else { return nil }
    let model: ManagedObjectModel
    let warnings: [ModelWarning]
    do {
      (model, warnings) = try ModelReader.read(compiled: compiled, name: name)
    } catch {
      throw ModelCache.damaged("it is not a model that hopd can read", Place(), cause: error)
    }
    // A store made for one configuration holds only its entities' hashes (docs/formats/version-hashes.md, "Digest and
    // checksum"), so more in the model is fine.
    let stored = try metadata().versionHashes
    let computed = model.versionHashes
    let different = stored.filter { computed[$0.key] != $0.value }.keys.sorted()
    guard different.isEmpty, !stored.isEmpty else {
      throw HopdError(
        .modelCacheStale,
        "the copy of the model in the store (Z_MODELCACHE) is of another version than the store: it differs in "
          + (different.isEmpty ? "all entities" : different.prefix(10).joined(separator: ", ")),
        hint: "give the store's model with --models, the app's .momd or its source")
    }
    return (model, warnings)
  }
}
