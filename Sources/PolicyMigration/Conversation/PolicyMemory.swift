// What policies remember: tables of the hop, shared by all its policies (the `manager.userInfo` of Core Data's
// policies, but on disk, in the staged store, and so of any size). They roll back with the chunk that wrote them. Those
// of stages go along to the hops that follow.

import Diagnostics
import MigrationEngine
import MigrationPolicy
import SQLite

/// The lookup tables of one hop.
final class PolicyMemory {
  static let table = "HOPD_LOOKUP"
  /// Most bytes of a key, and of a value.
  static let valueBytes = 1 << 20
  /// Most bytes of a table's name.
  static let nameBytes = 1 << 10

  private let connection: Connection
  private let qualified: String
  private var select: Statement?
  private var insert: Statement?

  private let schema: String
  private let isOfStage: Bool

  /// Tables in a staged store; those of a stage hold values only, because objects have other keys in other versions.
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

  /// What is kept under a key; null where nothing is.
  func value(table: String, key: PolicyValue) throws -> PolicyValue {
    let statement: Statement
    if let select {
      statement = select
    } else {
      statement = try connection.prepare("SELECT value FROM \(qualified) WHERE name = ?1 AND key = ?2")
      select = statement
    }
    try statement.bind([.text(table), .blob(PolicyValueBytes.encode(key))])
    defer { statement.reset() }
    guard try statement.step(), let bytes = statement.blob(at: 0) else { return .null }
    guard let value = PolicyValueBytes.decode(bytes) else {
      throw HopdError(
        .internalError, "a remembered value cannot be read back",
        hint: "the store is untouched; please report this with the journal at level debug")
    }
    return value
  }

  /// Keeps a value under a key, in place of what was there.
  func remember(table: String, key: PolicyValue, value: PolicyValue, for speaker: PolicySpeaker) throws {
    if isOfStage, key.namesObjects || value.namesObjects {
      throw PolicyRefusal(
        reason: "a table of a stage keeps values and no objects, which another version has under other names; keep an "
          + "attribute that tells them apart")
    }
    let (keyBytes, valueBytes) = (PolicyValueBytes.encode(key), PolicyValueBytes.encode(value))
    guard keyBytes.count <= Self.valueBytes, valueBytes.count <= Self.valueBytes, table.utf8.count <= Self.nameBytes
    else { throw speaker.failure("it wants to remember more than \(Self.valueBytes) bytes under one key") }
    let statement: Statement
    if let insert {
      statement = insert
    } else {
      statement = try connection.prepare("INSERT OR REPLACE INTO \(qualified) VALUES (?1, ?2, ?3)")
      insert = statement
    }
    try statement.run([.text(table), .blob(keyBytes), .blob(valueBytes)])
  }
}

/// Policy values as bytes: a tag and the content, so that values of two types are never the same key.
enum PolicyValueBytes {
  /// Lists in lists beyond this are not values.
  static let depth = 16

  static func encode(_ value: PolicyValue) -> [UInt8] {
    var bytes: [UInt8] = []
    append(value, to: &bytes)
    return bytes
  }

  static func decode(_ bytes: [UInt8]) -> PolicyValue? {
    var rest = bytes[...]
    guard let value = take(from: &rest, depth: depth), rest.isEmpty else { return nil }
    return value
  }

  private static func append(_ value: PolicyValue, to bytes: inout [UInt8]) {
    switch value {
    case .null: bytes.append(0)
    case .boolean(let flag): bytes += [1, flag ? 1 : 0]
    case .integer(let number):
      bytes.append(2)
      append(UInt64(bitPattern: number), to: &bytes)
    case .double(let number):
      bytes.append(3)
      // −0 and 0 are one key.
      append((number == 0 ? 0 : number).bitPattern, to: &bytes)
    case .decimal(let text): append(4, Array(text.utf8), to: &bytes)
    case .string(let text): append(5, Array(text.utf8), to: &bytes)
    case .date(let seconds):
      bytes.append(6)
      append((seconds == 0 ? 0 : seconds).bitPattern, to: &bytes)
    case .data(let content): append(7, content, to: &bytes)
    case .uuid(let content): append(8, content, to: &bytes)
    case .uri(let text): append(9, Array(text.utf8), to: &bytes)
    case .transformable(let content): append(10, content, to: &bytes)
    case .object(let id):
      bytes.append(11)
      append(id, to: &bytes)
    case .objects(let ids):
      bytes.append(12)
      append(UInt64(ids.count), to: &bytes)
      for id in ids { append(id, to: &bytes) }
    case .list(let values):
      bytes.append(13)
      append(UInt64(values.count), to: &bytes)
      for value in values { append(value, to: &bytes) }
    case .variable(let variable): append(14, Array(variable.rawValue.utf8), to: &bytes)
    }
  }

  private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    for shift in stride(from: 56, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
    }
  }

  private static func append(_ tag: UInt8, _ content: [UInt8], to bytes: inout [UInt8]) {
    bytes.append(tag)
    append(UInt64(content.count), to: &bytes)
    bytes += content
  }

  private static func append(_ id: PolicyObjectID, to bytes: inout [UInt8]) {
    append(id.side == .source ? 0 : 1, Array(id.entity.utf8), to: &bytes)
    append(UInt64(bitPattern: id.key), to: &bytes)
  }

  private static func take(from rest: inout ArraySlice<UInt8>, depth: Int) -> PolicyValue? {
    guard depth > 0, let tag = rest.popFirst() else { return nil }
    switch tag {
    case 0: return .null
    case 1: return rest.popFirst().map { .boolean($0 != 0) }
    case 2: return number(from: &rest).map { .integer(Int64(bitPattern: $0)) }
    case 3: return number(from: &rest).map { .double(Double(bitPattern: $0)) }
    case 4: return text(from: &rest).map { .decimal($0) }
    case 5: return text(from: &rest).map { .string($0) }
    case 6: return number(from: &rest).map { .date(Double(bitPattern: $0)) }
    case 7: return content(from: &rest).map { .data($0) }
    case 8: return content(from: &rest).map { .uuid($0) }
    case 9: return text(from: &rest).map { .uri($0) }
    case 10: return content(from: &rest).map { .transformable($0) }
    case 11: return id(from: &rest).map { .object($0) }
    case 12: return list(from: &rest) { id(from: &$0) }.map { .objects($0) }
    case 13: return list(from: &rest) { take(from: &$0, depth: depth - 1) }.map { .list($0) }
    case 14: return text(from: &rest).flatMap { PolicyVariable(rawValue: $0) }.map { .variable($0) }
    default: return nil
    }
  }

  private static func number(from rest: inout ArraySlice<UInt8>) -> UInt64? {
    guard rest.count >= 8 else { return nil }
    let value = rest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    rest = rest.dropFirst(8)
    return value
  }

  private static func content(from rest: inout ArraySlice<UInt8>) -> [UInt8]? {
    guard let count = number(from: &rest), count <= UInt64(rest.count) else { return nil }
    defer { rest = rest.dropFirst(Int(count)) }
    return Array(rest.prefix(Int(count)))
  }

  private static func text(from rest: inout ArraySlice<UInt8>) -> String? {
    content(from: &rest).map { String(decoding: $0, as: UTF8.self) }
  }

  private static func id(from rest: inout ArraySlice<UInt8>) -> PolicyObjectID? {
    guard let tag = rest.popFirst(), let entity = text(from: &rest), let key = number(from: &rest) else { return nil }
    return PolicyObjectID(side: tag == 0 ? .source : .destination, entity: entity, key: Int64(bitPattern: key))
  }

  private static func list<Element>(
    from rest: inout ArraySlice<UInt8>, _ element: (inout ArraySlice<UInt8>) -> Element?
  ) -> [Element]? {
    guard let count = number(from: &rest), count <= UInt64(rest.count) else { return nil }
    var elements: [Element] = []
    for _ in 0..<count {
      guard let next = element(&rest) else { return nil }
      elements.append(next)
    }
    return elements
  }
}
