// The tables of a hop that all its policies share: the `manager.userInfo` of Core Data's policies, but on disk, in the
// staged store, and so of any size. They roll back with the chunk that wrote them. Later hops keep those of stages.

import Diagnostics
import MigrationEngine
import MigrationPolicy
import SQLite

/// The lookup tables of one hop.
final class PolicyMemory {
  static let table = "HOPD_LOOKUP"
  /// The maximum number of bytes of a key, and of a value.
  static let valueBytes = 1 << 20
  /// The maximum number of bytes of a table's name.
  static let nameBytes = 1 << 10

  private let connection: Connection
  private let qualified: String
  private var select: Statement?
  private var insert: Statement?
  private let schema: String
  private let isOfStage: Bool

  /// Uses tables in a staged store. Those of a stage hold values only, because objects have other keys in other
  /// versions.
  init(connection: Connection, schema: String, isOfStage: Bool) {
    self.connection = connection
    self.schema = schema
    self.isOfStage = isOfStage
    qualified =
      SQLiteIdentifier.quoted(schema) + "." + SQLiteIdentifier.quoted(isOfStage ? StageTables.name : Self.table)
  }

  func create() throws(SQLiteError) {
    if isOfStage { return try connection.execute(StageTables.creation(in: schema)) }
    try connection.execute(
      "CREATE TABLE IF NOT EXISTS \(qualified)"
        + " (name TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (name, key)) WITHOUT ROWID")
  }

  /// Returns the value of a key; null if there is none.
  func value(table: String, key: PolicyValue) throws -> PolicyValue {
    let statement = try select.prepared(
      on: connection, "SELECT value FROM \(qualified) WHERE name = ?1 AND key = ?2")
    try statement.bind([.text(table), .blob(key.json)])
    defer { statement.reset() }
    guard try statement.step(), let bytes = statement.blob(at: 0) else { return .null }
    guard let value = PolicyValue(json: bytes) else {
      throw HopdError(
        .internalError, "a remembered value cannot be read back",
        hint: "report this bug with the journal at level debug; the store is unchanged")
    }
    return value
  }

  /// Stores a value under a key, in place of an earlier one.
  func remember(table: String, key: PolicyValue, value: PolicyValue, for speaker: PolicySpeaker) throws {
    if isOfStage, key.namesObjects || value.namesObjects {
      throw PolicyRefusal(
        reason: "a table of a stage keeps values and no objects, which another version has under other names; keep an "
          + "attribute that distinguishes them")
    }
    let (keyBytes, valueBytes) = (key.json, value.json)
    guard keyBytes.count <= Self.valueBytes, valueBytes.count <= Self.valueBytes, table.utf8.count <= Self.nameBytes
    else { throw speaker.failure("it wants to remember more than \(Self.valueBytes) bytes under one key") }
    try insert.prepared(on: connection, "INSERT OR REPLACE INTO \(qualified) VALUES (?1, ?2, ?3)")
      .run([.text(table), .blob(keyBytes), .blob(valueBytes)])
  }
}

extension Statement? {
  /// Returns the statement, which is prepared at its first use.
  mutating func prepared(on connection: Connection, _ sql: @autoclosure () -> String) throws(SQLiteError) -> Statement {
    if let known = self { return known }
    let made = try connection.prepare(sql())
    self = made
    return made
  }
}
