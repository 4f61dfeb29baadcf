// Checks that the store has the indexes of the model. Indexes are compared by effect, not by text: Apple's in-place
// migrations leave them under old names and in old spellings (docs/formats/store-layout.md, "Apple's migration in
// place"). A missing index makes an app slower, and a missing unique index loses its uniqueness.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// Finds the indexes that a model requires.
struct IndexCheck {
  let reader: StoreReader
  let schema: StoreSchema

  /// The effect of an index, whatever its name.
  private struct Effect: Hashable {
    let table: String
    let isUnique: Bool
    /// The columns, and whether each is descending.
    var columns: [Column] = []
    /// The condition of a partial index, without the spaces around its words.
    let condition: String?
    /// Whether it has an expression or a collation of its own, unlike every index of a model.
    var isSpecial = false

    struct Column: Hashable {
      let name: String
      let descends: Bool
    }

    var text: String {
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

  /// Checks that the store has an index with the same effect for every index of the model.
  func check() throws(SQLiteError) -> VerificationCheck {
    let found = try indexes()
    let effects = Set(found.values)
    var problems: [String] = []
    for index in schema.indexes {
      let wanted = Effect(
        table: index.table.uppercased(), isUnique: index.isUnique,
        columns: index.columns.map {
          Effect.Column(name: $0.name.uppercased(), descends: $0.suffix.uppercased().hasSuffix(" DESC"))
        }, condition: index.condition.flatMap(Effect.condition))
      guard !effects.contains(wanted) else { continue }
      let name = "the \(index.isUnique ? "unique " : "")index \(index.name)"
      if let other = found[index.name.uppercased()] {
        problems.append(
          "\(name) on \(index.table) \(wanted.text) is \(other.isUnique ? "unique " : "")on \(other.table) "
            + "\(other.text)")
      } else {
        problems.append("\(name) on \(index.table) \(wanted.text) is missing")
      }
    }
    let unique = schema.indexes.count(where: \.isUnique)
    return VerificationCheck(
      name: "indexes", problems: problems,
      fine: "the \(schema.indexes.count) indexes of \(schema.model.name), \(unique) of them unique, are there"
        + schema.indexesNotInspected(besides: schema.rTrees.count))
  }

  /// Returns the indexes of the model's tables by name, including those that SQLite makes for a table's constraint.
  private func indexes() throws(SQLiteError) -> [String: Effect] {
    let texts = Dictionary(
      try reader.schemaObjects().map { ($0.name, $0.sql) }, uniquingKeysWith: { first, _ in first })
    var found: [String: Effect] = [:]
    for table in schema.tables.map(\.name) + schema.joinTables.map(\.name) {
      let rows = try reader.connection.rows(
        """
        SELECT l.name, l."unique", l.partial, x.name, x."desc", x.coll
        FROM pragma_index_list(?1, ?2) AS l, pragma_index_xinfo(l.name, ?2) AS x WHERE x.key ORDER BY l.seq, x.seqno
        """, [.text(table), .text(reader.schema)]
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
          ?? Effect(
            table: table.uppercased(), isUnique: row.isUnique,
            condition: row.isPartial ? (texts[row.name] ?? nil).flatMap(Effect.condition) ?? "?" : nil)
        effect.columns.append(Effect.Column(name: (row.column ?? "an expression").uppercased(), descends: row.descends))
        if row.column == nil || row.collation.uppercased() != "BINARY" { effect.isSpecial = true }
        found[name] = effect
      }
    }
    return found
  }
}

extension StoreSchema {
  /// Returns half a sentence on the model's indexes that the check does not cover: those whose form in a store is not
  /// known, and `others`; empty if there are none.
  func indexesNotInspected(besides others: Int = 0) -> String {
    let count = unsupported.filter { $0.code == .indexLeftOut }.count + others
    return count == 0 ? "" : "; \(count) more of the model \(count == 1 ? "was" : "were") not checked"
  }
}
