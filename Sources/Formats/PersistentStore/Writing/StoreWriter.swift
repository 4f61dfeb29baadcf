// Writes the parts of a store that are not rows: settings, tables, indexes, entity numbers, metadata. The engine and
// `hopctl create` make stores with it; no other code writes schema.

import ManagedObjectModel
import PropertyLists
import SQLite

/// Creates a store's schema and bookkeeping in one schema of a connection.
package struct StoreWriter {
  /// The connection; it stays with the task that opened it.
  package let connection: Connection
  /// Schema name in that connection.
  package let schema: String

  /// Creates a writer for `schema` of `connection`.
  package init(connection: Connection, schema: String) {
    self.connection = connection
    self.schema = schema
  }

  private var prefix: String { SQLiteIdentifier.quoted(schema) + "." }

  /// Sets page size, auto_vacuum and file format, which must be set before the first table
  /// (docs/formats/store-layout.md, "File settings").
  package func prepareFile(
    pageSize: Int64, autoVacuum: Int64 = 2, hasOldestFormat: Bool = false
  ) throws(SQLiteError) {
    connection.makesOldestFileFormat(hasOldestFormat)
    try connection.execute("PRAGMA \(prefix)page_size = \(pageSize); PRAGMA \(prefix)auto_vacuum = \(autoVacuum)")
  }

  /// Creates entity tables and join tables in Core Data's order.
  package func createTables(_ layout: StoreSchema) throws(SQLiteError) {
    for table in layout.tables {
      try connection.execute(table.createStatement(in: schema))
      for join in layout.joinTables(after: table) {
        try connection.execute(join.createStatement(in: schema))
      }
    }
  }

  /// Appends a column of the layout to a table that lacks it, as Core Data's migration in place does: with NULL in
  /// every row (docs/formats/store-layout.md, "Apple's migration in place").
  package func addColumn(_ name: String, to table: String, of layout: StoreSchema) throws(SQLiteError) {
    // Every column of a join table is an integer.
    let column = layout.table(named: table)?.columns.first { $0.name == name }
    try connection.execute(
      "ALTER TABLE \(prefix)\(SQLiteIdentifier.quoted(table)) ADD COLUMN "
        + TableText.definition(of: name, type: column?.declaredType ?? "INTEGER"))
  }

  /// Creates one index.
  package func createIndex(_ index: SchemaIndex) throws(SQLiteError) {
    try connection.execute(index.createStatement(in: schema))
  }

  /// Creates the triggers of derived attributes, after all rows are written: their values are computed separately.
  package func createTriggers(_ layout: StoreSchema) throws(SQLiteError) {
    for trigger in layout.triggers { try connection.run(trigger.createStatement(in: schema)) }
    // Later writes through this connection would fail without Core Data's functions.
    if !layout.triggers.isEmpty { try SchemaTrigger.registerFunctions(on: connection) }
  }

  /// Computes the derived attributes of all rows; a row without children must have 0 in a count.
  package func fillDerivedAttributes(_ layout: StoreSchema) throws(SQLiteError) {
    for derivation in layout.derivations {
      if let statement = derivation.fillStatement(in: schema) { try connection.run(statement) }
    }
    for count in layout.filteredCounts {
      for statement in count.fillStatements(in: schema) { try connection.run(statement) }
    }
  }

  /// Removes the bookkeeping of the version that the file had.
  package func dropBookkeeping() throws(SQLiteError) {
    for name in StoreSchema.bookkeepingTables.sorted() {
      try connection.execute("DROP TABLE IF EXISTS \(prefix)\(name)")
    }
  }

  /// Creates Z_MODELCACHE, empty without `content`.
  package func createModelCache(_ content: [UInt8]?) throws(SQLiteError) {
    try connection.execute(StoreSchema.modelCacheStatement(in: schema))
    if let content { try connection.run("INSERT INTO \(prefix)Z_MODELCACHE VALUES (?)", [.blob(content)]) }
  }

  /// Creates Z_PRIMARYKEY, Z_METADATA, Z_MODELCACHE if the framework version has it, and, if the layout has them, the
  /// empty tables of persistent history.
  ///
  /// Without a `modelCache` that table stays empty: an outdated copy of the model is worse than none, and stores work
  /// without it (docs/formats/store-layout.md, "Model cache"). With `hasTables` the three already exist without rows,
  /// with `hasHistory` so do the tables of persistent history.
  package func createBookkeeping(
    _ layout: StoreSchema, highWaterMarks: [String: Int64], metadata: StoreMetadata, modelCache: [UInt8]? = nil,
    hasTables: Bool = false, hasHistory: Bool = false
  ) throws(SQLiteError) {
    if !hasTables {
      for statement in layout.bookkeepingStatements(in: schema) { try connection.execute(statement) }
    }
    let insert = try connection.prepare("INSERT INTO \(prefix)Z_PRIMARYKEY VALUES (?, ?, ?, ?)")
    for entry in layout.primaryKeyEntries {
      // Subentities always have 0 (docs/formats/store-layout.md, "Primary keys").
      let mark = entry.parent == 0 ? highWaterMarks[entry.name] ?? 0 : 0
      try insert.run([.integer(entry.number), .text(entry.name), .integer(entry.parent), .integer(mark)])
    }
    try connection.run(
      "INSERT INTO \(prefix)Z_METADATA VALUES (1, ?, ?)",
      [.text(metadata.uuid), .blob(PropertyList.encodeBinary(.dictionary(metadata.entries)))])
    if let modelCache, layout.hasModelCache {
      try connection.run("INSERT INTO \(prefix)Z_MODELCACHE VALUES (?)", [.blob(modelCache)])
    }
    guard let history = layout.history else { return }
    if !hasHistory {
      for statement in history.statements { try connection.execute(statement.createStatement(in: schema)) }
    }
    for entry in history.numbers {
      try insert.run([.integer(entry.number), .text(entry.name), .integer(entry.parent), .integer(entry.highWaterMark)])
    }
  }
}
