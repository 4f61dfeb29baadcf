// The rows of Tests/ExpressionCases, and the store that they refer to (the folder's README describes both).

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import Expressions

/// One row: an expression or predicate, its result, and the evidence.
struct ExpressionRow: CustomStringConvertible {
  /// The expected result of a row.
  enum Result {
    case value(ExpressionValue)
    /// In any order.
    case collection([ExpressionValue])
    case error(String)
    case refused(String)
  }

  let file: String
  let line: Int
  let text: String
  let isPredicate: Bool
  let result: Result
  let evidence: String

  var description: String { "\(file):\(line): \(text)" }

  /// Returns all rows of all files.
  static func all() throws -> [ExpressionRow] {
    let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
    let folder = "\(tests)/ExpressionCases"
    var rows: [ExpressionRow] = []
    for name in try FileManager.default.contentsOfDirectory(atPath: folder).sorted() where name.hasSuffix(".txt") {
      let text = String(
        decoding: try #require(FileManager.default.contents(atPath: "\(folder)/\(name)")), as: UTF8.self)
      for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
      where !line.isEmpty && !line.hasPrefix("#") {
        rows.append(try ExpressionRow(String(line), file: name, line: index + 1))
      }
    }
    return rows
  }

  private init(_ written: String, file: String, line: Int) throws {
    let halves = written.split(separator: " ⇒ ", maxSplits: 1).map { String($0) }
    try #require(halves.count == 2, "\(file):\(line)")
    let parts = halves[1].split(separator: " · ").map { String($0) }
    try #require(
      parts.count == 2 && ["foundation", "apple", "kvc", "unicode", "chosen"].contains(parts[1]), "\(file):\(line)")
    self.file = file
    self.line = line
    isPredicate = halves[0].hasPrefix("? ")
    text = isPredicate ? String(halves[0].dropFirst(2)) : halves[0]
    evidence = parts[1]
    result = try Self.result(parts[0])
  }

  private static func result(_ text: String) throws -> Result {
    func rest(_ word: String) -> String? { text.hasPrefix(word + " ") ? String(text.dropFirst(word.count + 1)) : nil }
    if let word = rest("error") { return .error(word) }
    if let word = rest("refused") { return .refused(word) }
    if let digits = rest("decimal") { return .value(.decimal(try #require(DecimalNumber(digits)))) }
    if let seconds = rest("date") { return .value(.date(try #require(Double(seconds)))) }
    let node = try ExpressionParser.expression(text)
    if case .aggregate(let members) = node {
      return .collection(
        try members.map { member in
          guard case .constant(let constant) = member else { throw CancellationError() }
          return ExpressionValue(constant)
        })
    }
    guard case .constant(let constant) = node else { throw CancellationError() }
    return .value(ExpressionValue(constant))
  }
}

/// The store that the rows refer to.
struct ExpressionTableStore {
  let model: ManagedObjectModel
  let schema: StoreSchema
  let connection: Connection
  let source: StoreInstanceSource
  let order = InstanceID(entity: "Order", key: 1)

  init() throws {
    model = Self.model
    schema = StoreSchema(model: model, frameworkVersion: 1344, naming: JoinTableNaming())
    connection = try Connection(path: "", access: .memory)
    try connection.attachMemory(as: "store")
    try StoreWriter(connection: connection, schema: "store").createTables(schema)
    try ExpressionFunctions.register(on: connection)
    source = StoreInstanceSource(reader: StoreReader(connection: connection, schema: "store"), schema: schema)
    try fill()
  }

  func scope(_ row: ExpressionRow) -> ExpressionScope {
    ExpressionScope(model: model, sourceEntity: "Order", place: row.isPredicate ? .sourceFilter : .attribute)
  }

  private static var model: ManagedObjectModel {
    func attribute(_ name: String, _ type: AttributeType) -> Attribute {
      Attribute(name: name, type: type, isOptional: true)
    }
    func toMany(_ name: String, _ destination: String, _ inverse: String, isOrdered: Bool = false) -> Relationship {
      Relationship(
        name: name, destinationEntityName: destination, inverseName: inverse, isToMany: true, isOrdered: isOrdered)
    }
    let order = Entity(
      name: "Order",
      attributes: [
        attribute("number", .integer32), attribute("small", .integer16), attribute("large", .integer64),
        attribute("total", .double), attribute("rate", .float), attribute("price", .decimal),
        attribute("paid", .boolean), attribute("note", .string), attribute("code", .string),
        attribute("empty", .string), attribute("missing", .string), attribute("accent", .string),
        attribute("marked", .string), attribute("at", .date), attribute("ref", .uuid), attribute("link", .uri),
        attribute("blob", .binary), attribute("maybe", .integer32),
      ],
      relationships: [
        toMany("items", "Item", "order"), toMany("queue", "Item", "queued", isOrdered: true),
        Relationship(name: "buyer", destinationEntityName: "Person", inverseName: "orders"),
        Relationship(name: "nobody", destinationEntityName: "Person", inverseName: "others"),
      ])
    let person = Entity(
      name: "Person", attributes: [attribute("name", .string), attribute("age", .integer16)],
      relationships: [toMany("orders", "Order", "buyer"), toMany("others", "Order", "nobody")])
    let item = Entity(
      name: "Item",
      attributes: [attribute("price", .double), attribute("count", .integer32), attribute("name", .string)],
      relationships: [
        Relationship(name: "order", destinationEntityName: "Order", inverseName: "items"),
        Relationship(name: "queued", destinationEntityName: "Order", inverseName: "queue"),
        toMany("tags", "Tag", "marked"),
      ])
    let tag = Entity(
      name: "Tag", attributes: [attribute("weight", .integer16), attribute("label", .string)],
      relationships: [toMany("marked", "Item", "tags")])
    return ManagedObjectModel(name: "Shop", entities: [order, person, item, tag])
  }

  // MARK: Rows

  private func insert(_ entity: String, _ key: Int64, _ values: [String: SQLiteValue]) throws {
    let table = try #require(schema.table(of: entity))
    try connection.run(
      "INSERT INTO store.\(SQLiteIdentifier.quoted(table.name)) (Z_PK, Z_ENT, Z_OPT) VALUES (?, ?, 1)",
      [.integer(key), .integer(schema.number(of: entity) ?? 0)])
    for (name, value) in values {
      let column: String
      if let attribute = schema.column(ofAttribute: name, in: entity) {
        column = attribute
      } else if let own = schema.storage(ofRelationship: name, in: entity)?.ownColumns?.key {
        column = own
      } else {
        throw CancellationError()
      }
      try connection.run(
        "UPDATE store.\(SQLiteIdentifier.quoted(table.name)) SET \(SQLiteIdentifier.quoted(column)) = ? WHERE Z_PK = ?",
        [value, .integer(key)])
    }
  }

  private func fill() throws {
    try insert("Person", 1, ["name": .text("Ann"), "age": .integer(30)])
    try insert(
      "Order", 1,
      [
        "number": .integer(7), "small": .integer(-3), "large": .integer(9_007_199_254_740_993), "total": .real(12.5),
        "rate": .real(Double(Float(0.1))), "price": .real(1.5), "paid": .integer(1), "note": .text("Straße"),
        "code": .text("  42abc"), "empty": .text(""), "accent": .text("\u{e9}"), "marked": .text("e\u{301}"),
        "at": .real(700_000_000.75), "ref": .blob([UInt8](repeating: 0, count: 15) + [255]),
        "link": .text("http://example.com/a?b=c"), "blob": .blob([1, 2, 3, 4]), "buyer": .integer(1),
      ])
    for (key, weight) in [(Int64(1), Int64(5)), (2, 7)] { try insert("Tag", key, ["weight": .integer(weight)]) }
    let items: [(SQLiteValue, SQLiteValue, SQLiteValue)] = [
      (.real(10), .integer(1), .text("a")), (.real(10), .integer(2), .text("A")),
      (.real(20.5), .integer(2), .text("b")), (.null, .null, .null),
    ]
    for (index, item) in items.enumerated() {
      try insert(
        "Item", Int64(index + 1),
        ["price": item.0, "count": item.1, "name": item.2, "order": .integer(1), "queued": .integer(1)])
    }
    guard case .members(let queue)? = schema.storage(ofRelationship: "queue", in: "Order"),
      let orderKey = queue.orderKey,
      let join = schema.joinTables.first
    else { throw CancellationError() }
    try connection.run(
      "UPDATE store.\(SQLiteIdentifier.quoted(queue.table)) SET \(SQLiteIdentifier.quoted(orderKey)) = Z_PK * 1024")
    let isOwner = join.entity == "Item"
    for (item, tag) in [(1, 1), (1, 2), (2, 2)] {
      let pair = isOwner ? (item, tag) : (tag, item)
      try connection.run(
        "INSERT INTO store.\(SQLiteIdentifier.quoted(join.name)) (\(SQLiteIdentifier.quoted(join.ownerColumn)),"
          + " \(SQLiteIdentifier.quoted(join.targetColumn))) VALUES (\(pair.0), \(pair.1))")
    }
  }
}
