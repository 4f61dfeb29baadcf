// A store as text, for people, for tests and for comparing two stores: one JSON object per line, in an order that
// depends only on the content. It streams: memory stays constant however large the store or one relationship is.

import Diagnostics
import ManagedObjectModel
import SQLite

extension HopdError.Code {
  /// A dump lacks a part of the store.
  package static let dumpIncomplete = HopdError.Code("dump-incomplete", exit: .dataError)
}

/// Writes the objects of a store as NDJSON: `{"entity","id","attributes":{…},"relationships":{…}}`.
package struct StoreDump {
  private let reader: StoreReader
  private let schema: StoreSchema
  private let entityByNumber: [Int64: String]
  private let external: ExternalDataDirectory?
  private let binary: BinaryForm
  private let selection: StoreSelection
  private let isExact: Bool

  /// Creates the dump of the objects in `selection` of the store that `reader` has open, with the layout `schema`;
  /// external files are read from `external`. With `isExact` a date whose text would round it is a number of seconds.
  package init(
    reader: StoreReader, schema: StoreSchema, external: ExternalDataDirectory? = nil, binary: BinaryForm = .digest,
    selection: StoreSelection = .all, isExact: Bool = false
  ) {
    self.selection = selection
    self.isExact = isExact
    self.external = external
    self.binary = binary
    self.reader = reader
    self.schema = schema
    entityByNumber = schema.entityNames
  }

  /// Writes every object by entity number and Z_PK; `emit` receives portions of text, and a line may span several.
  ///
  /// Returns the counts of the dump.
  @discardableResult
  package func write(_ emit: @escaping ([UInt8]) throws -> Void) throws -> Written {
    var lines = JSONLines(emit: emit)
    let values = BinaryValues(form: binary, external: external)
    var count: Int64 = 0
    var leftOut = LeftOut(present: try presentColumns())
    for (number, entity) in entityByNumber.sorted(by: { $0.key < $1.key }) {
      guard let value = schema.model.entity(named: entity), !value.isAbstract, let table = schema.table(of: entity),
        selection.contains(entity), leftOut.has(table)
      else { continue }
      count &+= try write(value, number: number, table: table, binary: values, leftOut: &leftOut, into: &lines)
    }
    try lines.flush()
    for table in schema.tables where selection.isAll && leftOut.present[table.name] != nil {
      try noteRows(ofNoEntity: table, in: &leftOut)
    }
    return Written(
      objects: count, missingFiles: values.missing, shortened: values.shortened,
      leftOut: schema.unsupported.filter { $0.code == .layoutUnsupported } + leftOut.errors)
  }

  /// The columns of the store's tables, by table.
  private func presentColumns() throws(SQLiteError) -> [String: Set<String>] {
    var present: [String: Set<String>] = [:]
    for object in try reader.schemaObjects() where object.type == "table" {
      guard schema.table(named: object.name) != nil || schema.joinTable(named: object.name) != nil else { continue }
      present[object.name] = Set(try reader.shape(of: object.name).columns.map(\.name))
    }
    return present
  }

  /// What the store has and the dump has not.
  private struct LeftOut {
    /// The columns of the store's tables, by table.
    let present: [String: Set<String>]
    private(set) var errors: [HopdError] = []
    private var noted: Set<String> = []

    init(present: [String: Set<String>]) { self.present = present }

    /// Whether the store has the table of entities; notes it if not.
    mutating func has(_ table: EntityTable) -> Bool {
      if present[table.name]?.isSuperset(of: ["Z_PK", "Z_ENT"]) == true { return true }
      note(
        "the table \(table.name) is missing, and with it every object of \(table.entities.joined(separator: ", "))",
        table.rootEntity)
      return false
    }

    /// Whether the store has columns of a table; notes the property if not.
    mutating func has(_ columns: [String], of table: String, _ entity: String, _ property: String) -> Bool {
      guard let found = present[table] else {
        note("the table \(table) is missing", entity, property)
        return false
      }
      guard let missing = columns.first(where: { !found.contains($0) }) else { return true }
      note("the column \(table).\(missing) is missing", entity, property)
      return false
    }

    mutating func note(_ message: String, _ entity: String, _ property: String? = nil) {
      guard noted.insert("\(message) \(property ?? "")").inserted else { return }
      errors.append(HopdError(.dumpIncomplete, message, at: Place(entity: entity, property: property)))
    }
  }

  /// Notes rows of a table that are objects of no entity of the model.
  private func noteRows(ofNoEntity table: EntityTable, in leftOut: inout LeftOut) throws(SQLiteError) {
    let concrete = table.entities.filter { schema.model.entity(named: $0)?.isAbstract == false }
      .compactMap { schema.number(of: $0) }
    let known = concrete.map(String.init).joined(separator: ", ")
    let count =
      try reader.connection.integer(
        "SELECT count(*) FROM \(reader.qualified(table.name)) WHERE Z_ENT IS NULL OR Z_ENT NOT IN (\(known))") ?? 0
    guard count > 0 else { return }
    leftOut.note(
      "\(count) \(count == 1 ? "row" : "rows") of \(table.name) with the number of no entity that has objects there",
      table.rootEntity)
  }

  /// The counts of a dump.
  package struct Written: Sendable {
    /// Objects, one a line.
    package let objects: Int64
    /// Values whose external file is missing or must not be read; their lines have only its name.
    package let missingFiles: Int64
    /// Values that are shown by their length and digest alone.
    package let shortened: Int64
    /// What the store has, or should have, and the dump has not; empty for a whole dump.
    package let leftOut: [HopdError]
  }

  // MARK: One entity

  /// An attribute with a column, and its index in the row.
  private struct AttributeColumn {
    let name: String
    let attribute: Attribute
    let index: Int32
  }

  /// One member of `attributes`: an attribute, or the elements of a composite.
  private struct AttributeGroup {
    /// Name of the composite; nil for a plain attribute.
    let composite: String?
    var columns: [AttributeColumn]
  }

  /// A relationship of the entity: a column of the row, or a cursor over the pairs of all rows.
  private enum RelationshipSource {
    case toOne(index: Int32, discriminator: Int32?, destination: String)
    case toMany(PairCursor, destination: String)
  }

  private func write(
    _ entity: Entity, number: Int64, table: EntityTable, binary: BinaryValues, leftOut: inout LeftOut,
    into lines: inout JSONLines
  ) throws -> Int64 {
    var columns = ["s.\"Z_PK\""]
    func index(of column: String, target: EntityTable? = nil) -> Int32 {
      let column = "s." + SQLiteIdentifier.quoted(column)
      let condition = target.flatMap { selection.condition(onReference: column, in: $0) }
      columns.append(condition.map { "CASE WHEN \($0) THEN \(column) END" } ?? column)
      return Int32(clamping: columns.count - 1)
    }
    let groups = attributeGroups(of: entity, in: table, leftOut: &leftOut) { index(of: $0) }
    var relationships: [(name: String, source: RelationshipSource)] = []
    let declared = schema.model.allRelationships(of: entity)
    for (name, relationship) in declared.sorted(by: { StoreDump.precedes($0.key, $1.key) }) {
      guard let storage = schema.storage(ofRelationship: name, in: entity.name) else { continue }
      let destination = relationship.destinationEntityName
      let place = storage.place
      guard leftOut.has(place.columns, of: place.table, entity.name, name) else { continue }
      if case .join = storage, let target = schema.table(of: destination)?.name,
        !leftOut.has(["Z_PK", "Z_ENT"], of: target, entity.name, name)
      {
        continue
      }
      if let own = storage.ownColumns {
        let key = index(of: own.key, target: schema.table(of: destination))
        relationships.append(
          (name, .toOne(index: key, discriminator: own.discriminator.map { index(of: $0) }, destination: destination)))
      } else if let cursor = try pairs(storage, destination: destination) {
        relationships.append((name, .toMany(cursor, destination: destination)))
      }
    }
    let selected = selection.condition(on: "s.\"Z_PK\"", in: table).map { " AND \($0)" } ?? ""
    let rows = try reader.connection.prepare(
      "SELECT \(columns.joined(separator: ", ")) FROM \(reader.qualified(table.name)) AS s"
        + " WHERE s.Z_ENT = \(number)\(selected) ORDER BY s.Z_PK")
    let start = "{\"entity\":\(try JSONLines.quoted(entity.name)),\"id\":\(try JSONLines.quoted(entity.name + "/p"))"
    let opening = String(start.dropLast())
    var count: Int64 = 0
    while try rows.step() {
      let key = rows.integer(at: 0)
      try lines.raw("\(opening)\(key)\",\"attributes\":{")
      for (offset, group) in groups.enumerated() {
        if offset > 0 { try lines.raw(",") }
        try write(group, row: rows, binary: binary, into: &lines)
      }
      try lines.raw("},\"relationships\":{")
      for (offset, relationship) in relationships.enumerated() {
        if offset > 0 { try lines.raw(",") }
        try lines.string(relationship.name)
        try lines.raw(":")
        try write(relationship.source, of: key, row: rows, into: &lines)
      }
      try lines.raw("}}\n")
      count &+= 1
    }
    return count
  }

  /// The members of `attributes` in the order of their names; `index` returns a column's index in a row.
  private func attributeGroups(
    of entity: Entity, in table: EntityTable, leftOut: inout LeftOut, index: (String) -> Int32
  ) -> [AttributeGroup] {
    var groups: [AttributeGroup] = []
    let placed = schema.model.allAttributes(of: entity).values.map {
      (place: $0.compositeName ?? $0.name, attribute: $0)
    }
    for (_, attribute) in placed.sorted(by: {
      $0.place == $1.place
        ? StoreDump.precedes($0.attribute.name, $1.attribute.name) : StoreDump.precedes($0.place, $1.place)
    }) {
      guard let column = schema.column(ofAttribute: attribute.name, in: entity.name),
        leftOut.has([column], of: table.name, entity.name, attribute.name)
      else { continue }
      let one = AttributeColumn(name: attribute.ownName, attribute: attribute, index: index(column))
      if let composite = attribute.compositeName, groups.last?.composite == composite {
        groups[groups.count - 1].columns.append(one)
      } else {
        groups.append(AttributeGroup(composite: attribute.compositeName, columns: [one]))
      }
    }
    return groups
  }

  /// Writes `"name":value`, or `"composite":{"element":value,…}`; a composite without any value is nil.
  private func write(
    _ group: AttributeGroup, row: Statement, binary: BinaryValues, into lines: inout JSONLines
  ) throws {
    if let composite = group.composite {
      try lines.string(composite)
      guard group.columns.contains(where: { !row.isNull(at: $0.index) }) else { return try lines.raw(":null") }
      try lines.raw(":{")
    }
    for (offset, column) in group.columns.enumerated() {
      if offset > 0 { try lines.raw(",") }
      try lines.string(column.name)
      try lines.raw(":")
      let value = row.value(at: column.index)
      // SQLite's reader replaced bytes that are not UTF-8 by U+FFFD.
      if case .text(let text) = value, text.unicodeScalars.contains("\u{fffd}"),
        let bytes = row.blob(at: column.index), !bytes.elementsEqual(text.utf8)
      {
        try AttributeText.write(invalidText: bytes, into: &lines)
      } else {
        try AttributeText.write(value, of: column.attribute, binary: binary, isExact: isExact, into: &lines)
      }
    }
    if group.composite != nil { try lines.raw("}") }
  }

  private func write(
    _ source: RelationshipSource, of owner: Int64, row: Statement, into lines: inout JSONLines
  ) throws {
    switch source {
    case .toOne(let index, let discriminator, let destination):
      if row.isNull(at: index) { return try lines.raw("null") }
      let number = discriminator.flatMap { row.isNull(at: $0) ? nil : row.integer(at: $0) }
      try write(target: row.integer(at: index), number: number, destination: destination, into: &lines)
    case .toMany(let cursor, let destination):
      try lines.raw("[")
      var isFirst = true
      while let pair = try cursor.next(of: owner) {
        if !isFirst { try lines.raw(",") }
        isFirst = false
        try write(target: pair.target, number: pair.number, destination: destination, into: &lines)
      }
      try lines.raw("]")
    }
  }

  /// Writes an id with the target's own entity if it is known, otherwise with the relationship's destination.
  private func write(
    target: Int64, number: Int64?, destination: String, into lines: inout JSONLines
  ) throws {
    try lines.string("\(number.flatMap { entityByNumber[$0] } ?? destination)/p\(target)")
  }

  // MARK: To-many relationships

  /// Returns all pairs of a to-many relationship by owner; nil if the storage is not that of a to-many.
  ///
  /// One cursor advances with the rows in the same order, so a pair is read once, with or without an index; SQLite does
  /// any sorting, and spills to its temporary files.
  private func pairs(_ storage: RelationshipStorage, destination: String) throws(SQLiteError) -> PairCursor? {
    func quoted(_ name: String) -> String { SQLiteIdentifier.quoted(name) }
    let sql: String
    switch storage {
    case .toOne: return nil
    case .members(let columns), .owned(let columns):
      let key = quoted(columns.key)
      let order = columns.orderKey.map { "\(quoted($0)), " } ?? ""
      let selected = schema.table(named: columns.table).flatMap { selection.condition(onReference: "Z_PK", in: $0) }
      sql =
        "SELECT \(key), Z_PK, Z_ENT FROM \(reader.qualified(columns.table)) WHERE \(key) IS NOT NULL"
        + (selected.map { " AND \($0)" } ?? "") + " ORDER BY \(key), \(order)Z_PK"
    case .join(let join):
      let (owner, target) = ("j.\(quoted(join.owner))", "j.\(quoted(join.target))")
      let order = join.order.map { "j.\(quoted($0)), " } ?? ""
      guard let table = schema.table(of: destination) else { return nil }
      sql =
        "SELECT \(owner), \(target), t.Z_ENT FROM \(join.pairs(in: reader.qualified(join.table))) AS j"
        + " LEFT JOIN \(reader.qualified(table.name)) AS t ON t.Z_PK = \(target)"
        + " WHERE \(owner) IS NOT NULL"
        + (selection.condition(onReference: target, in: table).map { " AND \($0)" } ?? "")
        + " ORDER BY \(owner), \(order)\(target)"
    }
    return PairCursor(try reader.connection.prepare(sql))
  }

  private static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }
}

/// Pairs of one to-many relationship, read once in the order of their owners.
private final class PairCursor {
  private let statement: Statement
  private var waiting: (owner: Int64, target: Int64, number: Int64?)?
  private var isAtEnd = false

  init(_ statement: Statement) { self.statement = statement }

  /// Returns the next target of `owner`; nil after its last one. Owners must come in ascending order; those of other
  /// entities of the same table are skipped.
  func next(of owner: Int64) throws(SQLiteError) -> (target: Int64, number: Int64?)? {
    while true {
      if waiting == nil, !isAtEnd {
        isAtEnd = try !statement.step()
        let number = isAtEnd || statement.isNull(at: 2) ? nil : statement.integer(at: 2)
        waiting = isAtEnd ? nil : (statement.integer(at: 0), statement.integer(at: 1), number)
      }
      guard let pair = waiting, pair.owner <= owner else { return nil }
      waiting = nil
      if pair.owner == owner { return (pair.target, pair.number) }
    }
  }
}
