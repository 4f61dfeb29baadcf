// The graph of versions and the search for a chain in it. Pure: for two models, an edge gives mapping models, an
// inferred mapping, or the reasons against both. Versions are nodes by their hashes; mapping models or inference join
// consecutive versions, and a version is skipped only by a mapping model made for that
// (docs/formats/migration-semantics.md, "Finding a chain").

import Diagnostics
import ManagedObjectModel
import MappingModel
import SystemPackage

/// Versions of one model and the hops between them.
package struct MigrationGraph: Sendable {
  /// One hop of a chain.
  package struct Edge: Sendable {
    package let source: CatalogedVersion
    package let destination: CatalogedVersion
    /// The inferred mapping, or the name trail of the mapping models.
    package let mapping: InferredMapping
    /// The mapping models of the edge; nil for an inferred one.
    package var mapped: MappedHop? = nil
    /// Remarks on the mapping models.
    package var warnings: [HopdError] = []
  }

  private let versions: [CatalogedVersion]
  private let rules: RouteRules
  private let mappings: any MappingSource
  private let cache: Cache?

  /// A graph of the versions of one model, in their order, joined by the mapping models that fit, and by inference
  /// where that is allowed.
  package init(
    versions: [CatalogedVersion], rules: RouteRules, mappings: any MappingSource = NoMappings(), cache: Cache? = nil
  ) {
    self.versions = versions.sorted { $0.position < $1.position }
    self.rules = rules
    self.cache = cache
    self.mappings = mappings
  }

  /// The same graph; the only rules are whether hops may be inferred, and whether they may lead to older versions.
  package init(
    versions: [CatalogedVersion], infer: Bool, allowsOlder: Bool = false, mappings: any MappingSource = NoMappings()
  ) {
    self.init(versions: versions, rules: RouteRules(infer: infer, allowsOlder: allowsOlder), mappings: mappings)
  }

  /// Returns the hops from one version to another, in order; none if both have the same hashes.
  ///
  /// At each version, a mapping model reaches the next one, otherwise inference. If neither leads to the target,
  /// versions are skipped, as few as possible, and by a mapping model first; an inferred hop that skips versions has a
  /// warning. `RouteRule` has other orders. Only mapping models lead backwards, unless older versions are allowed.
  ///
  /// - Throws: `store-newer` if no hop leads back, `inference-off`, or `no-route` with every missing edge and every
  ///   reason.
  package func route(from start: CatalogedVersion, to target: CatalogedVersion) throws(HopdError) -> [Edge] {
    try route(from: start, to: target, rows: nil)
  }

  /// Returns the hops that the rows may allow, too; they are asked where they are given.
  func route(
    from start: CatalogedVersion, to target: CatalogedVersion, rows: (any RowsOnTheWay)?
  ) throws(HopdError) -> [Edge] {
    if start.isSameVersion(as: target) { return [] }
    let isBackward = start.position > target.position
    if isBackward, mappings.isEmpty, !rules.allowsOlder { throw StoreIdentifier.newer(start, target) }
    let hops = mappings.isEmpty ? nil : mappings.hops(among: versions)
    let stops = isBackward ? [] : knownStops(from: start, to: target)
    // Hooks run forwards only, as Core Data's do.
    let stages = StagedRoute(mappings.stages, of: versions, on: stops)
    var search = RouteSearch(
      stops: isBackward ? backwardStops(from: start, to: target) : stages.stops,
      rules: rules, infer: rules.infer && (!isBackward || rules.allowsOlder), mappings: hops, stages: stages,
      cache: cache, rows: rows)
    if let edges = try search.edges() {
      return stages.withHooks(
        edges.map { edge in
          guard edge.mapped?.mappings.contains(where: { !$0.path.isEmpty }) != true else { return edge }
          var extended = edge
          extended.warnings += hops?.unused(from: edge.source, to: edge.destination) ?? []
          return extended
        })
    }
    let missing = search.missing(isBackward: isBackward)
    if isBackward, !rules.allowsOlder {
      var error = StoreIdentifier.newer(start, target)
      error.reasons += missing
      throw error
    }
    guard rules.infer else {
      throw HopdError(
        .inferenceOff,
        "the chain from \(start.model.name) to \(target.model.name) has no mapping, and inference is disabled",
        hint: "enable inference (`infer = true`), or pass a mapping model for each hop",
        reasons: mappings.isEmpty ? [] : missing)
    }
    throw Self.noRoute(from: start, to: target, missing)
  }

  /// The error if no chain of hops leads to the target; `missing` has every missing edge with its reasons.
  private static func noRoute(
    from start: CatalogedVersion, to target: CatalogedVersion, _ missing: [HopdError]
  ) -> HopdError {
    let edges = missing.compactMap(\.place.hop)
    return HopdError(
      .noRoute,
      "no migration path from \(start.model.name) to \(target.model.name): the hop\(edges.count == 1 ? "" : "s") "
        + "\(edges.joined(separator: ", ")) cannot be inferred",
      at: Place(file: start.path),
      hint: "pass a mapping model for each of these hops (--mappings PATH), or change the model so that they can be "
        + "inferred, for example with a version in between; `hopctl plan STORE --models … --to VERSION` plans as far "
        + "as an earlier version", reasons: missing)
  }

  /// What determines the stops of a way, within one catalog.
  private struct StopsKey: Hashable, Sendable {
    let versions: [CatalogedVersion.Identity]
    let start: CatalogedVersion.Identity
    let target: CatalogedVersion.Identity
  }

  /// Returns the same as `stops`; cached, because the ways around a hop have the same stops.
  private func knownStops(from start: CatalogedVersion, to target: CatalogedVersion) -> [CatalogedVersion] {
    guard let cache, !(versions + [start, target]).contains(where: \.isFromStoreItself) else {
      return stops(from: start, to: target)
    }
    let key = StopsKey(versions: versions.map(\.identity), start: start.identity, target: target.identity)
    return cache.value(for: key) { stops(from: start, to: target) }
  }

  /// Returns the versions of the chain, both ends included. If a version's hashes come again before the target, the
  /// search continues from the last such version, so no node is entered twice and no chain is circular.
  func stops(from start: CatalogedVersion, to target: CatalogedVersion) -> [CatalogedVersion] {
    func lastAlike(_ version: CatalogedVersion) -> CatalogedVersion {
      versions.last { $0.position <= target.position && $0.isSameVersion(as: version) } ?? version
    }
    var stops = [start]
    var visited: Set<[String: VersionHash]> = [start.versionHashes]
    var position = lastAlike(start).position
    while let next = versions.first(where: { $0.position > position && $0.position <= target.position }) {
      let stop = lastAlike(next)
      position = stop.position
      if visited.insert(stop.versionHashes).inserted { stops.append(stop) }
    }
    return stops
  }

  /// Returns the versions of a chain back, both ends included, without duplicates.
  private func backwardStops(from start: CatalogedVersion, to target: CatalogedVersion) -> [CatalogedVersion] {
    var visited: Set<[String: VersionHash]> = [start.versionHashes, target.versionHashes]
    let between = versions.reversed().filter {
      $0.position < start.position && $0.position > target.position && visited.insert($0.versionHashes).inserted
    }
    return [start] + between + [target]
  }
}

/// The facts that determine a chain, within one catalog.
struct RouteKey: Hashable, Sendable {
  let line: [CatalogedVersion.Identity]
  let start: CatalogedVersion.Identity
  let target: CatalogedVersion.Identity
  let rules: RouteRules

  /// The key of a store's chain; nil if a model was read from the store itself, which no other store shares.
  init?(of store: IdentifiedStore, to target: CatalogedVersion, rules: RouteRules) {
    let versions = store.line.versions
    guard !versions.contains(where: \.isFromStoreItself), !store.version.isFromStoreItself, !target.isFromStoreItself
    else { return nil }
    line = versions.map(\.identity)
    start = store.version.identity
    self.target = target.identity
    self.rules = rules
  }
}

extension ModelCatalog {
  /// Returns the hops that migrate a store to a version; they are searched once for all stores of one version, except
  /// where `rows` decide about them.
  func route(
    of store: IdentifiedStore, to target: CatalogedVersion, rules: RouteRules, key: RouteKey?,
    rows: (any RowsOnTheWay)? = nil
  ) throws(HopdError) -> [MigrationGraph.Edge] {
    func find() throws(HopdError) -> [MigrationGraph.Edge] {
      try requireStages(of: store.line)
      var rules = rules
      rules.allowsOlder = allowsOlder
      var edges = try MigrationGraph(versions: store.line.versions, rules: rules, mappings: mappings, cache: cache)
        .route(from: store.version, to: target, rows: rows)
      if !edges.isEmpty { edges[0].warnings += stagesLeftOut(on: edges) }
      return edges
    }
    guard let key else { return try find() }
    return try cache.value(for: key, find)
  }
}

extension CatalogedVersion {
  /// Distinguishes a version from every other version of the same catalog.
  struct Identity: Hashable, Sendable {
    let path: FilePath
    let position: Int
    let configuration: String?
    let name: String
    let hashes: [String: VersionHash]

    /// Without the hashes of the entities: a catalog seldom has two versions of one place.
    func hash(into hasher: inout Hasher) {
      hasher.combine(path)
      hasher.combine(position)
    }
  }

  var identity: Identity {
    Identity(path: path, position: position, configuration: configuration, name: model.name, hashes: versionHashes)
  }
}
