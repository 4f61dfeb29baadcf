// Makes the changes of policies in the staged store. Every part is checked first: entity, property, type of value, key,
// and that the objects it refers to exist. All changes are made inside the transaction of a chunk.

import Diagnostics
import ManagedObjectModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// Writes objects of the staged store for one hop.
final class PolicyObjectWriter {
  /// A to-one or to-many of an inserted object that refers to objects which the same batch inserts later.
  private struct Waiting {
    let speaker: PolicySpeaker
    let owner: PolicyObjectID
    let link: PolicyLink
    let value: PolicyValue
  }

  let side: PolicySide
  private let connection: Connection
  private let keys: PolicyKeyCounters
  let targets: PolicyTargetEntity
  private let links: PolicyLinkWriter
  private let associations: PolicyAssociations
  private var inserts: [String: Insert] = [:]
  private var updates: [String: [[Int]: Statement]] = [:]
  private var deletes: [String: Statement] = [:]
  private var waiting: [Waiting] = []
  /// The column values of standard objects whose content came from external files: if a policy returns the content
  /// unchanged, the column gets the reference itself, so that the file stays in use.
  private var references: [Int64: [(attribute: String, content: PolicyValue, stored: SQLiteValue)]] = [:]

  init(
    side: PolicySide, connection: Connection, keys: PolicyKeyCounters, targets: PolicyTargetEntity,
    links: PolicyLinkWriter, associations: PolicyAssociations
  ) {
    self.side = side
    self.connection = connection
    self.keys = keys
    self.targets = targets
    self.links = links
    self.associations = associations
  }

  /// Sets the external references of the current chunk's standard objects, by key.
  func keepReferences(_ references: [Int64: [(attribute: String, content: PolicyValue, stored: SQLiteValue)]]) {
    self.references = references
  }

  /// Makes changes in order; returns the number of objects inserted.
  func apply(_ operations: [PolicyOperation], mapping: Int, for speaker: PolicySpeaker) throws -> Int64 {
    var inserted: Int64 = 0
    for operation in operations {
      if case .insert(let object) = operation {
        try insert(object, for: speaker)
        inserted += 1
        continue
      }
      // Later changes may refer to the objects that were inserted.
      try settle()
      switch operation {
      case .insert: break
      case .set(let object): try set(object, for: speaker)
      case .add(let id, let name, let members):
        let (owner, link) = try toMany(name, of: id, for: speaker)
        try links.add(try rows(members, of: id, link, for: speaker), to: link, of: owner)
      case .remove(let id, let name, let members):
        let (owner, link) = try toMany(name, of: id, for: speaker)
        try links.remove(try rows(members, of: id, link, for: speaker), from: link, of: owner)
      case .delete(let id): try delete(id, for: speaker)
      case .associate(let source, let destination):
        try associations.associate(source, with: row(destination, for: speaker), mapping: mapping, for: speaker)
      }
    }
    try settle()
    return inserted
  }

  // MARK: Inserting

  /// The statement that inserts an entity's objects, and the values that it writes by default.
  private final class Insert {
    let statement: Statement
    let defaults: [SQLiteValue]
    /// The position of each to-one's first value; its discriminator and order key follow.
    let toOnePositions: [Int]
    /// The attributes whose default only the app can store.
    let unwritable: [Int]

    init(_ shape: PolicyShape, side: PolicySide, connection: Connection) throws(SQLiteError) {
      var columns = ["Z_PK", "Z_ENT", "Z_OPT"] + shape.attributes.map(\.column)
      var defaults: [SQLiteValue] = [.null, .integer(shape.number), .integer(1)]
      defaults += shape.attributes.map { $0.isComputed ? .integer(0) : $0.form.attribute.storedDefault ?? .null }
      unwritable = shape.attributes.indices.filter {
        shape.attributes[$0].form.attribute.storedDefault == nil && !shape.attributes[$0].form.attribute.isOptional
      }
      var positions: [Int] = []
      for slot in shape.toOnes {
        positions.append(columns.count)
        guard case .toOne(let own, nil) = slot.link.storage else { continue }
        let names = own.names
        columns += names
        defaults += names.map { _ in .null }
      }
      toOnePositions = positions
      self.defaults = defaults
      let list = columns.map(SQLiteIdentifier.quoted).joined(separator: ", ")
      let marks = columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
      statement = try connection.prepare("INSERT INTO \(side.qualified(shape.table.name)) (\(list)) VALUES (\(marks))")
    }
  }

  private func insert(_ object: PolicyObject, for speaker: PolicySpeaker) throws {
    let shape = try self.shape(object.id, for: speaker)
    guard !shape.entity.isAbstract else {
      throw speaker.failure("it wants to insert an object of an abstract entity", at: object.id)
    }
    if let problem = keys.take(object.id.key, root: shape.root) { throw speaker.failure(problem, at: object.id) }
    let insert: Insert
    if let known = inserts[shape.name] {
      insert = known
    } else {
      insert = try Insert(shape, side: side, connection: connection)
      inserts[shape.name] = insert
    }
    var values = insert.defaults
    values[0] = .integer(object.id.key)
    var later: [(PolicyLink, PolicyValue)] = []
    let kept = references.isEmpty ? nil : references[object.id.key]
    for (name, value) in object.values {
      switch shape.slots[name] {
      case .attribute(let index):
        values[3 + index] = try stored(value, of: shape.attributes[index], object.id, kept: kept, for: speaker)
      case .toOne(let index):
        let link = shape.toOnes[index].link
        guard case .toOne(let own, nil) = link.storage else {
          later.append((link, value))
          continue
        }
        guard value != .null else { continue }
        let target = try target(value, of: object.id, link, for: speaker)
        guard try targets.number(of: target.key, in: link.targetTable) != nil else {
          later.append((link, value))
          continue
        }
        let row = try self.row(target, of: object.id, link, for: speaker)
        var position = insert.toOnePositions[index]
        values[position] = .integer(row.key)
        if own.discriminator != nil {
          position += 1
          values[position] = .integer(row.number)
        }
        if own.orderKey != nil { values[position + 1] = try links.nextOrder(own, owner: row.key) }
      case .toMany(let index): later.append((shape.toManys[index].link, value))
      case nil: throw unknown(name, object.id, for: speaker)
      }
    }
    for index in insert.unwritable where object.values[shape.attributes[index].name] == nil {
      throw speaker.failure(
        "the default is an object which only the app can turn into a stored value, so the policy must give one",
        at: object.id, property: shape.attributes[index].name)
    }
    try insert.statement.run(values)
    waiting += later.map { Waiting(speaker: speaker, owner: object.id, link: $0.0, value: $0.1) }
  }

  /// Sets the relationships that had to wait until all objects of the batch were inserted.
  private func settle() throws {
    guard !waiting.isEmpty else { return }
    let all = waiting
    waiting = []
    for item in all { try set(item.link, of: item.owner, to: item.value, for: item.speaker) }
  }

  // MARK: Setting

  private func set(_ object: PolicyObject, for speaker: PolicySpeaker) throws {
    let shape = try self.shape(object.id, for: speaker)
    var columns: [(index: Int, value: SQLiteValue)] = []
    var relationships: [(PolicyLink, PolicyValue)] = []
    for (name, value) in object.values {
      switch shape.slots[name] {
      case .attribute(let index):
        columns.append(
          (
            index,
            try stored(value, of: shape.attributes[index], object.id, kept: references[object.id.key], for: speaker)
          ))
      case .toOne(let index): relationships.append((shape.toOnes[index].link, value))
      case .toMany(let index): relationships.append((shape.toManys[index].link, value))
      case nil: throw unknown(name, object.id, for: speaker)
      }
    }
    if columns.isEmpty {
      _ = try row(object.id, for: speaker)
    } else {
      columns.sort { $0.index < $1.index }
      let statement = try update(shape, columns.map(\.index))
      try statement.run([.integer(object.id.key), .integer(shape.number)] + columns.map(\.value))
      guard connection.changes == 1 else { throw missing(object.id, for: speaker) }
    }
    // In a fixed order, because two of them may be the ends of one relationship.
    for (link, value) in relationships.sorted(by: { $0.0.name < $1.0.name }) {
      try set(link, of: object.id, to: value, for: speaker)
    }
  }

  private func set(
    _ link: PolicyLink, of id: PolicyObjectID, to value: PolicyValue, for speaker: PolicySpeaker
  ) throws {
    let owner = try row(id, for: speaker)
    if link.isToMany {
      let members: [PolicyObjectID]
      switch value {
      case .objects(let ids): members = ids
      case .null: members = []
      default:
        throw speaker.failure(
          "a to-many takes a list of objects, and the policy sent \(value.kind)", at: id, property: link.name)
      }
      var seen: Set<Int64> = []
      // A set has an object once; its first position counts.
      let rows = try rows(members, of: id, link, for: speaker).filter { seen.insert($0.key).inserted }
      try links.replace(link, of: owner, with: rows)
    } else if value == .null {
      try links.set(link, of: owner, to: nil)
    } else {
      let target = try target(value, of: id, link, for: speaker)
      try links.set(link, of: owner, to: try row(target, of: id, link, for: speaker))
    }
  }

  /// Returns the UPDATE of some of an entity's attributes. Policies set the same few combinations again and again.
  private func update(_ shape: PolicyShape, _ indexes: [Int]) throws(SQLiteError) -> Statement {
    if let known = updates[shape.name]?[indexes] { return known }
    let list = indexes.enumerated().map {
      "\(SQLiteIdentifier.quoted(shape.attributes[$0.element].column)) = ?\($0.offset + 3)"
    }
    let statement = try connection.prepare(
      "UPDATE \(side.qualified(shape.table.name)) SET \(list.joined(separator: ", "))"
        + " WHERE \"Z_PK\" = ?1 AND \"Z_ENT\" = ?2")
    if updates[shape.name, default: [:]].count >= 256 { updates[shape.name] = [:] }
    updates[shape.name, default: [:]][indexes] = statement
    return statement
  }

  // MARK: Deleting

  private func delete(_ id: PolicyObjectID, for speaker: PolicySpeaker) throws {
    let shape = try self.shape(id, for: speaker)
    let row = try self.row(id, for: speaker)
    try links.clearReferences(to: row.key, in: shape.table)
    for slot in shape.toManys {
      // Members lost their owner with the columns above; the pairs of a many-to-many were removed with them.
      if case .owned = slot.link.storage { try links.replace(slot.link, of: row, with: []) }
    }
    try associations.forget(destination: row)
    try deletes[shape.table.name]
      .prepared(on: connection, "DELETE FROM \(side.qualified(shape.table.name)) WHERE \"Z_PK\" = ?1")
      .run([.integer(row.key)])
  }
}

// The checks before a policy's change is written.

extension PolicyObjectWriter {
  /// Throws if a result of a policy's method cannot be the value of an attribute.
  func check(_ value: PolicyValue, of attribute: String, _ id: PolicyObjectID, for speaker: PolicySpeaker) throws {
    let shape = try shape(id, for: speaker)
    guard case .attribute(let index)? = shape.slots[attribute] else { throw unknown(attribute, id, for: speaker) }
    _ = try stored(value, of: shape.attributes[index], id, kept: nil, for: speaker)
  }

  func shape(_ id: PolicyObjectID, for speaker: PolicySpeaker) throws -> PolicyShape {
    guard id.side == .destination else {
      throw speaker.failure("it wants to change an object of the source", at: id)
    }
    guard let shape = side.shape(of: id.entity) else {
      throw speaker.failure("the destination version has no entity \(id.entity)", at: id)
    }
    return shape
  }

  /// Returns the row of an object, which must exist with that entity.
  func row(_ id: PolicyObjectID, for speaker: PolicySpeaker) throws -> PolicyLinkWriter.Row {
    let shape = try self.shape(id, for: speaker)
    guard try targets.number(of: id.key, in: shape.table.name) == shape.number else { throw missing(id, for: speaker) }
    return PolicyLinkWriter.Row(key: id.key, number: shape.number)
  }

  /// Returns the row of an object that a relationship shall point to.
  func row(
    _ target: PolicyObjectID, of owner: PolicyObjectID, _ link: PolicyLink, for speaker: PolicySpeaker
  ) throws -> PolicyLinkWriter.Row {
    guard target.side == .destination else {
      throw speaker.failure("it points a relationship to an object of the source", at: owner, property: link.name)
    }
    guard let shape = side.shape(of: target.entity), link.targetNumbers.contains(shape.number) else {
      throw speaker.failure(
        "the relationship leads to \(link.target), and the policy sent an object of \(target.entity)", at: owner,
        property: link.name)
    }
    guard try targets.number(of: target.key, in: shape.table.name) == shape.number else {
      throw speaker.failure(
        "no object \(target.entity) \(target.key) for the relationship", at: owner, property: link.name)
    }
    return PolicyLinkWriter.Row(key: target.key, number: shape.number)
  }

  func rows(
    _ targets: [PolicyObjectID], of owner: PolicyObjectID, _ link: PolicyLink, for speaker: PolicySpeaker
  ) throws -> [PolicyLinkWriter.Row] {
    try targets.map { try row($0, of: owner, link, for: speaker) }
  }

  func target(
    _ value: PolicyValue, of owner: PolicyObjectID, _ link: PolicyLink, for speaker: PolicySpeaker
  ) throws -> PolicyObjectID {
    guard case .object(let target) = value else {
      throw speaker.failure(
        "a to-one takes an object, and the policy sent \(value.kind)", at: owner, property: link.name)
    }
    return target
  }

  func toMany(
    _ name: String, of id: PolicyObjectID, for speaker: PolicySpeaker
  ) throws -> (PolicyLinkWriter.Row, PolicyLink) {
    guard let link = try shape(id, for: speaker).link(name) else { throw unknown(name, id, for: speaker) }
    let owner = try row(id, for: speaker)
    guard link.isToMany else {
      throw speaker.failure("objects are added to and removed from to-manys only", at: id, property: link.name)
    }
    return (owner, link)
  }

  func stored(
    _ value: PolicyValue, of slot: PolicyShape.AttributeSlot, _ id: PolicyObjectID,
    kept: [(attribute: String, content: PolicyValue, stored: SQLiteValue)]?, for speaker: PolicySpeaker
  ) throws -> SQLiteValue {
    guard !slot.isComputed else {
      throw speaker.failure("the attribute is derived, and is computed", at: id, property: slot.name)
    }
    if let kept, let same = kept.first(where: { $0.attribute == slot.name }), same.content == value {
      return same.stored
    }
    guard let stored = slot.form.stored(value) else {
      throw speaker.failure(
        "the attribute is of type \(slot.form.attribute.type.name), and the policy sent "
          + "\(value.kind), which is of another type or beyond the range (docs/POLICIES.md, “Values”)", at: id,
        property: slot.name)
    }
    return stored
  }

  func unknown(_ name: String, _ id: PolicyObjectID, for speaker: PolicySpeaker) -> HopdError {
    speaker.failure("the destination version stores no such property", at: id, property: name)
  }

  func missing(_ id: PolicyObjectID, for speaker: PolicySpeaker) -> HopdError {
    speaker.failure("no such object", at: id)
  }
}
