// Where the tables of one version of a store are within a connection. A hop reads a store that is in a schema of its
// own, or the views that show what the hop before would write; anyone who writes SQL over the tables asks here for
// their names, so that the same statement serves both.

import SQLite

/// The tables of a store within a connection.
package struct SourceTables: Sendable, Hashable {
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

  /// What the rows of a view come from: one row each of one table of the space below, under the same key.
  package struct Origin: Sendable, Hashable {
    /// The table of the space below.
    package let table: String
    /// The table that is there in the end.
    package let driver: Driver
    /// Columns that are carried as they are, and the columns below that they are.
    package let carried: [String: String]
    /// Columns that have a value in every row, whatever is below.
    package let present: Set<String>
    /// Entity numbers of the rows below that are taken.
    package let numbers: Set<Int64>
    /// Entity numbers of the view whose rows are all rows of a number below, each once, and that number.
    package let whole: [Int64: Int64]

    /// Are all rows of the numbers that are taken shown, each once?
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

  /// The column of a join table's view that has the key of its driving table: a view has no rowid.
  package static let rangeColumn = "HOPD_KEY"

  /// Schema of the file that the rows are in: what PRAGMAs about pages are asked of.
  package let fileSchema: String
  /// The schema that has the tables or views: what PRAGMAs about a table are asked of.
  package let schemaName: String
  private let prefix: String
  private let origins: [String: Origin]
  /// The space below, none for tables.
  private let below: [SourceTables]

  package func hash(into hasher: inout Hasher) {
    // Origins are long, and views of one hop seldom differ in them alone.
    hasher.combine(fileSchema)
    hasher.combine(schemaName)
    hasher.combine(prefix)
  }

  /// The tables of a schema: "main", or what a file is attached as.
  package static func schema(_ name: String) -> SourceTables {
    SourceTables(fileSchema: name, schemaName: name, prefix: "", origins: [:], below: [])
  }

  /// No tables: the store was there and is gone.
  package static let gone = SourceTables.schema("")

  /// The views of a hop over the tables that it reads; `origins` are those of its tables.
  package static func views(ofHop index: Int, over source: SourceTables, origins: [String: Origin]) -> SourceTables {
    SourceTables(
      fileSchema: source.fileSchema, schemaName: "temp", prefix: "hop\(index) ", origins: origins, below: [source])
  }

  /// Is nothing there?
  package var isGone: Bool { fileSchema.isEmpty }

  /// Do names stand for views?
  package var isViews: Bool { !below.isEmpty }

  /// The tables that views show rows of.
  package var source: SourceTables? { below.first }

  /// The name of a table within its schema, not quoted.
  package func name(of table: String) -> String { prefix + table }

  /// The name of a table with the schema before it, quoted.
  package func qualified(_ table: String) -> String {
    SQLiteIdentifier.quoted(schemaName) + "." + SQLiteIdentifier.quoted(name(of: table))
  }

  /// What the rows of a view come from; nil for tables.
  package func origin(of table: String) -> Origin? { origins[table] }

  /// Is it known, by what views show and by what was counted, that a column has a value in every row?
  package func isPresent(_ column: String, of table: String, by memory: RowCountCache?) -> Bool {
    guard isViews else { return memory?.isPresent(column, of: qualified(table)) ?? false }
    guard let origin = origins[table], let source else { return false }
    if origin.present.contains(column) { return true }
    return origin.carried[column].map { source.isPresent($0, of: origin.table, by: memory) } ?? false
  }

  /// The table by whose Z_PK rows of an entity's table are taken in ranges: itself, or what a view drives from in the
  /// end.
  package func driver(of table: String) -> Driver {
    origins[table]?.driver ?? Driver(table: qualified(table), key: "\"Z_PK\"")
  }

  /// As `driver`, of a join table, which is taken by rowid.
  package func driver(ofJoin join: String) -> Driver {
    origins[join]?.driver ?? Driver(table: qualified(join), key: "rowid")
  }

  /// The same key in the join table or view itself.
  package var joinRangeColumn: String { isViews ? SQLiteIdentifier.quoted(Self.rangeColumn) : "rowid" }
}

extension SourceTables.Driver {
  /// Where the least key from ?1 on is found: what a chunk begins with.
  package var nextKey: String { "SELECT min(\(key)) FROM \(table) WHERE \(key) >= ?1" }
}
