// Stores of merged models: an app that merges several models opens its store with all their entities. The search is
// exact: it finds every combination of at most one version of each model that explains the store's hashes and needs
// each of its parts. One combination is the result; two are an error (docs/decisions/0016). Merged models also have
// their configurations merged: a store that was opened with a configuration has, of each model, that model's part of
// it.

import Diagnostics
import ManagedObjectModel
import SystemPackage

struct MergeMatching {
  let matching: StoreMatching
  /// The configuration with which the store was opened; nil for a store with all entities of its models.
  private let configuration: String?
  /// The versions of each model of the catalog, restricted to the configuration.
  private let lines: [VersionLine]

  init(matching: StoreMatching, configuration: String? = nil) {
    self.matching = matching
    self.configuration = configuration
    lines = matching.catalog.bundles.map { bundle in
      let line = VersionLine(of: bundle, in: matching.catalog)
      return configuration.map { line.restricted(toConfiguration: $0) } ?? line
    }
  }

  /// One version of one model, if the store has all its entities; versions with equal hashes are one candidate.
  struct Candidate {
    /// Its index among all candidates.
    let index: Int
    let bundle: Int
    let hashes: [String: VersionHash]
  }

  /// Steps after which the search gives up: far more than any real set of models needs.
  private static let maximumSteps = 5_000
  /// Combinations that are reported if there are several.
  private static let maximumWays = 5

  /// Returns the store's match as one of merged models, or of one of their configurations; nil if there is none.
  static func match(_ matching: StoreMatching) throws(HopdError) -> StoreMatch? {
    guard matching.catalog.bundles.count > 1 else { return nil }
    if let whole = try MergeMatching(matching: matching).match() { return whole }
    let names = Set(matching.catalog.versions.flatMap(\.model.configurations.keys)).sorted()
    var ways: [(name: String, match: StoreMatch, stops: [[String: VersionHash]])] = []
    var failures: [HopdError] = []
    for name in names {
      do {
        guard let match = try MergeMatching(matching: matching, configuration: name).match() else { continue }
        ways.append((name, match, match.line.versions.map(\.versionHashes)))
      } catch {
        failures.append(error)
      }
    }
    return try matching.only(
      ways, failures, called: \.line.modelName,
      hint: "pass copies of the models with only the configuration that the app uses for this store")
  }

  private func match() throws(HopdError) -> StoreMatch? {
    let ways = try ways()
    guard let way = ways.first else { return nil }
    guard ways.count == 1 else {
      let names = ways.map { name(of: $0.map { (bundle($0), version($0)) }) }
      throw HopdError(
        .ambiguousModel,
        "the store can be put together from the models in several ways: "
          + names.joined(separator: "; "), at: matching.place,
        hint: "pass only the models that the app merges for this store")
    }
    return try migrationPath(of: way)
  }

  // MARK: Search

  private func candidates() -> [Candidate] {
    var found: [Candidate] = []
    for (index, line) in lines.enumerated() {
      for version in line.versions {
        let isKnown = found.contains { $0.bundle == index && $0.hashes == version.versionHashes }
        if !isKnown, !version.versionHashes.isEmpty, version.versionHashes.count < matching.hashes.count,
          version.versionHashes.allSatisfy({ matching.hashes[$0.key] == $0.value })
        {
          found.append(Candidate(index: found.count, bundle: index, hashes: version.versionHashes))
        }
      }
    }
    return found
  }

  /// Returns the sets of candidates of different models whose union is the store's hashes and of which each is needed,
  /// in the order of the models. The search branches on one entity that is not yet covered, which reaches every such
  /// set.
  func ways() throws(HopdError) -> [[Candidate]] {
    let candidates = candidates()
    let owners: [String: [Candidate]] = matching.hashes.keys.reduce(into: [:]) { owners, name in
      owners[name] = candidates.filter { $0.hashes[name] != nil }
    }
    if owners.values.contains(where: \.isEmpty) { return [] }
    // Entities that few candidates have come first: they leave the fewest branches.
    let order = matching.hashes.keys.sorted { left, right in
      let (few, many) = (owners[left]?.count ?? 0, owners[right]?.count ?? 0)
      return few != many ? few < many : left < right
    }
    var found: Set<Set<Int>> = []
    var ways: [[Candidate]] = []
    var open: [[Candidate]] = [[]]
    var steps = 0
    while let chosen = open.popLast(), ways.count < MergeMatching.maximumWays {
      steps += 1
      guard steps <= MergeMatching.maximumSteps else {
        throw HopdError(
          .ambiguousModel, "there are too many ways to put the store together from so many models", at: matching.place,
          hint: "pass only the models that the app merges for this store")
      }
      guard let entity = order.first(where: { name in !chosen.contains { $0.hashes[name] != nil } }) else {
        let isNeeded = chosen.allSatisfy { candidate in
          candidate.hashes.keys.contains { name in
            !chosen.contains { $0.bundle != candidate.bundle && $0.hashes[name] != nil }
          }
        }
        if isNeeded, found.insert(Set(chosen.map(\.index))).inserted {
          ways.append(chosen.sorted { $0.bundle < $1.bundle })
        }
        continue
      }
      for candidate in owners[entity] ?? [] where !chosen.contains(where: { $0.bundle == candidate.bundle }) {
        open.append(chosen + [candidate])
      }
    }
    return ways
  }

  // MARK: The line of a merge

  /// Returns the merged versions from the store's to the target: each hop moves every model one version further, until
  /// each is at its target.
  private func migrationPath(of way: [Candidate]) throws(HopdError) -> StoreMatch? {
    let targets = try TargetVersion.parts(matching.target, of: way.map(bundle))
    var stops: [(bundle: ModelBundle, versions: [CatalogedVersion])] = []
    var isNewer = false
    for (candidate, target) in zip(way, targets) {
      let bundle = bundle(candidate)
      let line = lines[candidate.bundle]
      guard let found = try StoreMatching.match(candidate.hashes, in: line, target: target) else { return nil }
      try line.requireNoGap(from: found.version, to: found.target)
      if found.version.isSameVersion(as: found.target) {
        stops.append((bundle, [found.version]))
      } else if found.version.position > found.target.position {
        isNewer = true
        stops.append((bundle, [found.version, found.target]))
      } else {
        let graph = MigrationGraph(versions: line.versions, infer: true)
        stops.append((bundle, graph.stops(from: found.version, to: found.target)))
      }
    }
    let last = (stops.map(\.versions.count).max() ?? 1) - 1
    var versions: [CatalogedVersion] = []
    let modelName = stops.map(\.bundle.name).joined(separator: " + ")
    let paths = stops.map(\.bundle.path)
    for step in 0...max(0, last) {
      let parts = stops.compactMap { stop in
        (step < stop.versions.count ? stop.versions[step] : stop.versions.last).map { (stop.bundle, $0) }
      }
      let model: ManagedObjectModel
      do {
        model = try ManagedObjectModel.merging(parts.map(\.1.model), name: name(of: parts))
      } catch {
        throw error.located(matching.place)
      }
      guard let path = paths.first else { return nil }
      versions.append(
        CatalogedVersion(
          modelName: modelName, path: path, model: model, versionHashes: model.versionHashes,
          // A store with a part that is ahead counts as ahead: it has no hop back.
          position: isNewer ? -step : step, isCurrent: step == last, configuration: configuration))
    }
    guard let first = versions.first, let target = versions.last else { return nil }
    let line = VersionLine(modelName: modelName, paths: paths, versions: versions, decidedTarget: target)
    return StoreMatch(version: first, target: target, line: line)
  }

  private func bundle(_ candidate: Candidate) -> ModelBundle { matching.catalog.bundles[candidate.bundle] }

  private func version(_ candidate: Candidate) -> CatalogedVersion? {
    lines[candidate.bundle].versions.last { $0.versionHashes == candidate.hashes }
  }

  private func name(of parts: [(ModelBundle, CatalogedVersion?)]) -> String {
    let bundles = parts.map(\.0)
    return parts.map { bundle, version in
      TargetVersion.partName(version?.model.name ?? "?", of: bundle, among: bundles)
    }.joined(separator: " + ")
  }
}

extension TargetVersion {
  /// The text between versions in the name of a merge.
  static let separator = " + "

  /// Returns the name of a version in a merge, as it is shown and may be given: with the model's name before it if
  /// several of the models have versions of that name.
  static func partName(_ version: String, of bundle: ModelBundle, among bundles: [ModelBundle]) -> String {
    bundles.filter { $0.version(named: version) != nil }.count > 1 ? "\(bundle.name)/\(version)" : version
  }

  /// Returns the target of each model of a merge. "A 3 + B 2" names one version of each model, MODEL/VERSION if the
  /// names alone are ambiguous; a model that is not named is migrated to its current version.
  static func parts(_ target: TargetVersion, of bundles: [ModelBundle]) throws(HopdError) -> [TargetVersion] {
    guard case .named(let text) = target else { return bundles.map { _ in target } }
    var parts: [TargetVersion] = bundles.map { _ in .current }
    let isWhole = bundles.contains { $0.version(named: text) != nil }
    for name in isWhole ? [text] : text.split(separator: separator, omittingEmptySubsequences: false).map(String.init) {
      var matches: [(bundle: Int, version: String)] = []
      for (index, bundle) in bundles.enumerated() {
        if bundle.version(named: name) != nil {
          matches.append((index, name))
        } else if name.hasPrefix(bundle.name + "/") {
          let version = String(name.dropFirst(bundle.name.count + 1))
          if bundle.version(named: version) != nil { matches.append((index, version)) }
        }
      }
      let all = bundles.flatMap { bundle in
        bundle.versions.map { partName($0.name, of: bundle, among: bundles) }
      }.joined(separator: ", ")
      guard let match = matches.first, matches.count == 1 else {
        throw HopdError(
          .noSuchVersion,
          matches.isEmpty
            ? "none of the models that make up the store has a version \"\(name)\""
            : "several of the models that make up the store have a version \"\(name)\"",
          hint: "pass a version for each model that should not reach its current one, separated by \"\(separator)\"; "
            + "the versions are: \(all)")
      }
      guard parts[match.bundle] == .current else {
        throw HopdError(
          .noSuchVersion, "\"\(text)\" names two versions of the model \(bundles[match.bundle].name)",
          hint: "pass one version of each model; the versions are: \(all)")
      }
      parts[match.bundle] = .named(match.version)
    }
    return parts
  }
}

extension ModelCatalog {
  /// Whether the text is a version's name, or the names of several models' versions.
  package func canName(_ target: String) -> Bool {
    if versions.contains(where: { $0.model.name == target }) { return true }
    guard bundles.count > 1 else { return false }
    do {
      _ = try TargetVersion.parts(.named(target), of: bundles)
      return true
    } catch {
      return false
    }
  }
}
