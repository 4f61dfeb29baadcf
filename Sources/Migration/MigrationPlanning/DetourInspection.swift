// Inspects the ways around a hop that the rows forbid, before one of them is planned: only the hops that the refused
// way does not have, and only their demands on the rows. Separate from the plan, because it decides nothing else.

import Diagnostics
import PersistentStore

/// Finds out whether the rows allow another way than a refused one, whose tables and rows are inspected.
struct DetourInspection {
  private let attempt: PlanAttempt
  /// The way tried last, as far as its hops were inspected.
  private var inspected: ArraySlice<MigrationGraph.Edge>
  private var path: MigrationPath

  init(_ attempt: PlanAttempt) {
    self.attempt = attempt
    path = attempt.lead
    inspected = attempt.edges.prefix(path.end)
  }

  /// Returns the findings in the first hop of the way by other rules that the rows forbid; none if they may allow it.
  mutating func findings(by routing: RouteRules) throws -> [HopdError] {
    // Without a key: a way that is tried once is not worth the memory.
    let route = try attempt.catalog.route(of: attempt.store, to: attempt.target, rules: routing, key: nil)
    let shared = zip(route, inspected).prefix { $0.isInferred(as: $1) }.count
    path = path.prefix(shared)
    defer { inspected = route.prefix(path.end) }
    for edge in route.dropFirst(shared) {
      // The rows that a mapping model makes do not exist yet.
      guard edge.mapped == nil else { return [] }
      path.append(edge)
      if attempt.edges.contains(where: { edge.isInferred(as: $0) }) { continue }
      var rows = RowInspection(migrationPath: path, census: attempt.census, after: path.end - 1)
      try rows.countRows()
      try rows.checkInferredHops(attempt.rules.invalidRows)
      let found = rows.findings.errors.filter { $0.place.hop != nil }
      if !found.isEmpty { return found }
    }
    return []
  }
}

extension MigrationGraph.Edge {
  /// Whether both infer the same hop.
  fileprivate func isInferred(as other: MigrationGraph.Edge) -> Bool {
    mapped == nil && other.mapped == nil && source.identity == other.source.identity
      && destination.identity == other.destination.identity
  }
}
