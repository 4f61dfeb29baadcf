// Values that are there, counted column by column. Planner and verifier count with this one reader, the one in the
// source and the other in the result, so that the two numbers mean the same.

import ManagedObjectModel
import PersistentStore
import SQLite

/// Counts of values in columns and of missing order keys.
package enum ValueCounts {
  /// A column, and the entity numbers of the rows in which its values are counted; nil for all rows of the table.
  package struct Question: Sendable, Hashable {
    /// Column name.
    package let column: String
    /// Z_ENT of the rows, in order.
    package let entities: [Int64]?

    /// Asks for a column.
    package init(column: String, entities: [Int64]?) {
      self.column = column
      self.entities = entities
    }
  }

  /// Values that are not NULL, in the order of the questions; the table is read once per 400 of them.
  package static func count(
    _ questions: [Question], in table: String, reader: StoreReader
  ) throws(SQLiteError) -> [Int64] {
    var counts: [Int64] = []
    var rest = questions[...]
    while !rest.isEmpty {
      let part = rest.prefix(400)
      rest = rest.dropFirst(400)
      // IS NOT NULL, and not count(column): SQLite then does not load a long value to see that it is one.
      let terms = part.map { question in
        let filter =
          question.entities.map { "Z_ENT IN (\($0.map(String.init).joined(separator: ", "))) AND " } ?? ""
        return "sum(\(filter)\(SQLiteIdentifier.quoted(question.column)) IS NOT NULL)"
      }
      let width = Int32(clamping: part.count)
      counts +=
        try reader.connection.rows(
          "SELECT \(terms.joined(separator: ", ")) FROM \(reader.qualified(table))"
        ) { row in (0..<width).map { row.integer(at: $0) } }.first ?? []
    }
    return counts
  }

  /// References and pairs of ordered relationships that have no place in the order: the key is there, the order key is
  /// NULL.
  package static func missingOrderKeys(schema: StoreSchema, reader: StoreReader) throws(SQLiteError) -> Int64 {
    var total: Int64 = 0
    for table in schema.tables {
      let terms = table.columns.compactMap { column -> String? in
        guard case .orderKey(let entity, let relationship) = column.role,
          case .toOne(_, let key, _, _) = schema.storage(ofRelationship: relationship, in: entity)
        else { return nil }
        return "sum(\(SQLiteIdentifier.quoted(key)) IS NOT NULL AND \(SQLiteIdentifier.quoted(column.name)) IS NULL)"
      }
      total &+= try sum(terms, in: table.name, reader)
    }
    for join in schema.joinTables {
      let terms = [join.orderColumn, join.inverseOrderColumn].compactMap { $0 }
        .map { "sum(\(SQLiteIdentifier.quoted($0)) IS NULL)" }
      total &+= try sum(terms, in: join.name, reader)
    }
    return total
  }

  private static func sum(_ terms: [String], in table: String, _ reader: StoreReader) throws(SQLiteError) -> Int64 {
    guard !terms.isEmpty else { return 0 }
    return try reader.connection.integer(
      "SELECT \(terms.joined(separator: " + ")) FROM \(reader.qualified(table))") ?? 0
  }
}
