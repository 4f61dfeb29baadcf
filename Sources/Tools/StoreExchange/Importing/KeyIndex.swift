// The keys by which data identifies its objects, in temporary tables: one for each entity table, so that a relationship
// finds objects of every entity below its destination.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// The keys of an import's objects.
final class KeyIndex {
  private let connection: Connection
  private let schema: StoreSchema
  private var inserts: [String: Statement] = [:]
  private var removals: [String: Statement] = [:]
  private var searches: [String: Statement] = [:]
  private var tables: [String: String] = [:]

  /// The object with a key, as far as the data knows it.
  enum Found {
    case one(key: Int64, number: Int64)
    case none
    case several
  }

  init(connection: Connection, schema: StoreSchema) throws(SQLiteError) {
    self.connection = connection
    self.schema = schema
    for index in schema.tables.indices {
      try connection.execute(
        "CREATE TEMP TABLE hopd_keys_\(index) (key TEXT, ent INTEGER, pk INTEGER, PRIMARY KEY (key, ent)) WITHOUT ROWID"
      )
    }
  }

  /// The temporary table with the keys of an entity's objects.
  func table(of entity: String) -> String {
    if let known = tables[entity] { return known }
    let name = schema.table(of: entity)?.name
    let table = "temp.hopd_keys_\(schema.tables.firstIndex { $0.name == name } ?? 0)"
    tables[entity] = table
    return table
  }

  /// SQL of the numbers of an entity and its descendants.
  func numbers(of entity: String) -> String {
    schema.numbersOfSubtree(of: entity).map(String.init).joined(separator: ", ")
  }

  /// Adds the key of an object; false if another object of the entity has it.
  func add(_ text: String, of writer: ObjectWriter, key: Int64) throws -> Bool {
    let table = self.table(of: writer.entity.name)
    let insert = try inserts[table] ?? connection.prepare("INSERT OR IGNORE INTO \(table) VALUES (?, ?, ?)")
    inserts[table] = insert
    try insert.run([.text(text), .integer(writer.number), .integer(key)])
    return connection.changes == 1
  }

  /// Removes the key of an object that is not written.
  func remove(_ text: String, of writer: ObjectWriter) throws {
    let table = self.table(of: writer.entity.name)
    let removal = try removals[table] ?? connection.prepare("DELETE FROM \(table) WHERE key = ? AND ent = ?")
    removals[table] = removal
    try removal.run([.text(text), .integer(writer.number)])
  }

  /// Finds an object of an entity or of one below it.
  func find(_ text: String, of entity: String) throws -> Found {
    let search =
      try searches[entity]
      ?? connection.prepare(
        "SELECT pk, ent FROM \(table(of: entity)) WHERE key = ? AND ent IN (\(numbers(of: entity))) LIMIT 2")
    searches[entity] = search
    try search.bind([.text(text)])
    defer { search.reset() }
    guard try search.step() else { return .none }
    let found = Found.one(key: search.integer(at: 0), number: search.integer(at: 1))
    return try search.step() ? .several : found
  }
}
