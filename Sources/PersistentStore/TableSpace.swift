// Where the tables of one version of a store are within a connection. A hop reads a store that lies in a schema of its own, or
// the views that show what the hop before would write; whoever writes SQL over the tables asks here for their names, so that
// the same statement serves both.

import SQLite

/// The tables of a store within a connection.
package struct TableSpace: Sendable, Hashable {
  /// The table by whose key the rows of a view are taken in ranges.
  package struct Driver: Sendable, Hashable {
    /// Its name with the schema before it, quoted.
    package let table: String
    /// The key, quoted where it is a column.
    package let key: String

    /// Names a table and its key.
    package init(table: String, key: String) {
      self.table = table
      self.key = key
    }
  }

  /// The column of a join table's view that has the key of its driving table: a view has no rowid.
  package static let rangeColumn = "HOPD_KEY"

  /// Schema of the file that the rows are in: what PRAGMAs about pages are asked of.
  package let fileSchema: String
  /// Do names stand for views?
  package let isViews: Bool
  private let tablePrefix: String
  private let schema: String
  private let drivers: [String: Driver]

  private init(fileSchema: String, isViews: Bool, tablePrefix: String, schema: String, drivers: [String: Driver]) {
    self.fileSchema = fileSchema
    self.isViews = isViews
    self.tablePrefix = tablePrefix
    self.schema = schema
    self.drivers = drivers
  }

  /// The tables of a schema: "main", or what a file is attached as.
  package static func schema(_ name: String) -> TableSpace {
    TableSpace(fileSchema: name, isViews: false, tablePrefix: "", schema: name, drivers: [:])
  }

  /// No tables: the store was there and is gone.
  package static let gone = TableSpace.schema("")

  /// The views of a hop over the tables that it reads; `drivers` are those of each of its tables.
  package static func views(
    ofHop index: Int, over source: TableSpace, drivers: [String: Driver]
  ) -> TableSpace {
    TableSpace(
      fileSchema: source.fileSchema, isViews: true, tablePrefix: "hop\(index) ", schema: "temp", drivers: drivers)
  }

  /// Is nothing there?
  package var isGone: Bool { fileSchema.isEmpty }

  /// The name of the schema that has the tables or views: what PRAGMAs about a table are asked of.
  package var schemaName: String { schema }

  /// The name of a table within its schema, not quoted.
  package func name(of table: String) -> String { tablePrefix + table }

  /// The name of a table with the schema before it, quoted.
  package func qualified(_ table: String) -> String {
    SQLiteIdentifier.quoted(schema) + "." + SQLiteIdentifier.quoted(name(of: table))
  }

  /// The table by whose key rows of an entity's or a join table are taken in ranges: itself, or what a view drives from in
  /// the end. Rows of a view keep the key.
  package func keyTable(of table: String) -> String { drivers[table]?.table ?? qualified(table) }

  /// The key of an entity's table in `keyTable`.
  package func key(of table: String) -> String { drivers[table]?.key ?? "\"Z_PK\"" }

  /// The key of a join table in `keyTable`.
  package func joinKey(of join: String) -> String { drivers[join]?.key ?? "rowid" }

  /// The same key in the join table or view itself.
  package var joinRangeColumn: String { isViews ? SQLiteIdentifier.quoted(Self.rangeColumn) : "rowid" }

  /// Where the least key from ?1 on is found: what a chunk of an entity's table begins with.
  package func nextKey(of table: String) -> String { next(key(of: table), in: keyTable(of: table)) }

  /// As `nextKey`, of a join table.
  package func nextKey(ofJoin join: String) -> String { next(joinKey(of: join), in: keyTable(of: join)) }

  private func next(_ key: String, in table: String) -> String {
    "SELECT min(\(key)) FROM \(table) WHERE \(key) >= ?1"
  }
}
