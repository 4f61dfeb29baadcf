// Names of the tables of one version of a store within a connection. A hop reads a store in a schema of its own, or the
// views that show the result of the hop before; code that generates SQL over the tables takes their names from here, so
// that the same statement serves both.

import SQLite

/// The tables of a store within a connection.
package struct SourceTables: Sendable, Hashable {
  /// The table whose key divides the rows of a view into ranges.
  package struct Driver: Sendable, Hashable {
    /// Its name with the schema before it, quoted.
    package let table: String
    /// The key; quoted if it is a column.
    package let key: String

    /// Names a table and its key.
    package init(table: String, key: String) {
      self.table = table
      self.key = key
    }
  }

  /// The origin of a view's rows: each comes from one row of one table of the space below, under the same key.
  package struct Origin: Sendable, Hashable {
    /// The table of the space below.
    package let table: String
    /// The real table at the lowest level.
    package let driver: Driver
    /// Columns that are carried unchanged, and their columns below.
    package let carried: [String: String]
    /// Columns that have a value in every row, whatever the rows below contain.
    package let present: Set<String>
    /// Entity numbers of the rows below that the view shows.
    package let numbers: Set<Int64>
    /// Entity numbers of the view whose rows are all rows of a number below, each once, with that number.
    package let whole: [Int64: Int64]

    /// Whether the view shows all rows of its numbers, each once.
    package var showsAllRows: Bool { Set(whole.values) == numbers && whole.count == numbers.count }

    /// Makes an origin.
    package init(
      table: String, driver: Driver, carried: [String: String], present: Set<String> = [], numbers: Set<Int64>,
      whole: [Int64: Int64]
    ) {
      self.present = present
      self.table = table
      self.driver = driver
      self.carried = carried
      self.numbers = numbers
      self.whole = whole
    }
  }

  /// The column of a join table's view with the key of its driving table: a view has no rowid.
  package static let rangeColumn = "HOPD_KEY"

  /// Schema of the file that contains the rows: the one for PRAGMAs about pages.
  package let fileSchema: String
  /// The schema that has the tables or views: the one for PRAGMAs about a table.
  package let schemaName: String
  private let prefix: String
  private let origins: [String: Origin]
  /// The space below; empty for tables.
  private let below: [SourceTables]

  package func hash(into hasher: inout Hasher) {
    // Origins are long, and views of one hop seldom differ only in them.
    hasher.combine(fileSchema)
    hasher.combine(schemaName)
    hasher.combine(prefix)
  }

  /// The tables of a schema: "main", or the name of an attached file.
  package static func schema(_ name: String) -> SourceTables {
    SourceTables(fileSchema: name, schemaName: name, prefix: "", origins: [:], below: [])
  }

  /// No tables: the store no longer exists.
  package static let gone = SourceTables.schema("")

  /// The views of a hop over the tables that it reads; `origins` are those of its tables.
  package static func views(ofHop index: Int, over source: SourceTables, origins: [String: Origin]) -> SourceTables {
    SourceTables(
      fileSchema: source.fileSchema, schemaName: "temp", prefix: "hop\(index) ", origins: origins, below: [source])
  }

  /// Whether there are no tables.
  package var isGone: Bool { fileSchema.isEmpty }

  /// Whether the names refer to views.
  package var isViews: Bool { !below.isEmpty }

  /// The tables whose rows the views show.
  package var source: SourceTables? { below.first }

  /// The name of a table within its schema, not quoted.
  package func name(of table: String) -> String { prefix + table }

  /// The name of a table with the schema before it, quoted.
  package func qualified(_ table: String) -> String {
    SQLiteIdentifier.quoted(schemaName) + "." + SQLiteIdentifier.quoted(name(of: table))
  }

  /// The origin of a view's rows; nil for tables.
  package func origin(of table: String) -> Origin? { origins[table] }

  /// Whether a column is known, from the views or from counts, to have a value in every row.
  package func isPresent(_ column: String, of table: String, by memory: RowCountCache?) -> Bool {
    guard isViews else { return memory?.isPresent(column, of: qualified(table)) ?? false }
    guard let origin = origins[table], let source else { return false }
    if origin.present.contains(column) { return true }
    return origin.carried[column].map { source.isPresent($0, of: origin.table, by: memory) } ?? false
  }

  /// The table whose Z_PK divides the rows of an entity's table into ranges: the table itself, or for a view the real
  /// table at the lowest level.
  package func driver(of table: String) -> Driver {
    origins[table]?.driver ?? Driver(table: qualified(table), key: "\"Z_PK\"")
  }

  /// Like `driver`, for a join table, whose rows are divided by rowid.
  package func driver(ofJoin join: String) -> Driver {
    origins[join]?.driver ?? Driver(table: qualified(join), key: "rowid")
  }

  /// The same key in the join table or view itself.
  package var joinRangeColumn: String { isViews ? SQLiteIdentifier.quoted(Self.rangeColumn) : "rowid" }
}

extension SourceTables.Driver {
  /// SQL for the least key from ?1 on: the start of a chunk.
  package var nextKey: String { "SELECT min(\(key)) FROM \(table) WHERE \(key) >= ?1" }

  /// SQL for the least and the greatest key.
  package var endKeys: String { "SELECT (SELECT min(\(key)) FROM \(table)), (SELECT max(\(key)) FROM \(table))" }
}
