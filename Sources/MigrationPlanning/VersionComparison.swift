// A store of no known version, explained: which version comes nearest, and what differs entity by entity. The usual
// cause is a model that was edited without a new version (version-hash §8.4).

import Diagnostics
import ManagedObjectModel

/// Compares the hashes of a store with those of versions.
package enum VersionComparison {
  /// One entity that differs.
  package enum Difference: Sendable, Hashable {
    /// The version has it, the store does not.
    case missing(String)
    /// The store has it, the version does not.
    case extra(String)
    /// Both have it with different hashes.
    case different(String)

    var entity: String {
      switch self {
      case .missing(let name), .extra(let name), .different(let name): name
      }
    }
  }

  /// What differs between a store's hashes and a version's, by entity name.
  package static func differences(
    _ store: [String: VersionHash], _ version: [String: VersionHash]
  ) -> [Difference] {
    Set(store.keys).union(version.keys).sorted().compactMap { name in
      switch (store[name], version[name]) {
      case (nil, _): .missing(name)
      case (_, nil): .extra(name)
      case (let left, let right): left == right ? nil : .different(name)
      }
    }
  }

  /// The versions with the fewest differences, latest first.
  package static func nearest(
    _ store: [String: VersionHash], catalog: ModelCatalog
  ) -> (version: CatalogedVersion, differences: [Difference])? {
    catalog.versions.map { ($0, differences(store, $0.versionHashes)) }
      .min { left, right in
        left.1.count != right.1.count ? left.1.count < right.1.count : left.0.position > right.0.position
      }
  }

  static func explain(_ store: [String: VersionHash], catalog: ModelCatalog) -> HopdError {
    guard !store.isEmpty else {
      return HopdError(
        .unknownVersion, "the metadata of the store hold no version hashes, so its version cannot be told",
        hint: "open the store once with its app, which writes them")
    }
    guard let (version, differences) = nearest(store, catalog: catalog) else {
      return HopdError(
        .unknownVersion, "there is no model to compare the store with",
        hint: "name the model of the app with --models PATH")
    }
    let reasons = differences.map { difference in
      let message =
        switch difference {
        case .missing: "the version has this entity, the store does not"
        case .extra: "the store has this entity, the version does not"
        case .different: "the entity differs between the store and the version"
        }
      return HopdError(.unknownVersion, message, at: Place(entity: difference.entity))
    }
    let shared = store.keys.filter { version.versionHashes[$0] == store[$0] }.count
    return HopdError(
      .unknownVersion,
      "the store was made with none of the \(catalog.versions.count) versions given; nearest is \(version.model.name) "
        + "of \(version.modelName), with \(shared) of \(store.count) entities alike",
      hint: "add the version it was made with: an older or newer one that is missing from the model, or the state "
        + "before \(version.model.name) was edited without a new version", reasons: reasons)
  }
}
