// Finds a store's version from its hashes, by rules that are tried in order (docs/decisions/0016): a whole version, a
// named configuration of one, one version of each of several models. So an explanation by fewer models takes
// precedence. Pure: hashes and models in, a match or the reasons for ambiguity out.

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// The version, target and line of a store.
struct StoreMatch: Sendable {
  let version: CatalogedVersion
  let target: CatalogedVersion
  let line: VersionLine
}

struct StoreMatching {
  let hashes: [String: VersionHash]
  let catalog: ModelCatalog
  let target: TargetVersion
  let place: Place

  /// Returns the match; nil if no rule explains the store. Throws if several do, or if the target does not exist.
  func match() throws(HopdError) -> StoreMatch? {
    if hashes.isEmpty { return nil }
    // An error names the store, and is not cached.
    return try catalog.cache.value(for: MatchKey(hashes: hashes, target: target)) { () throws(HopdError) in try found()
    }
  }

  private struct MatchKey: Hashable {
    let hashes: [String: VersionHash]
    let target: TargetVersion
  }

  private func found() throws(HopdError) -> StoreMatch? {
    if let found = try wholeVersion() { return found }
    if let found = try configuration() { return found }
    return try MergeMatching.match(self)
  }

  // MARK: Whole versions

  private func wholeVersion() throws(HopdError) -> StoreMatch? {
    let matches = catalog.versions.filter { $0.versionHashes == hashes }
    guard let bundle = try onlyBundle(of: matches) else { return nil }
    return try StoreMatching.match(hashes, in: VersionLine(of: bundle, in: catalog), target: target)
  }

  /// Returns the store's match in a line that has its version; nil if it does not.
  static func match(
    _ hashes: [String: VersionHash], in line: VersionLine, target: TargetVersion
  ) throws(HopdError) -> StoreMatch? {
    let matches = line.versions.filter { $0.versionHashes == hashes }
    guard let first = matches.first else { return nil }
    let wanted = try line.target(target, for: first)
    // Versions that differ only in defaults and names have the same hashes. Any of them is correct; one before the
    // target takes precedence.
    let version =
      matches.first { $0.position == wanted.position }
      ?? matches.filter { $0.position < wanted.position }.max { $0.position < $1.position }
      ?? matches.first { $0.isCurrent } ?? matches.max { $0.position < $1.position } ?? first
    return StoreMatch(version: version, target: wanted, line: line)
  }

  private func onlyBundle(of matches: [CatalogedVersion]) throws(HopdError) -> ModelBundle? {
    guard let first = matches.first else { return nil }
    guard Set(matches.map(\.path)).count == 1 else {
      let names = matches.map { "\($0.model.name) in \($0.path.printable)" }.joined(separator: "; ")
      throw HopdError(
        .ambiguousModel, "several models describe this version of the store: \(names)", at: place,
        hint: "pass only one of these models with --models")
    }
    return catalog.bundles.first { $0.path == first.path }
  }

  // MARK: Configurations

  /// Matches a store that has exactly the entities of a named configuration, with the hashes of the version
  /// (docs/formats/version-hashes.md, "How hopd uses hashes", rule 1).
  private func configuration() throws(HopdError) -> StoreMatch? {
    var names: Set<String> = []
    var matches: [CatalogedVersion] = []
    let entities = Set(hashes.keys)
    for version in catalog.versions where hashes.count < version.versionHashes.count {
      guard hashes.allSatisfy({ version.versionHashes[$0.key] == $0.value }) else { continue }
      let fitting = version.model.configurations.filter { Set($0.value) == entities }.keys
      guard !fitting.isEmpty else { continue }
      names.formUnion(fitting)
      matches.append(version)
    }
    guard let bundle = try onlyBundle(of: matches) else { return nil }
    let line = VersionLine(of: bundle, in: catalog)
    var ways: [(name: String, match: StoreMatch, stops: [[String: VersionHash]])] = []
    var failures: [HopdError] = []
    for name in names.sorted() {
      do {
        let part = line.restricted(toConfiguration: name)
        guard let found = try StoreMatching.match(hashes, in: part, target: target) else {
          // The configuration itself is invalid in the store's version.
          failures += part.gaps.filter { gap in matches.contains { $0.position == gap.position } }.map(\.reason)
          continue
        }
        try part.requireNoGap(from: found.version, to: found.target)
        let stops = MigrationGraph(versions: part.versions, infer: true).stops(from: found.version, to: found.target)
        ways.append((name, found, stops.map(\.versionHashes)))
      } catch {
        failures.append(error)
      }
    }
    return try only(
      ways, failures, called: \.version.model.name,
      hint: "pass a copy of the model with only the configuration that the app uses for this store")
  }

  /// Returns the only match by some configurations; those with the same entities in every version count as one.
  func only(
    _ ways: [(name: String, match: StoreMatch, stops: [[String: VersionHash]])], _ failures: [HopdError],
    called title: (StoreMatch) -> String, hint: String
  ) throws(HopdError) -> StoreMatch? {
    guard let first = ways.first else {
      if let failure = failures.first { throw failure.located(place) }
      return nil
    }
    guard ways.allSatisfy({ $0.stops == first.stops }) else {
      throw HopdError(
        .ambiguousModel,
        "the store may be one of the configurations \(ways.map { "\"\($0.name)\"" }.joined(separator: ", ")) of "
          + "\(title(first.match)): they have the same entities there, and different ones later", at: place, hint: hint)
    }
    return first.match
  }
}
