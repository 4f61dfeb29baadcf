// The columns in which a relationship's pairs of objects are stored. Readers and writers of pairs take them from here;
// the rules are in docs/formats/store-layout.md, "To-one relationships", "Join tables" and "To-many without inverse".

import ManagedObjectModel
import SQLite

/// The columns of a to-one, in the table of the objects that have it.
package struct ToOneColumns: Sendable, Hashable {
  package let table: String
  /// Z_PK of the target.
  package let key: String
  /// Z_ENT of the target, if the declared destination has subentities.
  package var discriminator: String?
  /// Position in the ordered to-many at the other end.
  package var orderKey: String?

  /// The names of all of them, the key first.
  package var names: [String] { [key] + [discriminator, orderKey].compactMap { $0 } }
}

/// A join table, seen from one of the two relationships that it stores.
package struct JoinColumns: Sendable, Hashable {
  package let join: JoinTable
  /// Whether the table is named after this relationship.
  package let isOwner: Bool

  package var table: String { join.name }
  /// Z_PK of the object that has the relationship.
  package var owner: String { isOwner ? join.ownerColumn : join.targetColumn }
  /// Z_PK of the object at the other end.
  package var target: String { isOwner ? join.targetColumn : join.ownerColumn }
  /// Order of the targets of one owner.
  package var order: String? { isOwner ? join.orderColumn : join.inverseOrderColumn }
  /// Order of the owners of one target.
  package var inverseOrder: String? { isOwner ? join.inverseOrderColumn : join.orderColumn }

  /// SQL for all pairs: `table` is the table's qualified name. A relationship that is its own inverse has each pair in
  /// both directions, whichever of the two rows the table has.
  package func pairs(in table: String) -> String {
    join.isOwnInverse ? SymmetricPairs.sql(table, owner, target) : table
  }
}

/// The pairs of a relationship that is its own inverse.
enum SymmetricPairs {
  /// SQL for the rows of a table in both directions, each pair once.
  static func sql(_ table: String, _ first: String, _ second: String) -> String {
    let (first, second) = (SQLiteIdentifier.quoted(first), SQLiteIdentifier.quoted(second))
    return "(SELECT \(first), \(second) FROM \(table) UNION SELECT \(second), \(first) FROM \(table))"
  }
}

/// The storage of a relationship, from the view of the entity that declares it.
package enum RelationshipStorage: Sendable, Hashable {
  /// To-one: columns in the own table; `other` has the columns of the inverse, if that is a to-one too.
  case toOne(ToOneColumns, other: ToOneColumns?)
  /// To-many with a to-one inverse: the columns of the inverse, in the members' table.
  case members(ToOneColumns)
  /// To-many without inverse: the owner's key, in a column of the members' table.
  case owned(ToOneColumns)
  /// Many-to-many.
  case join(JoinColumns)

  /// The table that has the pairs, and the columns of it that are needed to read them.
  package var place: (table: String, columns: [String]) {
    switch self {
    case .toOne(let columns, _): (columns.table, [columns.key] + [columns.discriminator].compactMap(\.self))
    case .members(let columns), .owned(let columns):
      (columns.table, ["Z_PK", "Z_ENT", columns.key] + [columns.orderKey].compactMap(\.self))
    case .join(let join): (join.table, [join.owner, join.target] + [join.order].compactMap(\.self))
    }
  }

  /// The columns of a to-one in the own table; nil for a to-many.
  package var ownColumns: ToOneColumns? { if case .toOne(let columns, _) = self { columns } else { nil } }
}

/// The pairs (owner, target) of a relationship as rows of one table, for every kind of storage.
package struct StoredPairs: Sendable, Hashable {
  /// The end of a pair to which the row belongs.
  package enum End: Sendable, Hashable { case owner, target }

  /// The table whose rows are the pairs: of an entity, or a join table.
  package let table: String
  /// Columns with the owner's and the target's Z_PK.
  package let owner: String
  package let target: String
  /// Columns with the order of the targets of one owner, and of the owners of one target.
  package let order: String?
  package let inverseOrder: String?
  /// The end whose row it is; nil for join tables.
  package let row: End?
  /// Tables with the objects at both ends.
  package let ownerTable: String
  package let targetTable: String
  /// Whether the relationship is its own inverse and has a join table.
  package let isOwnInverse: Bool

  /// SQL for all pairs: `table` is the table's qualified name.
  package func source(_ table: String) -> String {
    isOwnInverse ? SymmetricPairs.sql(table, owner, target) : table
  }

  /// The same pairs with owner and target exchanged.
  package var inverted: StoredPairs {
    StoredPairs(
      table: table, owner: target, target: owner, order: inverseOrder, inverseOrder: order,
      row: row.map { $0 == .owner ? .target : .owner }, ownerTable: targetTable, targetTable: ownerTable,
      isOwnInverse: isOwnInverse)
  }
}

extension StoreSchema {
  /// Returns the storage of the relationship that a column belongs to.
  package func storage(of role: SchemaColumn.Role) -> RelationshipStorage? {
    switch role {
    case .toOne(let entity, let name), .discriminator(let entity, let name), .orderKey(let entity, let name),
      .owner(let entity, let name), .ownerOrder(let entity, let name):
      storage(ofRelationship: name, in: entity)
    case .primaryKey, .entityNumber, .saveCount, .attribute: nil
    }
  }

  /// Returns the topmost entity whose relationship of that name has the same storage: entities that declare it again
  /// share it. nil for transient and unsupported ones.
  package func storingEntity(ofRelationship relationship: String, in entity: String) -> String? {
    guard let value = model.entity(named: entity), let storage = storage(ofRelationship: relationship, in: entity)
    else { return nil }
    return model.lineage(of: value).first { self.storage(ofRelationship: relationship, in: $0.name) == storage }?.name
  }

  /// Returns the table and columns of a relationship's pairs, own or inherited; nil for transient and unsupported ones.
  package func pairs(ofRelationship relationship: String, in entity: String) -> StoredPairs? {
    guard let storage = storage(ofRelationship: relationship, in: entity),
      let value = model.entity(named: entity).flatMap({ model.allRelationships(of: $0)[relationship] }),
      let near = table(of: entity)?.name, let far = table(of: value.destinationEntityName)?.name
    else { return nil }
    switch storage {
    case .toOne(let own, _):
      return StoredPairs(
        table: own.table, owner: "Z_PK", target: own.key, order: nil, inverseOrder: own.orderKey, row: .owner,
        ownerTable: near, targetTable: far, isOwnInverse: false)
    case .members(let columns), .owned(let columns):
      return StoredPairs(
        table: columns.table, owner: columns.key, target: "Z_PK", order: columns.orderKey, inverseOrder: nil,
        row: .target, ownerTable: near, targetTable: far, isOwnInverse: false)
    case .join(let columns):
      return StoredPairs(
        table: columns.table, owner: columns.owner, target: columns.target, order: columns.order,
        inverseOrder: columns.inverseOrder, row: nil, ownerTable: near, targetTable: far,
        isOwnInverse: columns.join.isOwnInverse)
    }
  }
}

/// Order keys, the positions in an ordered relationship: 2048, 3072, 4096 … for the targets of one owner
/// (docs/formats/store-layout.md, "Order keys").
package enum OrderKey {
  /// The difference between neighbors.
  package static let step: Int64 = 1024
  /// The value one step below the first key.
  package static let zero: Int64 = 1024

  /// Returns the key after `last`; `last` itself at the end of the number range.
  package static func next(after last: Int64) -> Int64 {
    let (next, overflow) = last.addingReportingOverflow(step)
    return overflow ? last : next
  }

  /// SQL for the keys of rows without one: by `order` inside each group of equal `partition`, above `last`.
  package static func numbering(
    partition: SQLExpression, order: SQLExpression, above last: SQLExpression = .integer(zero)
  ) -> SQLExpression {
    "\(last) + \(step) * row_number() OVER (PARTITION BY \(partition) ORDER BY \(order))"
  }

  /// The key of member `place` (from 1) of at most `count` in a filled store, distinct within an owner. Every other
  /// owner's members are in reverse order, so that the order differs from that of the primary keys.
  static func sample(_ place: Int64, of count: Int64, owner: Int64) -> Int64 {
    // Narrower steps if 1024 would exceed 32 bits.
    let step = max(1, min(step, Int64(Int32.max) / (count + 2)))
    return step * (owner & 1 == 0 ? place + 1 : count - place + 2)
  }
}
