// The empty store that a hop in memory begins with. Tables, indexes and bookkeeping are made once for all stores on the
// same path and copied as the bytes of a file: in a small store the schema is more work than the rows.

import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite
import SystemPackage

/// An empty store as the bytes of its file.
struct StoreTemplate: Sendable {
  /// The file.
  let image: [UInt8]

  /// What the file depends on beside the hop.
  struct Key: Hashable, Sendable {
    let hop: Int
    let pageSize: Int64
    let autoVacuum: Int64
  }

  /// Can indexes and bookkeeping be there before the rows? Triggers and R-Trees act on rows, and history has numbers of
  /// its store. A unique index speaks up in another place: then the hop is made once more without a template.
  static func serves(_ hop: Hop) -> Bool {
    let layout = hop.destinationSchema
    return layout.triggers.isEmpty && layout.rTrees.isEmpty && layout.history == nil
  }

  /// Makes the store of a hop's destination, as the hop itself would make it with no rows.
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
    }
    image = try connection.image(of: schema)
  }
}
