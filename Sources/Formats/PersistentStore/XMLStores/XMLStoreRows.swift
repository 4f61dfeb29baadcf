// The rows of a SQLite store for the objects of an XML store of the same version. A value or reference that cannot be
// placed exactly is an error, and then there is no SQLite store: half of one would look whole.

import Diagnostics
import ManagedObjectModel
import PropertyLists
import SQLite
import SystemPackage

extension XMLStore {
  /// Creates the SQLite store at `path`, which must not exist: the UUID, the app's metadata and every object stay;
  /// primary keys follow the ids of the objects.
  package func makeStore(at path: FilePath, schema: StoreSchema, file: Place) throws {
    let fresh = try FreshStore(schema: schema, uuid: metadata.uuid)
    var described = StoreMetadata.fresh(
      uuid: metadata.uuid, model: schema.model, frameworkVersion: schema.frameworkVersion)
    described.entries.merge(metadata.entries) { own, _ in own }
    var rows = XMLStoreRows(schema: schema, file: file)
    try rows.place(objects)
    try fresh.make(at: path, metadata: described) { try rows.insert(into: $0) }
  }
}

/// The rows of all objects.
private struct XMLStoreRows {
  let schema: StoreSchema
  let file: Place
  private var rows: [Row] = []
  private var places: [String: Int] = [:]
  /// Owner and target of each pair of a join table, with the order keys.
  private var pairs: [String: [Pair: Order]] = [:]
  /// The pairs of to-ones, and of the to-manys at their other ends, which must be the same.
  private var links: [(column: String, forward: Set<Pair>, backward: Set<Pair>)] = []

  private struct Row {
    let object: XMLStoreObject
    let entity: Entity
    let table: EntityTable
    let number: Int64
    var key: Int64 = 0
    var cells: [String: SQLiteValue] = [:]
  }

  private struct Pair: Hashable {
    let owner: Int64
    let target: Int64
  }

  private struct Order {
    var owner: Int64?
    var inverse: Int64?
    var isSeenFromOwner = false
    var isSeenFromTarget = false
  }

  init(schema: StoreSchema, file: Place) {
    self.schema = schema
    self.file = file
  }

  // MARK: Objects

  mutating func place(_ objects: [XMLStoreObject]) throws(HopdError) {
    var entities: [String: [Entity]] = [:]
    for entity in schema.model.entities { entities[entity.name.uppercased(), default: []].append(entity) }
    for object in objects {
      guard let entity = entities[object.entity]?.first, entities[object.entity]?.count == 1, !entity.isAbstract,
        let table = schema.table(of: entity.name), let number = schema.number(of: entity.name)
      else { throw invalid("no single entity of the model is \(object.entity)", object) }
      rows.append(Row(object: object, entity: entity, table: table, number: number))
    }
    // The ids of a store are z and a number; the keys keep their order.
    rows.sort {
      ($0.object.id.utf8.count, $0.object.id) < ($1.object.id.utf8.count, $1.object.id)
    }
    var last: [String: Int64] = [:]
    for index in rows.indices {
      last[rows[index].table.name, default: 0] += 1
      rows[index].key = last[rows[index].table.name] ?? 0
      places[rows[index].object.id] = index
    }
    for index in rows.indices { try placeAttributes(of: index) }
    for index in rows.indices { try placeReferences(of: index) }
    try requireBothEnds()
  }

  /// The properties of an entity by their names in an XML store.
  private func named<Value>(_ properties: [String: Value], _ object: XMLStoreObject) throws(HopdError) -> [String: (
    name: String, value: Value
  )] {
    var result: [String: (name: String, value: Value)] = [:]
    for (name, value) in properties {
      guard result.updateValue((name, value), forKey: name.lowercased()) == nil else {
        throw invalid("two properties of \(object.entity) differ only in the case of letters: \(name)", object)
      }
    }
    return result
  }

  private mutating func placeAttributes(of index: Int) throws(HopdError) {
    let row = rows[index]
    let attributes = try named(schema.model.allAttributes(of: row.entity), row.object)
    for (key, found) in row.object.values {
      guard let (name, attribute) = attributes[key], attribute.compositeName == nil else {
        throw invalid("\(row.entity.name) has no attribute \(key) that hopd can place", row.object)
      }
      guard let column = schema.column(ofAttribute: name, in: row.entity.name) else { continue }
      guard let value = XMLStoreValue(found.text, ofType: found.type).stored(as: attribute) else {
        throw invalid("the value of \(row.entity.name).\(name) is no \(attribute.type.traits.name)", row.object)
      }
      rows[index].cells[column] = value
    }
  }

  // MARK: References

  private mutating func placeReferences(of index: Int) throws(HopdError) {
    let row = rows[index]
    let relationships = try named(schema.model.allRelationships(of: row.entity), row.object)
    for (key, ids) in row.object.references.sorted(by: { $0.key < $1.key }) {
      guard let (name, relationship) = relationships[key] else {
        throw invalid("\(row.entity.name) has no relationship \(key)", row.object)
      }
      guard let storage = schema.storage(ofRelationship: name, in: row.entity.name) else {
        // A transient one has no column.
        if ids.isEmpty || relationship.isTransient { continue }
        throw invalid("the storage of \(row.entity.name).\(name) is unknown", row.object)
      }
      var targets: [Int] = []
      for id in ids {
        guard let target = places[id] else {
          throw invalid("\(row.entity.name).\(name) refers to \(id), which does not exist", row.object)
        }
        guard
          schema.model.lineage(of: rows[target].entity).contains(where: {
            $0.name == relationship.destinationEntityName
          })
        else {
          throw invalid("\(row.entity.name).\(name) refers to an object of \(rows[target].entity.name)", row.object)
        }
        targets.append(target)
      }
      guard Set(targets).count == targets.count else {
        throw invalid("\(row.entity.name).\(name) refers twice to one object", row.object)
      }
      try place(targets, of: index, name, storage)
    }
  }

  private mutating func place(
    _ targets: [Int], of index: Int, _ name: String, _ storage: RelationshipStorage
  ) throws(HopdError) {
    let row = rows[index]
    func order(_ position: Int) -> Int64 { OrderKey.zero + OrderKey.step * Int64(position + 1) }
    switch storage {
    case .toOne(let columns, let other):
      guard targets.count < 2 else { throw invalid("\(row.entity.name).\(name) has several targets", row.object) }
      guard let target = targets.first else { return }
      rows[index].cells[columns.key] = .integer(rows[target].key)
      if let column = columns.discriminator { rows[index].cells[column] = .integer(rows[target].number) }
      let pair = Pair(owner: Int64(index), target: Int64(target))
      note(pair, "\(columns.table).\(columns.key)", isForward: true)
      if let other {
        note(Pair(owner: pair.target, target: pair.owner), "\(other.table).\(other.key)", isForward: false)
      }
    case .members(let columns):
      for (position, target) in targets.enumerated() {
        if let column = columns.orderKey { rows[target].cells[column] = .integer(order(position)) }
        note(
          Pair(owner: Int64(target), target: Int64(index)), "\(columns.table).\(columns.key)", isForward: false)
      }
    case .owned(let columns):
      for (position, target) in targets.enumerated() {
        guard rows[target].cells.updateValue(.integer(row.key), forKey: columns.key) == nil else {
          throw invalid(
            "an object of \(row.entity.name).\(name) has two owners, and a SQLite store keeps one", row.object)
        }
        if let column = columns.orderKey { rows[target].cells[column] = .integer(order(position)) }
      }
    case .join(let columns):
      for (position, target) in targets.enumerated() {
        let (near, far) = (row.key, rows[target].key)
        let pair = columns.isOwner ? Pair(owner: near, target: far) : Pair(owner: far, target: near)
        var found = pairs[columns.table, default: [:]][pair] ?? Order()
        if columns.isOwner { found.isSeenFromOwner = true } else { found.isSeenFromTarget = true }
        if columns.order != nil {
          if columns.isOwner { found.owner = order(position) } else { found.inverse = order(position) }
        }
        pairs[columns.table, default: [:]][pair] = found
      }
    }
  }

  private mutating func note(_ pair: Pair, _ column: String, isForward: Bool) {
    let place = links.firstIndex { $0.column == column } ?? links.count
    if place == links.count { links.append((column, [], [])) }
    if isForward { links[place].forward.insert(pair) } else { links[place].backward.insert(pair) }
  }

  /// Throws if the two ends of a relationship contradict each other.
  private func requireBothEnds() throws(HopdError) {
    let withInverse = Set(
      schema.model.entities.flatMap { entity in
        entity.relationships.compactMap { relationship -> String? in
          guard schema.model.inverse(of: relationship) != nil,
            case .toOne(let columns, _)? = schema.storage(ofRelationship: relationship.name, in: entity.name)
          else { return nil }
          return "\(columns.table).\(columns.key)"
        }
      })
    for link in links where withInverse.contains(link.column) && link.forward != link.backward {
      let odd = link.forward.symmetricDifference(link.backward).min { $0.owner < $1.owner }
      throw invalid("the two ends of a relationship contradict each other", odd.map { rows[Int($0.owner)].object })
    }
    for join in schema.joinTables {
      for (pair, order) in pairs[join.name] ?? [:] {
        let isWhole =
          join.isOwnInverse
          ? pairs[join.name]?[Pair(owner: pair.target, target: pair.owner)] != nil
          : order.isSeenFromOwner && order.isSeenFromTarget
        if !isWhole { throw invalid("the two ends of \(join.entity).\(join.relationship) contradict each other", nil) }
      }
    }
  }

  // MARK: Rows

  /// Inserts the rows; returns the highest key of each root entity.
  func insert(into connection: Connection) throws -> [String: Int64] {
    var marks: [String: Int64] = [:]
    try connection.transaction {
      for table in schema.tables {
        let insert = try statement(table.name, table.columns.map(\.name), connection)
        for row in rows where row.table.name == table.name {
          marks[table.rootEntity] = row.key
          try insert.run(
            table.columns.map { column in
              switch column.role {
              case .primaryKey: .integer(row.key)
              case .entityNumber: .integer(row.number)
              case .saveCount: .integer(1)
              default: row.cells[column.name] ?? .null
              }
            })
        }
      }
      for join in schema.joinTables {
        let insert = try statement(join.name, join.columns, connection)
        let sorted = (pairs[join.name] ?? [:]).sorted { ($0.key.owner, $0.key.target) < ($1.key.owner, $1.key.target) }
        for (pair, order) in sorted {
          var values: [SQLiteValue] = [.integer(pair.owner), .integer(pair.target)]
          if join.inverseOrderColumn != nil { values.append(order.inverse.map { .integer($0) } ?? .null) }
          if join.orderColumn != nil { values.append(order.owner.map { .integer($0) } ?? .null) }
          try insert.run(values)
        }
      }
    }
    return marks
  }

  private func statement(_ table: String, _ columns: [String], _ connection: Connection) throws -> Statement {
    let names = columns.map(SQLiteIdentifier.quoted).joined(separator: ", ")
    let places = Array(repeating: "?", count: columns.count).joined(separator: ", ")
    return try connection.prepare("INSERT INTO \(SQLiteIdentifier.quoted(table)) (\(names)) VALUES (\(places))")
  }

  private func invalid(_ what: String, _ object: XMLStoreObject?) -> HopdError {
    HopdError(
      .xmlStoreInvalid, "the XML store cannot become a SQLite store: \(what)",
      at: object.map { Place(line: $0.line).filled(from: file) } ?? file,
      hint: "convert it with the app: migratePersistentStore with NSSQLiteStoreType; nothing was written")
  }
}
