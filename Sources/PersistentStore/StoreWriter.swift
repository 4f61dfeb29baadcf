// Writing the parts of a store that are not rows: settings, tables, indexes, entity numbers, metadata. The engine and
// `hopctl create` make stores through it; nothing else writes schema.

import ManagedObjectModel
import PropertyLists
import SQLite

/// Makes a store's schema and bookkeeping in one schema of a connection.
package struct StoreWriter {
  /// The connection; it stays with the task that opened it.
  package let connection: Connection
  /// Schema name in that connection.
  package let schema: String

  /// Writes into `schema` of `connection`.
  package init(connection: Connection, schema: String) {
    self.connection = connection
    self.schema = schema
  }

  private var prefix: String { SQLiteIdentifier.quoted(schema) + "." }

  /// Page size and auto_vacuum must stand before the first table (store-layout §1).
  package func prepareFile(pageSize: Int64, autoVacuum: Int64 = 2) throws(SQLiteError) {
    try connection.execute("PRAGMA \(prefix)page_size = \(pageSize); PRAGMA \(prefix)auto_vacuum = \(autoVacuum)")
  }

  /// Entity tables and join tables in Core Data's order.
  package func createTables(_ layout: StoreSchema) throws(SQLiteError) {
    for table in layout.tables {
      try connection.execute(table.createStatement(in: schema))
      for join in layout.joinTables(after: table) {
        try connection.execute(join.createStatement(in: schema))
      }
    }
  }

  /// One index.
  package func createIndex(_ index: SchemaIndex) throws(SQLiteError) {
    try connection.execute(index.createStatement(in: schema))
  }

  /// Z_PRIMARYKEY, Z_METADATA and, by framework version, an empty Z_MODELCACHE.
  ///
  /// The cache stays empty: an outdated one is worse than none, and its absence is no obstacle (store-layout §2.3).
  package func createBookkeeping(
    _ layout: StoreSchema, highWaterMarks: [String: Int64], metadata: StoreMetadata
  ) throws(SQLiteError) {
    for statement in layout.bookkeepingStatements(in: schema) { try connection.execute(statement) }
    let insert = try connection.prepare("INSERT INTO \(prefix)Z_PRIMARYKEY VALUES (?, ?, ?, ?)")
    for entry in layout.primaryKeyEntries {
      // Subentities always have 0 [M 534/534].
      let mark = entry.parent == 0 ? highWaterMarks[entry.name] ?? 0 : 0
      try insert.run([.integer(entry.number), .text(entry.name), .integer(entry.parent), .integer(mark)])
    }
    try connection.run(
      "INSERT INTO \(prefix)Z_METADATA VALUES (1, ?, ?)",
      [.text(metadata.uuid), .blob(PropertyList.encodeBinary(.dictionary(metadata.entries)))])
  }
}

extension StoreMetadata {
  /// The metadata after a migration to `model`.
  ///
  /// Store UUID, the app's keys and everything unknown stay; hashes and identifiers are the destination's. Digest and
  /// checksum are written if and only if the source had them, so that they always fit its framework version, which
  /// stays too (store-layout §2.2: a wrong one is worse than none).
  package func migrated(to model: ManagedObjectModel) -> StoreMetadata {
    var copy = self
    copy.entries[Key.versionHashes] = .dictionary(model.versionHashes.mapValues { .data($0.bytes) })
    copy.entries[Key.versionHashesVersion] = .integer(3)
    copy.entries[Key.versionIdentifiers] = .array(model.versionIdentifiers.map { .string($0) })
    if entries[Key.versionHashesDigest] != nil {
      copy.entries[Key.versionHashesDigest] = .string(model.versionHashesDigest)
    }
    if entries[Key.versionChecksum] != nil {
      copy.entries[Key.versionChecksum] = .string(model.versionChecksum)
    }
    return copy
  }

  /// The metadata of a store made from nothing by Core Data of that framework version (store-layout §2.2).
  package static func fresh(uuid: String, model: ManagedObjectModel, frameworkVersion: Int64) -> StoreMetadata {
    var entries: [String: PropertyListValue] = [
      Key.frameworkVersion: .integer(frameworkVersion),
      Key.versionHashes: .dictionary(model.versionHashes.mapValues { .data($0.bytes) }),
      Key.versionHashesVersion: .integer(3),
      Key.versionIdentifiers: .array(model.versionIdentifiers.map { .string($0) }),
      Key.storeType: .string("SQLite"),
      Key.autoVacuumLevel: .string("2"),
    ]
    // The digest is seen from fw 977 on, the checksum from 1333 on [M].
    if frameworkVersion >= 977 { entries[Key.versionHashesDigest] = .string(model.versionHashesDigest) }
    if frameworkVersion >= 1333 { entries[Key.versionChecksum] = .string(model.versionChecksum) }
    return StoreMetadata(uuid: uuid, entries: entries)
  }
}
