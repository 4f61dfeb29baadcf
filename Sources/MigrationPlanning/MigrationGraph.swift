// The graph of versions and the way through it. Pure: two models go in at each edge, a mapping or the reasons against
// it come out. Versions are nodes by their hashes, consecutive versions are joined by inference, and nothing is ever
// skipped because one pair fails (migration-semantics §8).

import Diagnostics
import ManagedObjectModel
import MappingModel

/// Versions of one model and the hops between them.
package struct MigrationGraph: Sendable {
  /// One hop of a route.
  package struct Edge: Sendable {
    package let source: CatalogedVersion
    package let destination: CatalogedVersion
    /// The inferred mapping, or the name trail of the mapping models.
    package let mapping: InferredMapping
    /// The mapping models of the edge; nil for an inferred one.
    package var mapped: MappedHop? = nil
  }

  private let versions: [CatalogedVersion]
  private let infer: Bool

  /// A graph of the versions of one model, in their order; without `infer` it has no edges yet.
  package init(versions: [CatalogedVersion], infer: Bool) {
    self.versions = versions.sorted { $0.position < $1.position }
    self.infer = infer
  }

  /// The hops from one version to another, in order; none where both have the same hashes.
  ///
  /// Throws `store-newer` for a way back, `inference-off`, or `no-route` with every missing edge and every reason.
  package func route(from start: CatalogedVersion, to target: CatalogedVersion) throws(HopdError) -> [Edge] {
    if start.isSameVersion(as: target) { return [] }
    guard start.position < target.position else { throw StoreIdentifier.newer(start, target) }
    let stops = stops(from: start, to: target)
    guard infer else {
      throw HopdError(
        .inferenceOff,
        "the way from \(start.model.name) to \(target.model.name) has no mapping, and inference is switched off",
        hint: "switch inference on (`infer = true`)")
    }
    var edges: [Edge] = []
    var missing: [HopdError] = []
    for (source, destination) in zip(stops, stops.dropFirst()) {
      do throws(HopdError) {
        let mapping = try MappingInference.infer(from: source.model, to: destination.model)
        edges.append(Edge(source: source, destination: destination, mapping: mapping))
      } catch {
        missing.append(error)
      }
    }
    guard missing.isEmpty else { throw NoRouteExplanation(start: start, target: target, missing: missing).error }
    return edges
  }

  /// The versions on the way, both ends included. A version whose hashes come again before the target is left for the
  /// last such version at once, so no node is entered twice and the way cannot turn in a circle.
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
}

/// Why no chain of hops leads to the wanted version, in sentences.
package struct NoRouteExplanation: Sendable {
  /// Where the way begins and should end.
  package let start: CatalogedVersion
  package let target: CatalogedVersion
  /// The edges that are missing, each with all its reasons.
  package let missing: [HopdError]

  /// The refusal.
  package var error: HopdError {
    let edges = missing.compactMap(\.place.hop)
    let list = edges.joined(separator: ", ")
    return HopdError(
      .noRoute,
      "no way leads from \(start.model.name) to \(target.model.name): "
        + (edges.count == 1 ? "the hop \(list) cannot be inferred" : "the hops \(list) cannot be inferred"),
      at: Place(file: start.path),
      hint: "change the model so that each of these hops can be inferred, for example with a version in between; "
        + "`hopctl plan STORE --models … --to VERSION` plans as far as an earlier version", reasons: missing)
  }
}
