// Writes the objects of one concrete entity.

import ManagedObjectModel
import PersistentStore
import SQLite

/// The columns of an entity's objects, and the statement that inserts one.
final class ObjectWriter {
  /// A to-one of the entity.
  struct Reference {
    let name: String
    let relationship: Relationship
    let columns: ToOneColumns
    /// Places of its values.
    let key: Int
    let discriminator: Int?
  }

  let entity: Entity
  let number: Int64
  let table: EntityTable
  /// The attributes with a column by name, with the places of their values.
  let attributes: [String: (attribute: Attribute, column: String, place: Int)]
  /// The names of derived attributes that the store computes of its objects.
  let computed: Set<String>
  let references: [String: Reference]
  /// The to-manys with a place in a store, by name.
  let collections: [String: (relationship: Relationship, storage: RelationshipStorage)]

  /// The key of the object.
  private(set) var key: Int64 = 0
  /// Large values of the object, for external files.
  var files: [(name: ExternalFileName, bytes: [UInt8])] = []
  private let initial: [SQLiteValue]
  private var values: [SQLiteValue]
  private let insert: Statement
  private let origin: Statement

  init(
    _ entity: Entity, number: Int64, table: EntityTable, schema: StoreSchema, connection: Connection, origins: String
  )
    throws(SQLiteError)
  {
    self.entity = entity
    self.number = number
    self.table = table
    var columns: [String] = []
    var initial: [SQLiteValue] = []
    func place(_ column: String, _ value: SQLiteValue) -> Int {
      columns.append(column)
      initial.append(value)
      return columns.count - 1
    }
    var attributes: [String: (attribute: Attribute, column: String, place: Int)] = [:]
    var computed: Set<String> = []
    for (name, attribute) in schema.model.allAttributes(of: entity).sorted(by: { $0.key < $1.key }) {
      guard let column = schema.column(ofAttribute: name, in: entity.name) else { continue }
      let derivation = schema.derivation(ofAttribute: name, in: entity.name)
      if derivation?.isComputed == true { computed.insert(name) }
      // An object without children has 0 in a count.
      let value: SQLiteValue =
        attribute.isDerived ? (derivation?.isCount == true ? .integer(0) : .null) : attribute.storedDefault ?? .null
      attributes[name] = (attribute, column, place(column, value))
    }
    var references: [String: Reference] = [:]
    var collections: [String: (relationship: Relationship, storage: RelationshipStorage)] = [:]
    for (name, relationship) in schema.model.allRelationships(of: entity).sorted(by: { $0.key < $1.key }) {
      guard let storage = schema.storage(ofRelationship: name, in: entity.name) else { continue }
      guard let own = storage.ownColumns else {
        collections[name] = (relationship, storage)
        continue
      }
      references[name] = Reference(
        name: name, relationship: relationship, columns: own, key: place(own.key, .null),
        discriminator: own.discriminator.map { place($0, .null) })
    }
    self.attributes = attributes
    self.computed = computed
    self.references = references
    self.collections = collections
    self.initial = initial
    values = initial
    let names = (["Z_PK", "Z_ENT", "Z_OPT"] + columns).map(SQLiteIdentifier.quoted)
    insert = try connection.prepare(
      "INSERT INTO \(SQLiteIdentifier.quoted(table.name)) (\(names.joined(separator: ", ")))"
        + " VALUES (\(names.map { _ in "?" }.joined(separator: ", ")))")
    origin = try connection.prepare("INSERT INTO \(origins) VALUES (?, ?, ?)")
  }

  /// Begins the object with a key: every attribute has its default.
  func begin(_ key: Int64) {
    self.key = key
    values = initial
    files = []
  }

  /// Sets a value by its place.
  func set(_ value: SQLiteValue, at place: Int) { values[place] = value }

  /// The value at a place.
  func value(at place: Int) -> SQLiteValue { values[place] }

  /// Inserts the object; `file` and `line` are where it comes from.
  func write(file: Int64, line: Int64) throws(SQLiteError) {
    try insert.bind(.integer(key), at: 1)
    try insert.bind(.integer(number), at: 2)
    try insert.bind(.integer(1), at: 3)
    for (offset, value) in values.enumerated() { try insert.bind(value, at: Int32(clamping: offset + 4)) }
    try insert.run()
    try origin.run([.integer(key), .integer(file), .integer(line)])
  }
}
