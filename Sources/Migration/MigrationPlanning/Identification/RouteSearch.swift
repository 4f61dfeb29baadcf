// The search for one chain: which hops lead from a store's version to the target, in the order that `RouteRule` sets,
// and which hops are missing if none do.

import Diagnostics
import ManagedObjectModel
import MappingModel

extension HopdError.Code {
  /// A hop skips versions because no chain leads through them.
  package static let versionsSkipped = HopdError.Code("versions-skipped", severity: .note)
}

/// Answers for the rows of a store while a way is searched.
protocol RowsOnTheWay: AnyObject {
  /// Whether the rows are known to forbid inferring this hop, from hops to other versions.
  func forbid(_ source: CatalogedVersion, _ destination: CatalogedVersion) -> Bool
  /// Whether the rows may allow an inferred hop at the end of a way.
  func allow(_ edge: MigrationGraph.Edge, after way: [MigrationGraph.Edge]) -> Bool
}

/// Searches one chain over versions in their order. Every edge leads forward, so there are no cycles.
struct RouteSearch {
  let stops: [CatalogedVersion]
  let rules: RouteRules
  /// Whether hops may be inferred.
  let infer: Bool
  /// The hops that mapping models serve; nil without mapping models.
  let mappings: (any HopMappings)?
  /// The stages between the stops, which no hop may leave out.
  let stages: StagedRoute
  /// Caches the results of inference.
  let cache: Cache?
  /// The rows; nil if only the versions decide.
  let rows: (any RowsOnTheWay)?
  /// Stops from which the target cannot be reached.
  private(set) var dead: Set<Int> = []
  /// Spans of the edges found from reachable stops.
  private(set) var spans: [(Int, Int)] = []
  /// The reasons why inference does not join two stops.
  private(set) var refusals: [Pair: HopdError] = [:]

  /// Entities that have made a hop impossible.
  private(set) var obstacles: Set<String> = []

  struct Pair: Hashable {
    let from: Int
    let to: Int
  }

  /// Returns the hops from the first stop to the last one, by the route's rule; nil if there are none.
  mutating func edges() throws(HopdError) -> [MigrationGraph.Edge]? {
    switch rules.route {
    case .progressive: try progressive(from: 0, after: [])
    case .direct: try hop(0, stops.count - 1).map { [$0] }
    case .shortest: try shortest()
    }
  }

  /// Returns a way and the hops that lead from its end to the last stop and skip as little as possible.
  private mutating func progressive(
    from index: Int, after way: [MigrationGraph.Edge]
  ) throws(HopdError) -> [MigrationGraph.Edge]? {
    if index == stops.count - 1 { return way }
    if dead.contains(index) { return nil }
    if let edge = try mapped(index, index + 1) ?? inferred(index, index + 1, after: way),
      let route = try progressive(from: index + 1, after: way + [edge])
    {
      return route
    }
    for further in stops.indices.dropFirst(index + 2) {
      if let edge = try mapped(index, further), let route = try progressive(from: further, after: way + [edge]) {
        return route
      }
    }
    // No inference to a dead stop is tried: in a long line without a chain, each pair would be tried.
    for further in stops.indices.dropFirst(index + 2) where !dead.contains(further) {
      if var edge = inferred(index, further, after: way) {
        edge.warnings.append(skipping(index, further))
        if let route = try progressive(from: further, after: way + [edge]) { return route }
      }
    }
    dead.insert(index)
    return nil
  }

  /// Returns the fewest hops; of several such chains, the one whose first hops are the longest.
  private mutating func shortest() throws(HopdError) -> [MigrationGraph.Edge]? {
    let last = stops.count - 1
    var routes: [Int: [MigrationGraph.Edge]] = [0: []]
    var frontier = [0]
    while !frontier.isEmpty {
      var next: [Int] = []
      for index in frontier.sorted(by: >) {
        guard let route = routes[index] else { continue }
        for further in stride(from: last, to: index, by: -1) where routes[further] == nil {
          guard let edge = try hop(index, further) else { continue }
          routes[further] = route + [edge]
          if further == last { return routes[last] }
          next.append(further)
        }
      }
      frontier = next
    }
    return nil
  }

  private mutating func hop(_ from: Int, _ to: Int) throws(HopdError) -> MigrationGraph.Edge? {
    if let edge = try mapped(from, to) { return edge }
    return inferred(from, to)
  }

  private func skipping(_ from: Int, _ to: Int) -> HopdError {
    let names = stops[(from + 1)..<to].map(\.model.name).joined(separator: ", ")
    return HopdError(
      .versionsSkipped,
      "the chain through \(names) is impossible, so the hop skips "
        + (to - from == 2 ? "this version" : "these versions"),
      at: Place(hop: RouteSearch.title(stops[from], stops[to])),
      hint: "compare the result with the app's, or pass mapping models for the hops in between")
  }

  private static func title(_ source: CatalogedVersion, _ destination: CatalogedVersion) -> String {
    "\(source.model.name) → \(destination.model.name)"
  }

  private mutating func mapped(_ from: Int, _ to: Int) throws(HopdError) -> MigrationGraph.Edge? {
    let (source, destination) = (stops[from], stops[to])
    guard stages.stageLeftOut(from: source, to: destination) == nil else { return nil }
    guard let (hop, warnings) = try mappings?.hop(from: source, to: destination) else { return nil }
    spans.append((from, to))
    return MigrationGraph.Edge(
      source: source, destination: destination,
      mapping: hop.trail(from: source.model, to: destination.model), mapped: hop, warnings: warnings)
  }

  private mutating func inferred(
    _ from: Int, _ to: Int, after way: [MigrationGraph.Edge] = []
  ) -> MigrationGraph.Edge? {
    let (source, destination) = (stops[from], stops[to])
    if let stage = stages.stageLeftOut(from: source, to: destination) {
      refusals[Pair(from: from, to: to)] = StagedRoute.leavesOut(stage, RouteSearch.title(source, destination))
      return nil
    }
    guard infer, !rules.forbidden.contains(RouteSearch.title(source, destination)),
      to == stops.count - 1 || !rules.unusable.contains(destination.model.name),
      rows?.forbid(source, destination) != true,
      // The reasons are told for hops to the next version only.
      to == from + 1 || obstacles.isEmpty || rules.route != .progressive
        || !MappingInference.isImpossible(
          from: source.model, to: destination.model, renames: rules.renames, because: obstacles)
    else { return nil }
    do {
      let mapping = try inference(source, destination)
      if to == from + 1 { spans.append((from, to)) }
      if rules.settlesInvalidRows {
        let hop = MappedHop(mappings: [
          ExplicitMapping(inferred: mapping, source: source.model, destination: destination.model)
        ])
        return MigrationGraph.Edge(
          source: source, destination: destination,
          mapping: hop.trail(from: source.model, to: destination.model), mapped: hop)
      }
      let edge = MigrationGraph.Edge(source: source, destination: destination, mapping: mapping)
      return rows?.allow(edge, after: way) == false ? nil : edge
    } catch {
      refusals[Pair(from: from, to: to)] = error
      obstacles.formUnion(error.reasons.compactMap(\.place.entity))
      return nil
    }
  }

  /// Infers a mapping for a pair; cached, because searches that avoid forbidden hops try the same pairs again.
  private func inference(
    _ source: CatalogedVersion, _ destination: CatalogedVersion
  ) throws(HopdError) -> InferredMapping {
    func infer() -> Result<InferredMapping, HopdError> {
      Result { () throws(HopdError) -> InferredMapping in
        try MappingInference.infer(from: source.model, to: destination.model, renames: rules.renames)
      }
    }
    guard let cache, !source.isFromStoreItself, !destination.isFromStoreItself else { return try infer().get() }
    let key = InferenceKey(source: source.identity, destination: destination.identity, renames: rules.renames)
    return try cache.value(for: key, infer).get()
  }

  private struct InferenceKey: Hashable, Sendable {
    let source: CatalogedVersion.Identity
    let destination: CatalogedVersion.Identity
    let renames: RenameRules
  }

  /// Returns the consecutive pairs that no edge spans, each with all reasons.
  mutating func missing(isBackward: Bool) -> [HopdError] {
    var missing: [HopdError] = []
    if rules.route == .direct, stops.count > 2, let refusal = refusals[Pair(from: 0, to: stops.count - 1)] {
      return [refusal]
    }
    for index in stops.indices.dropLast() where !spans.contains(where: { $0.0 <= index && index < $0.1 }) {
      let (source, destination) = (stops[index], stops[index + 1])
      // Edges beyond a missing one have not been tried yet.
      if (try? mapped(index, index + 1)) ?? nil != nil { continue }
      let pair = Pair(from: index, to: index + 1)
      if infer, refusals[pair] == nil, inferred(index, index + 1) != nil { continue }
      let near = mappings?.nearMisses(from: source, to: destination) ?? []
      guard infer else {
        missing.add(
          .noRoute, "no mapping model matches this hop", at: Place(hop: RouteSearch.title(source, destination)),
          hint: isBackward
            ? "pass a mapping model for this hop to an older version with --mappings"
            : "pass one with --mappings",
          reasons: near)
        continue
      }
      guard var refusal = refusals[pair] else { continue }
      if mappings != nil { refusal.message = "no mapping model matches this hop, and \(refusal.message)" }
      refusal.reasons = near + refusal.reasons
      missing.append(refusal)
    }
    return missing
  }
}
