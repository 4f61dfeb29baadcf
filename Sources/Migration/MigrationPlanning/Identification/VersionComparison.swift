// Explains a store of no known version: the nearest version, and the differences entity by entity. The usual cause is a
// model that was edited without a new version (docs/formats/version-hashes.md, "How hopd uses hashes", rule 4).

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

  /// Returns the differences between a store's hashes and a version's, by entity name.
  package static func differences(_ store: [String: VersionHash], _ version: [String: VersionHash]) -> [Difference] {
    Set(store.keys).union(version.keys).sorted().compactMap { name in
      switch (store[name], version[name]) {
      case (nil, _): .missing(name)
      case (_, nil): .extra(name)
      case (let left, let right): left == right ? nil : .different(name)
      }
    }
  }

  /// Returns the version with the fewest differences; of several, the latest.
  package static func nearest(
    _ store: [String: VersionHash], catalog: ModelCatalog
  ) -> (version: CatalogedVersion, differences: [Difference])? {
    catalog.versions.map { ($0, differences(store, $0.versionHashes)) }
      .min { left, right in
        left.1.count != right.1.count ? left.1.count < right.1.count : left.0.position > right.0.position
      }
  }

  /// Returns the error for a store of a version that was left out, if a compiled model states the hashes of that
  /// version.
  static func unusable(_ store: [String: VersionHash], catalog: ModelCatalog) -> HopdError? {
    guard !store.isEmpty else { return nil }
    for bundle in catalog.bundles {
      guard let version = bundle.omitted.first(where: { $0.hashes == store }) else { continue }
      return VersionLine(of: bundle, in: catalog).unusable(version, "the store has it")
    }
    return nil
  }

  /// Returns the error for a store of no known version. With `mayBeNewer`, the store's own model shows that it has more
  /// than the target.
  static func explain(
    _ store: [String: VersionHash], catalog: ModelCatalog, mayBeNewer: Bool = false
  ) -> HopdError {
    var error = explainKnown(store, catalog: catalog, mayBeNewer: mayBeNewer)
    // The store may have a version that was left out: that cannot be ruled out.
    let leftOut = catalog.bundles.flatMap(\.omitted).filter { $0.hashes == nil }.prefix(Findings.most).map {
      HopdError(
        .versionUnusable, "the store may have the version “\($0.name)”, which is ignored: \($0.reason.message)",
        at: $0.reason.place, hint: $0.reason.hint, reasons: $0.reason.reasons)
    }
    if !leftOut.isEmpty { error.code = .unknownVersion }
    error.reasons += leftOut
    return error
  }

  private static func explainKnown(
    _ store: [String: VersionHash], catalog: ModelCatalog, mayBeNewer: Bool
  ) -> HopdError {
    guard !store.isEmpty else {
      return HopdError(
        .unknownVersion, "the metadata of the store contain no version hashes, so its version is unknown",
        hint: "open the store once with its app, which writes them")
    }
    guard let (version, differences) = nearest(store, catalog: catalog) else {
      return HopdError(
        .unknownVersion, "no model to compare the store with",
        hint: "pass the model of the app with --models PATH")
    }
    // A part of a version that is not a configuration, and a part of several models, have their own reports.
    let isPart = differences.allSatisfy { if case .missing = $0 { true } else { false } }
    if isPart { return partOf(version, missing: differences.map(\.entity), storeCount: store.count) }
    if let merge = leftovers(store, catalog: catalog) { return merge }
    let reasons = differences.map { reason($0, version) }
    let shared = store.keys.filter { version.versionHashes[$0] == store[$0] }.count
    let hasRelatives = catalog.versions.contains { known in store.keys.contains { known.versionHashes[$0] != nil } }
    guard hasRelatives else {
      return HopdError(
        .foreignStore,
        "the store matches none of the \(catalog.versions.count) given versions and has no entity in common with them",
        hint: "pass the model of the app that created it",
        reasons: reasons)
    }
    let isEdited = differences.allSatisfy { if case .different = $0 { true } else { false } }
    let edited =
      "add the state of \(version.model.name) before it was edited without a new version: the store has its entities, "
      + "and those above have changed since"
    let missing =
      "add the version that created it: an older or newer one that is missing from the model, or the state of "
      + "\(version.model.name) before it was edited without a new version"
    // A store of an older version that is missing is rarely nearest to the last one.
    let isLast =
      version.isCurrent
      || !catalog.versions.contains {
        $0.path == version.path && $0.position > version.position
      }
    let hasMore = differences.allSatisfy { if case .missing = $0 { false } else { true } } && !isEdited
    let isPerhapsNewer = mayBeNewer || (isLast && hasMore)
    let newer = isPerhapsNewer || isLast ? "add the model version of the newer app, if one created it; otherwise " : ""
    return HopdError(
      isPerhapsNewer ? .perhapsNewer : .unknownVersion,
      (isPerhapsNewer ? "the store may be newer than the models: it" : "the store")
        + " matches none of the \(catalog.versions.count) given versions; the closest is \(version.model.name) "
        + "of \(version.modelName) (\(shared) of \(store.count) entities match)",
      hint: newer + (isEdited ? edited : missing), reasons: reasons)
  }

  private static func reason(_ difference: Difference, _ version: CatalogedVersion) -> HopdError {
    let name = version.model.name
    let message =
      switch difference {
      case .missing: "only in \(name)"
      case .extra: "only in the store"
      case .different: "differs between the store and \(name)"
      }
    return HopdError(.unknownVersion, message, at: Place(entity: difference.entity))
  }

  /// The error for a store whose entities are all in a version, which has more.
  private static func partOf(_ version: CatalogedVersion, missing: [String], storeCount: Int) -> HopdError {
    let configurations = version.model.configurations.sorted { $0.key < $1.key }
      .map { "\"\($0.key)\" (\($0.value.sorted().joined(separator: ", ")))" }
    return HopdError(
      .unknownVersion,
      "the store contains \(storeCount) of the \(version.versionHashes.count) entities of \(version.model.name) of "
        + "\(version.modelName), and the model has no configuration of just these",
      hint: (configurations.isEmpty
        ? "\(version.model.name) has no configurations"
        : "its configurations are: \(configurations.joined(separator: "; "))")
        + "; pass the model with which the app created this store",
      reasons: missing.map { reason(.missing($0), version) })
  }

  /// The error for a store that several models partly explain; it names the entities that are left.
  private static func leftovers(_ store: [String: VersionHash], catalog: ModelCatalog) -> HopdError? {
    guard catalog.bundles.count > 1 else { return nil }
    var parts: [CatalogedVersion] = []
    for bundle in catalog.bundles {
      let fitting = catalog.versions.filter { version in
        version.path == bundle.path && !version.versionHashes.isEmpty
          && version.versionHashes.allSatisfy { store[$0.key] == $0.value }
      }
      if let largest = fitting.max(by: { $0.versionHashes.count < $1.versionHashes.count }) { parts.append(largest) }
    }
    let explained = Set(parts.flatMap(\.versionHashes.keys))
    let rest = store.keys.filter { !explained.contains($0) }.sorted()
    guard !parts.isEmpty, !rest.isEmpty else { return nil }
    let reasons = rest.map { name in
      let owners = catalog.versions.filter { $0.versionHashes[name] != nil }
      let message =
        owners.isEmpty
        ? "none of the models has this entity"
        : "the entity differs from that of "
          + owners.map { "\($0.model.name) of \($0.modelName)" }.joined(separator: ", ")
      return HopdError(.unknownVersion, message, at: Place(entity: name))
    }
    let names = parts.map { "\($0.model.name) of \($0.modelName)" }.joined(separator: " and ")
    return HopdError(
      .unknownVersion,
      "the store may be one of merged models: \(names) explain\(parts.count == 1 ? "s" : "") \(explained.count) of its "
        + "\(store.count) entities, and no version of the other models has the rest",
      hint: "add the model with the entities above, in the version that created the store", reasons: reasons)
  }
}
