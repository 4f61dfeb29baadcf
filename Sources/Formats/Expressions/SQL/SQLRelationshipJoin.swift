// A relationship as a join (docs/formats/store-layout.md, "To-one relationships" and "Join tables").

import ManagedObjectModel
import PersistentStore
import SQLite

/// The tables that lead from the rows of an entity to the objects of one of its relationships.
package struct SQLRelationshipJoin {
  /// Each with its alias, in the order of joining; the last has the objects.
  package let tables: [SQLExpression]
  /// The conditions that join them.
  package let conditions: [SQLExpression]
  /// The order of one row's objects, and of one object's rows; nil if the store has no order.
  package let order: SQLExpression?
  package let inverseOrder: SQLExpression?

  /// Joins from the alias `near` to `far`; `pairs` is the alias of a join table. Nil for what is not stored.
  package init?(
    _ relationship: Relationship, of entity: String, from near: String, to far: String,
    pairs: @autoclosure () -> String, schema: StoreSchema, tables source: SourceTables
  ) {
    guard let storage = schema.storage(ofRelationship: relationship.name, in: entity),
      let target = schema.table(of: relationship.destinationEntityName)
    else { return nil }
    let objects: SQLExpression = "\(source.qualified(target.name)) AS \(far)"
    let key = SQLExpression.column("Z_PK", of: far)
    switch storage {
    case .toOne(let own, _):
      tables = [objects]
      conditions = ["\(key) = \(SQLExpression.column(own.key, of: near))"]
      order = nil
      inverseOrder = own.orderKey.map { .column($0, of: near) }
    case .members(let columns), .owned(let columns):
      tables = [objects]
      conditions = ["\(SQLExpression.column(columns.key, of: far)) = \(SQLExpression.column("Z_PK", of: near))"]
      order = columns.orderKey.map { .column($0, of: far) }
      inverseOrder = nil
    case .join(let join):
      let pair = pairs()
      tables = ["\(join.pairs(in: source.qualified(join.table))) AS \(pair)", objects]
      conditions = [
        "\(SQLExpression.column(join.owner, of: pair)) = \(SQLExpression.column("Z_PK", of: near))",
        "\(key) = \(SQLExpression.column(join.target, of: pair))",
      ]
      order = join.order.map { .column($0, of: pair) }
      inverseOrder = join.inverseOrder.map { .column($0, of: pair) }
    }
  }
}
