// A small store with every kind of attribute and relationship and random rows, for the tests of evaluator and compiler.
// The same seed gives the same rows.

import ManagedObjectModel
import PersistentStore
import SQLite
import SeededRandom
import SystemPackage

@testable import Expressions

/// The store.
final class ExpressionWorld {
  let model: ManagedObjectModel
  let schema: StoreSchema
  let connection: Connection
  let source: StoreInstanceSource
  private(set) var objects: [String: [InstanceID]] = [:]

  static let texts = [
    "", "a", "A", "ab", "abc", "ABC", "äb", "Äb", "a\u{308}b", "A\u{308}b", "é", "e\u{301}", "ß", "SS", "ss", "ſ", "İ",
    "i", "😀", "👩‍👩‍👧", "\u{fffd}", "a*b", "a?b", "a[b", "100%", "a_b", "it's", "\"q\"", "a\u{0}b", "日本", "\n", " 12",
    "12", "-7", "1e3", "9223372036854775807", "9223372036854775808", "12abc", "\u{d7ff}", "Ω", "Σας", "ΣΑΣ",
  ]
  static let integers: [Int64] = [
    0, 1, -1, 2, 3, 5, 7, 10, 100, 32767, -32768, 2_147_483_647, -2_147_483_648, .max, .min,
  ]
  static let doubles: [Double] = [
    0, -0.0, 0.1, 0.5, 1, 1.5, -2.5, 3, 1e15, 1e16, 9_007_199_254_740_992, 1e300, -1e300, .leastNonzeroMagnitude,
    0x1p63, -0x1p63,
    1.0 / 3,
    .infinity, 123456.789,
  ]

  init(seed: UInt64) throws {
    var dice = Dice(seed: seed)
    model = ExpressionWorld.model(&dice)
    schema = StoreSchema(
      model: model, frameworkVersion: dice.pick([419, 754, 1344]), naming: JoinTableNaming(["Person.friends"]))
    connection = try Connection(path: "", access: .memory)
    try connection.attachMemory(as: "store")
    try StoreWriter(connection: connection, schema: "store").createTables(schema)
    try ExpressionFunctions.register(on: connection)
    source = StoreInstanceSource(reader: StoreReader(connection: connection, schema: "store"), schema: schema)
    try fill(&dice)
  }

  private static func model(_ dice: inout Dice) -> ManagedObjectModel {
    func attribute(_ name: String, _ type: AttributeType, external: Bool = false) -> Attribute {
      Attribute(name: name, type: type, isOptional: true, allowsExternalStorage: external)
    }
    let item = Entity(
      name: "Item",
      attributes: [
        attribute("small", .integer16), attribute("middle", .integer32), attribute("large", .integer64),
        attribute("flag", .boolean), attribute("real", .double), attribute("single", .float),
        attribute("price", .decimal), attribute("name", .string), attribute("title", .string),
        attribute("link", .uri), attribute("day", .date), attribute("id", .uuid), attribute("bytes", .binary),
        attribute("picture", .binary, external: true), attribute("shape", .transformable),
      ],
      relationships: [
        Relationship(name: "owner", destinationEntityName: "Person", inverseName: "items"),
        Relationship(
          name: "tags", destinationEntityName: "Tag", inverseName: "marked", isToMany: true,
          isOrdered: dice.chance(50)),
        Relationship(name: "next", destinationEntityName: "Item"),
      ])
    let special = Entity(
      name: "Special", parentName: "Item", attributes: [attribute("extra", .string), attribute("level", .integer32)])
    let person = Entity(
      name: "Person",
      attributes: [attribute("name", .string), attribute("age", .integer32), attribute("score", .double)],
      relationships: [
        Relationship(
          name: "items", destinationEntityName: "Item", inverseName: "owner", isToMany: true, isOrdered: dice.chance(50)
        ),
        Relationship(
          name: "friends", destinationEntityName: "Person", inverseName: "friendOf", isToMany: true,
          isOrdered: dice.chance(50)),
        Relationship(name: "friendOf", destinationEntityName: "Person", inverseName: "friends", isToMany: true),
        Relationship(name: "badges", destinationEntityName: "Badge", isToMany: true),
      ])
    let tag = Entity(
      name: "Tag",
      attributes: [attribute("label", .string), attribute("weight", .integer16), attribute("since", .date)],
      relationships: [
        Relationship(
          name: "marked", destinationEntityName: "Item", inverseName: "tags", isToMany: true, isOrdered: dice.chance(50)
        ),
        Relationship(name: "best", destinationEntityName: "Special"),
      ])
    let badge = Entity(name: "Badge", attributes: [attribute("title", .string), attribute("points", .integer64)])
    return ManagedObjectModel(name: "World", entities: [item, special, person, tag, badge])
  }

  // MARK: Rows

  private func fill(_ dice: inout Dice) throws {
    for (entity, count) in [("Item", 9), ("Special", 5), ("Person", 5), ("Tag", 5), ("Badge", 4)] {
      let root = schema.table(of: entity)?.rootEntity ?? entity
      let first = Int64((objects["Item"]?.count ?? 0)) * (root == "Item" ? 1 : 0)
      objects[entity] = (1...count).map { InstanceID(entity: entity, key: first + Int64($0)) }
    }
    for (entity, list) in objects.sorted(by: { $0.key < $1.key }) {
      for object in list { try insert(object, entity, &dice) }
    }
    for join in schema.joinTables {
      for owner in all(join.entity) {
        for target in all(join.inverseEntity) where dice.chance(35) {
          let values = join.columns.indices.map { _ in SQLiteValue.integer(Int64(dice.below(5)) * 1024) }
          try connection.run(
            "INSERT INTO store.\(SQLiteIdentifier.quoted(join.name)) VALUES"
              + " (\(owner.key), \(target.key)\(values.dropFirst(2).map { ", " + $0.literal }.joined()))")
        }
      }
    }
  }

  /// Returns the objects of an entity and its subentities.
  func all(_ entity: String) -> [InstanceID] {
    guard let value = model.entity(named: entity) else { return [] }
    return model.subtree(of: value).flatMap { objects[$0.name] ?? [] }
  }

  private func insert(_ object: InstanceID, _ entityName: String, _ dice: inout Dice) throws {
    guard let entity = model.entity(named: entityName), let table = schema.table(of: entityName) else { return }
    let lineage = Set(model.lineage(of: entity).map(\.name))
    var columns: [(String, SQLiteValue)] = [
      ("Z_PK", .integer(object.key)), ("Z_ENT", .integer(schema.number(of: entityName) ?? 0)), ("Z_OPT", .integer(1)),
    ]
    for column in table.columns {
      switch column.role {
      case .attribute(let owner, let name) where lineage.contains(owner):
        guard let attribute = model.allAttributes(of: entity)[name] else { continue }
        columns.append((column.name, dice.chance(20) ? .null : value(of: attribute, &dice)))
      case .toOne(let owner, let name) where lineage.contains(owner):
        guard let relationship = model.allRelationships(of: entity)[name] else { continue }
        // Occasionally a reference to a missing object, or to one of another entity.
        let target = dice.pick(all(relationship.destinationEntityName)).key
        let key: SQLiteValue = dice.chance(15) ? .null : .integer(dice.chance(10) ? 99 : target)
        columns.append((column.name, key))
      case .owner: columns.append((column.name, dice.chance(25) ? .null : .integer(Int64(dice.below(6)))))
      case .orderKey where dice.chance(80):
        columns.append((column.name, .integer(Int64(dice.below(4)) * 1024)))
      default: break
      }
    }
    try connection.run(
      "INSERT INTO store.\(SQLiteIdentifier.quoted(table.name))"
        + " (\(columns.map { SQLiteIdentifier.quoted($0.0) }.joined(separator: ", ")))"
        + " VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))", columns.map(\.1))
  }

  private func value(of attribute: Attribute, _ dice: inout Dice) -> SQLiteValue {
    switch attribute.type {
    case .integer16: return .integer(dice.pick(Self.integers.filter { Int16(exactly: $0) != nil }))
    case .integer32: return .integer(dice.pick(Self.integers.filter { Int32(exactly: $0) != nil }))
    case .integer64: return .integer(dice.pick(Self.integers))
    case .boolean: return .integer(Int64(dice.below(2)))
    case .double: return .real(dice.pick(Self.doubles))
    case .float: return .real(Double(Float(dice.pick([0, 0.1, 1.5, -3, 1e10]))))
    // The TIMESTAMP and DECIMAL columns store whole numbers as integers.
    case .date, .decimal: return .real(dice.pick([0, 10.11, 0.1, -3, 7, 700_000_000.25, 12]))
    case .uuid: return .blob([UInt8](repeating: UInt8(dice.below(3)), count: 16))
    case .binary where attribute.allowsExternalStorage: return .blob([1, 2, 3])
    case .binary, .transformable: return .blob(dice.pick([[], [1], [1, 2], [0]]))
    default: return .text(dice.pick(Self.texts))
    }
  }
}
