// Conflicts of several source objects that set one relationship, and the order of ordered relationships.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

extension RelationshipSetters {
  /// Refuses two objects for a to-one: the effect in Core Data is not known (docs/formats/expressions.md, "Value
  /// expressions"), so hopd does not choose one.
  func refuseSeveral(_ setter: RelationshipSetter) -> Action {
    Action(
      .scratch,
      "SELECT owner, min(target), max(target) FROM \(MappedScratch.pairs) GROUP BY owner HAVING count(*) > 1 LIMIT 1",
      refusal: Action.Refusal(
        message: """
          the object with key \(column: 0) would get several objects where there is room for one: those with the keys \
          \(column: 1) and \(column: 2)
          """, entity: setter.range.mapping.name, property: setter.relationship.name,
        hint: "narrow the expression to one object in the mapping model"))
  }

  /// Refuses an object that two owners of one mapping need if it can have only one.
  func refuseContested(_ setter: RelationshipSetter, column: String, table: String) -> [Action] {
    let refusal = Action.Refusal(
      message: """
        the object with key \(column: 0) is wanted by several objects, and has room for one: those with the keys \
        \(column: 1) and \(column: 2)
        """,
      entity: setter.range.mapping.name, property: setter.relationship.name,
      hint: "make the inverse a to-many, or narrow the expression in the mapping model")
    let key = SQLExpression.column(column, of: "t")
    return [
      Action(
        .scratch,
        "SELECT target, min(owner), max(owner) FROM \(MappedScratch.pairs) GROUP BY target HAVING count(*) > 1 LIMIT 1",
        refusal: refusal),
      Action(
        .scratch,
        "SELECT p.target, \(key), p.owner FROM \(MappedScratch.pairs) AS p CROSS JOIN \(compiler.qualified(table)) AS t"
          + " WHERE t.\"Z_PK\" = p.target AND \(key) <> p.owner AND \(associations.isOwned(key, by: setter.range)) "
          + "LIMIT 1",
        refusal: refusal),
    ]
  }

  // MARK: Order

  /// Returns the statements that append the members of an ordered relationship that have no position.
  func orderFilling() -> [HopProgram.StatementStep] {
    var result: [HopProgram.StatementStep] = []
    func fill(_ table: String, order: String, partition: String, by key: String) {
      let name = compiler.qualified(table)
      let (order, partition) = (SQLiteIdentifier.quoted(order), SQLiteIdentifier.quoted(partition))
      let keys = OrderKey.numbering(partition: "o", order: "k", above: "last")
      let last = "coalesce(max(\(order)) OVER (PARTITION BY \(partition)), \(OrderKey.zero))"
      let rows =
        "SELECT rowid AS r, \(partition) AS o, \(order) AS f, \(SQLiteIdentifier.quoted(key)) AS k, \(last) AS last"
        + " FROM \(name) WHERE \(partition) IS NOT NULL"
      let step = HopProgram.StatementStep(
        subject: table, .rows(of: table),
        "UPDATE \(name) SET \(order) = n.k FROM (SELECT r, \(keys) AS k FROM (\(rows)) WHERE f IS NULL) AS n"
          + " WHERE n.r = \(SQLiteIdentifier.quoted(table)).rowid")
      if !result.contains(step) { result.append(step) }
    }
    for (position, setter) in setters.enumerated() {
      switch setter.storage {
      case .toOne(let own, _):
        if let order = own.orderKey, !inline.contains(position) || !hasInverseOrder(setter) {
          fill(own.table, order: order, partition: own.key, by: "Z_PK")
        }
      case .join(let join):
        if let order = join.inverseOrder { fill(join.table, order: order, partition: join.target, by: join.owner) }
      case .members, .owned: break
      }
    }
    return result
  }

  private func hasInverseOrder(_ setter: RelationshipSetter) -> Bool {
    let row = MappedRow(alias: "s", entity: setter.range.sourceEntity)
    return setter.sources.allSatisfy { source in
      guard case .lookup(_, let node) = source else { return false }
      return expressions.plainObjects(node, row: row, prefix: "o")?.inverseOrder != nil
    }
  }
}
