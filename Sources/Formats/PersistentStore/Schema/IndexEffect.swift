// Indexes compared by effect, not by text: Apple's in-place migrations leave them under old names and in old spellings
// (docs/formats/store-layout.md, "Apple's migration in place").

import SQLite

/// The effect of an index, whatever its name.
package struct IndexEffect: Hashable, Sendable {
  /// The table, in upper case.
  package let table: String
  package let isUnique: Bool
  /// The columns, and whether each is descending.
  var columns: [Column] = []
  /// The condition of a partial index, without the spaces around its words.
  let condition: String?
  /// Whether it has an expression or a collation of its own, unlike every index of a model.
  var isSpecial = false

  struct Column: Hashable, Sendable {
    let name: String
    let descends: Bool
  }

  /// The columns and the condition in words.
  package var text: String {
    "(\(columns.map { $0.name + ($0.descends ? " DESC" : "") }.joined(separator: ", ")))"
      + (condition.map { " WHERE \($0)" } ?? "") + (isSpecial ? " with an expression or a collation" : "")
  }

  /// Returns the condition in the text of a partial index; Core Data's own texts write it with one or two spaces.
  static func condition(in text: String) -> String? {
    text.firstRange(of: " WHERE ").map { range in
      text[range.upperBound...].split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
  }
}

extension SchemaIndex {
  /// Its effect.
  package var effect: IndexEffect {
    IndexEffect(
      table: table.uppercased(), isUnique: isUnique,
      columns: columns.map {
        IndexEffect.Column(name: $0.name.uppercased(), descends: $0.suffix.uppercased().hasSuffix(" DESC"))
      }, condition: condition.flatMap(IndexEffect.condition))
  }
}

extension StoreReader {
  /// Returns the indexes of the layout's tables by name in upper case, including those that SQLite makes for a table's
  /// constraint.
  package func indexEffects(in layout: StoreSchema) throws(SQLiteError) -> [String: IndexEffect] {
    let texts = Dictionary(try schemaObjects().map { ($0.name, $0.sql) }, uniquingKeysWith: { first, _ in first })
    var found: [String: IndexEffect] = [:]
    for table in layout.tables.map(\.name) + layout.joinTables.map(\.name) {
      let rows = try connection.rows(
        """
        SELECT l.name, l."unique", l.partial, x.name, x."desc", x.coll
        FROM pragma_index_list(?1, ?2) AS l, pragma_index_xinfo(l.name, ?2) AS x WHERE x.key ORDER BY l.seq, x.seqno
        """, [.text(table), .text(schema)]
      ) { row in
        (
          name: row.text(at: 0) ?? "", isUnique: row.integer(at: 1) != 0, isPartial: row.integer(at: 2) != 0,
          column: row.text(at: 3), descends: row.integer(at: 4) != 0, collation: row.text(at: 5) ?? ""
        )
      }
      for row in rows {
        let name = row.name.uppercased()
        var effect =
          found[name]
          ?? IndexEffect(
            table: table.uppercased(), isUnique: row.isUnique,
            condition: row.isPartial ? (texts[row.name] ?? nil).flatMap(IndexEffect.condition) ?? "?" : nil)
        effect.columns.append(
          IndexEffect.Column(name: (row.column ?? "an expression").uppercased(), descends: row.descends))
        if row.column == nil || row.collation.uppercased() != "BINARY" { effect.isSpecial = true }
        found[name] = effect
      }
    }
    return found
  }
}
