// Mapping models of one hop that divide an entity's objects by filters: each object belongs to one of them. Before any
// row is written, queries check whether two filters match the same objects (docs/decisions/0067).

import Diagnostics
import Expressions
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

extension HopdError.Code {
  /// Several mapping models of one hop match the same objects.
  package static let overlappingParts = HopdError.Code("mapping-overlap", exit: .dataError)
}

extension MappedHopCompiler {
  /// Returns the checks that no object matches two mapping models.
  func partSteps() throws(HopdError) -> [HopProgram.ChunkStep] {
    var steps: [HopProgram.ChunkStep] = []
    for (first, second) in hop.mapped?.partsToTellApart ?? [] {
      guard let one = layout.lane(at: first), let other = layout.lane(at: second),
        let filter = one.mapping.filter, let otherFilter = other.mapping.filter
      else { continue }
      let row = MappedRow(alias: "s", entity: one.sourceEntity)
      let conditions: [SQLExpression] = [
        "s.\"Z_PK\" BETWEEN ?1 AND ?2", "s.\"Z_ENT\" = \(one.sourceNumber)",
        "(\(try expressions.condition(filter.predicate, row: row, lane: one)))",
        "(\(try expressions.condition(otherFilter.predicate, row: row, lane: other)))",
      ]
      steps.append(
        HopProgram.ChunkStep(
          subject: one.mapping.name, driver: source.driver(of: one.sourceTable),
          actions: [
            HopProgram.Action(
              .scratch,
              "SELECT min(s.\"Z_PK\"), max(s.\"Z_PK\"), count(*) FROM \(expressions.qualified(one.sourceTable)) AS s"
                + " WHERE \(conditions.joined(separator: " AND ")) HAVING count(*) > 0", isRanged: true,
              refusal: HopProgram.Action.Refusal(
                message: "%3 of the objects inspected so far are taken by two mapping models of this hop, by "
                  + "\(one.mapping.name) and by \(other.mapping.name): the first has the key %1, the last the key %2",
                entity: one.sourceEntity, property: nil,
                hint: "narrow one of the two filters, so that each object fulfils one of them",
                code: .overlappingParts))
          ]))
    }
    return steps
  }
}
