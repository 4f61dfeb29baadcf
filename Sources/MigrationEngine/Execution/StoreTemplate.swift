// The empty store from which a hop in memory begins. Tables, indexes and bookkeeping are made once for all stores on
// the same path and copied as the bytes of a file: in a small store the schema is more work than the rows.

import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite
import SystemPackage

/// An empty store as the bytes of its file.
struct StoreTemplate: Sendable {
  /// The bytes of the file.
  let image: [UInt8]

  /// The inputs of the file apart from the hop.
  struct Key: Hashable, Sendable {
    let hop: Int
    let pageSize: Int64
    let autoVacuum: Int64
  }

  /// Whether indexes, bookkeeping and history may exist before the rows. Triggers and R-Trees act on rows. A unique
  /// index reports a violation at another step: the hop is then repeated without a template.
  static func serves(_ hop: Hop) -> Bool {
    let layout = hop.destinationSchema
    return layout.triggers.isEmpty && layout.rTrees.isEmpty
  }

  /// Makes the store of a hop's destination, as the hop itself would make it without rows.
  init(_ hop: Hop, _ key: Key) throws {
    let schema = StagedStore.schemaName(ofHop: hop.index)
    let connection = try Connection(path: ":memory:", access: .memory)
    try connection.attachMemory(as: schema, for: .image)
    let writer = StoreWriter(connection: connection, schema: schema)
    try writer.prepareFile(
      pageSize: key.pageSize, autoVacuum: key.autoVacuum,
      hasOldestFormat: FrameworkVersion.hasOldestFileFormat(hop.destinationSchema.frameworkVersion))
    try connection.transaction {
      try writer.createTables(hop.destinationSchema)
      for index in hop.destinationSchema.indexes { try writer.createIndex(index) }
      for statement in hop.destinationSchema.bookkeepingStatements(in: schema) { try connection.execute(statement) }
      for statement in hop.destinationSchema.history?.statements ?? [] {
        try connection.execute(statement.createStatement(in: schema))
      }
    }
    image = try connection.image(of: schema)
  }
}
