// Inspects the ways around a hop that the rows forbid, before one of them is planned: only the hops that the refused
// way does not have, and only their demands on the rows. Separate from the plan, because it decides nothing else.

import Diagnostics
import ManagedObjectModel
import PersistentStore

/// Finds out which hops around a refused way the rows allow; the way's tables and rows are inspected.
final class DetourInspection: RowsOnTheWay {
  private let attempt: PlanAttempt
  /// The way asked about last, and its path.
  private var inspected: ArraySlice<MigrationGraph.Edge>
  private var path: MigrationPath
  /// The titles of the hops that the rows forbid.
  private(set) var forbidden: Set<String> = []
  /// For each source version, by position: entities, with their ancestors, that its rows cannot become.
  private var impossible: [Int: [[Entity]]] = [:]
  /// The error that ended the inspection.
  private(set) var failure: (any Error)?

  init(_ attempt: PlanAttempt) {
    self.attempt = attempt
    path = attempt.lead
    inspected = attempt.edges.prefix(path.end)
  }

  /// Whether the destination has an entity that rows of the source could not become because they lack a value. What an
  /// entity continues and which values it lacks depend only on the source and on the entity itself.
  func forbid(_ source: CatalogedVersion, _ destination: CatalogedVersion) -> Bool {
    if failure != nil { return true }
    let model = destination.model
    return (impossible[source.position] ?? []).contains { lineage in
      guard let last = lineage.last, let entity = model.entity(named: last.name) else { return false }
      return model.lineage(of: entity) == lineage
        && model.entities.count { $0.renamingIdentifier == entity.renamingIdentifier } == 1
    }
  }

  func allow(_ edge: MigrationGraph.Edge, after way: [MigrationGraph.Edge]) -> Bool {
    do {
      return try failure == nil && isAllowed(edge, after: way)
    } catch {
      failure = error
      return false
    }
  }

  private func isAllowed(_ edge: MigrationGraph.Edge, after way: [MigrationGraph.Edge]) throws -> Bool {
    // The rows that a mapping model makes do not exist yet.
    guard edge.mapped == nil, way.allSatisfy({ $0.mapped == nil }) else { return true }
    if attempt.edges.contains(where: { edge.isInferred(as: $0) }) { return true }
    let shared = zip(way, inspected).prefix { $0.isInferred(as: $1) }.count
    path = path.prefix(shared)
    for further in way.dropFirst(shared) + [edge] { path.append(further) }
    inspected = way + [edge]
    var rows = RowInspection(migrationPath: path, census: attempt.census, after: path.end - 1)
    try rows.countRows()
    try rows.checkInferredHops(attempt.rules.invalidRows)
    let found = rows.findings.errors.filter { $0.place.hop != nil && !$0.isSettled(attempt.rules.invalidRows) }
    guard found.contains(where: \.isAboutRows) else { return true }
    forbidden.formUnion(found.filter(\.isAboutRows).compactMap(\.place.hop))
    for error in found where error.code == .missingRequiredValue {
      let model = edge.destination.model
      guard let entity = error.place.entity.flatMap({ model.entity(named: $0) }) else { continue }
      impossible[edge.source.position, default: []].append(model.lineage(of: entity))
    }
    return false
  }
}

extension HopdError {
  /// Whether it is about rows that forbid a hop which the models allow.
  var isAboutRows: Bool {
    [.rowsForbidInference, .numberDoesNotFit, .missingRequiredValue, .uniquenessViolation].contains(code)
  }

  /// Whether the operator's rule decides about the rows.
  func isSettled(_ rules: InvalidRowsRules) -> Bool {
    [.missingRequiredValue, .uniquenessViolation, .valuesOutOfBounds].contains(code)
      && place.entity.map { rules.rule(for: $0) != .fail } ?? false
  }
}

extension MigrationGraph.Edge {
  /// Whether both infer the same hop of one line of versions.
  fileprivate func isInferred(as other: MigrationGraph.Edge) -> Bool {
    mapped == nil && other.mapped == nil && source.position == other.source.position
      && destination.position == other.destination.position
  }
}
