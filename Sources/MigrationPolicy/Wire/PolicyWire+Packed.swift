// Packed messages: those with many objects or many changes. Their first byte is a control character, with which no JSON
// begins, so one pipe carries both forms. hopd sends them only to a program that reads them, and accepts them from any
// program. All other messages are always JSON (docs/POLICIES.md, "Packed messages").
//
// A message has a kind, the length of the rows (four bytes, the least significant first), and the rows. Then come the
// tables that the rows refer to, which are complete only when the rows are written: entities, shapes or names, the
// number of rows, and in calls the keys.

/// The kinds of packed messages.
private enum PackedMessage: UInt8 {
  case create = 1
  case relationships = 2
  case done = 5
  case apply = 6
}

extension PolicyWire {
  /// The version of the packed form, in the hellos of both sides.
  package static let packedVersion: Int64 = 1

  /// Space for the frame's head, the kind, and the length of the rows.
  static let packedHead = [UInt8](repeating: 0, count: JSONWriter.headLength + 5)

  /// Whether the message is packed.
  static func isPacked(_ message: [UInt8]) -> Bool { message.first.map { $0 < 9 } ?? false }

  // MARK: Calls

  /// Returns the frame of createDestinationInstances; nil if it is longer than a frame can be.
  package static func encodePacked(_ batch: PolicyBatch, keys: PolicyKeys) -> [UInt8]? {
    var entities = batch.entities
    let numbers = batch.shapes.map { entities.number($0.side, $0.entity) }
    var frame = PackedWriter(batch.bytes)
    entities.write(to: &frame)
    frame.count(batch.shapes.count)
    for (shape, number) in zip(batch.shapes, numbers) {
      frame.count(number)
      frame.count(shape.columns.count)
      for column in shape.columns { frame.text(column) }
    }
    frame.count(batch.count)
    frame.keys(keys)
    return frame.framed(.create, rows: batch.end)
  }

  /// Returns the frame of createRelationships; nil if it is longer than a frame can be.
  package static func encodePacked(relationships ids: [PolicyObjectID], keys: PolicyKeys) -> [UInt8]? {
    var entities = PackedEntities()
    var frame = PackedWriter(packedHead)
    for id in ids { frame.object(id, &entities) }
    let end = frame.bytes.count
    entities.write(to: &frame)
    frame.count(ids.count)
    frame.keys(keys)
    return frame.framed(.relationships, rows: end)
  }

  /// A packed call.
  enum PackedCall {
    case create(PolicyBatch, PolicyKeys)
    case relationships([PolicyObjectID], PolicyKeys)
  }

  /// Decodes a packed call of the engine. It reads the rows once; their texts are checked when they are read.
  static func decodePackedCall(_ message: [UInt8]) throws -> PackedCall {
    var (kind, rows, tables) = try parts(message)
    let entities = try PackedEntities(&tables)
    switch kind {
    case .create:
      var shapes: [PolicyShape] = []
      for _ in 0..<(try tables.count(ofAtLeast: 2)) {
        let entity = entities.all[try tables.number(below: entities.all.count, "entity")]
        let columns = try tables.list(ofAtLeast: 1) { try $0.text() }
        guard Set(columns).count == columns.count else { throw tables.fault("a shape has each column once") }
        shapes.append(PolicyShape(side: entity.side, entity: entity.name.text, columns: columns))
      }
      let count = try count(&tables, rows, ofAtLeast: 4)
      let keys = try PolicyKeys(&tables)
      var instances: [PolicyBatch.Instance] = []
      instances.reserveCapacity(count)
      for _ in 0..<count {
        let start = rows.index
        let sourceShape = try rows.number(below: shapes.count, "shape")
        let source = try rows.zigzag()
        let sourceAt = rows.index
        let columns = shapes[sourceShape].columns.count
        for _ in 0..<columns {
          if case .copy = try rows.item() { throw rows.fault("a copy in the row of a source") }
        }
        let standardShape = try rows.number(below: shapes.count, "shape")
        let standard = try rows.zigzag()
        let standardAt = rows.index
        for _ in 0..<shapes[standardShape].columns.count {
          if case .copy(let column) = try rows.item(), column >= columns {
            throw rows.fault("no column has this number")
          }
        }
        instances.append(
          PolicyBatch.Instance(
            start: start, sourceShape: sourceShape, source: source, sourceAt: sourceAt, standardShape: standardShape,
            standard: standard, standardAt: standardAt))
      }
      try end(rows, tables)
      return .create(
        PolicyBatch(bytes: message, end: rows.end, entities: entities, shapes: shapes, instances: instances), keys)
    case .relationships:
      let count = try count(&tables, rows, ofAtLeast: 2)
      let keys = try PolicyKeys(&tables)
      var ids: [PolicyObjectID] = []
      ids.reserveCapacity(count)
      for _ in 0..<count { ids.append(try rows.objectID(entities)) }
      try end(rows, tables)
      return .relationships(ids, keys)
    case .done, .apply: throw PolicyWireError("a call expected")
    }
  }

  // MARK: Operations

  /// Returns the frame of a call's end, or of a request to apply changes.
  package static func encodePacked(_ operations: [PolicyWireOperation], isEnd: Bool) -> [UInt8]? {
    var writer = PackedOperationWriter()
    for operation in operations { writer.write(operation) }
    let end = writer.rows.bytes.count
    var frame = writer.rows
    writer.entities.write(to: &frame)
    let names = writer.names
    frame.count(names.count)
    for name in names { frame.text(name) }
    frame.count(operations.count)
    return frame.framed(isEnd ? .done : .apply, rows: end)
  }

  /// Decodes the operations of a packed message, and whether they end the call. `instances` is the number of the call's
  /// instances.
  static func decodePackedOperations(
    _ message: [UInt8], instances: Int
  ) throws -> (operations: [PolicyWireOperation], isEnd: Bool) {
    var (kind, rows, tables) = try parts(message)
    guard kind == .done || kind == .apply else { throw PolicyWireError("a reply or a request expected") }
    let entities = try PackedEntities(&tables)
    let names = try tables.list(ofAtLeast: 1) { try $0.text() }
    let count = try count(&tables, rows, ofAtLeast: 2)
    var operations: [PolicyWireOperation] = []
    operations.reserveCapacity(count)
    for _ in 0..<count { operations.append(try rows.operation(entities, names, instances: instances)) }
    try end(rows, tables)
    return (operations, kind == .done)
  }

  // MARK: Parts

  private static func parts(
    _ message: [UInt8]
  ) throws -> (kind: PackedMessage, rows: PackedReader, tables: PackedReader) {
    var head = PackedReader(message)
    guard let kind = PackedMessage(rawValue: try head.byte()) else {
      throw PolicyWireError("a packed message that this version of the protocol does not have", offset: 0)
    }
    var length = 0
    for shift in 0..<4 { length |= Int(try head.byte()) << (8 * shift) }
    guard length <= message.count - head.index else { throw head.fault("the message ends early") }
    let end = head.index + length
    return (kind, PackedReader(message, at: head.index, end: end), PackedReader(message, at: end))
  }

  private static func count(
    _ tables: inout PackedReader, _ rows: PackedReader, ofAtLeast size: Int
  ) throws -> Int {
    guard let count = Int(exactly: try tables.varint()), count <= (rows.end - rows.index) / size else {
      throw tables.fault("more rows than the message has bytes for")
    }
    return count
  }

  private static func end(_ rows: PackedReader, _ tables: PackedReader) throws {
    guard rows.index == rows.end, tables.index == tables.end else { throw rows.fault("something follows the message") }
  }
}

extension PackedWriter {
  fileprivate mutating func keys(_ keys: PolicyKeys) {
    count(keys.next.count)
    for (name, key) in keys.next.sorted(by: { $0.key < $1.key }) {
      text(name)
      zigzag(key)
    }
  }

  /// Returns the frame of the bytes written after `packedHead`; the rows end at `rows`.
  fileprivate consuming func framed(_ kind: PackedMessage, rows: Int) -> [UInt8]? {
    var frame = bytes
    let head = JSONWriter.headLength
    guard let length = UInt32(exactly: frame.count - head), frame.count >= PolicyWire.packedHead.count else {
      return nil
    }
    let body = UInt32(truncatingIfNeeded: rows - PolicyWire.packedHead.count)
    for position in 0..<4 {
      frame[position] = UInt8(truncatingIfNeeded: length >> UInt32(24 - 8 * position))
      frame[head + 1 + position] = UInt8(truncatingIfNeeded: body >> UInt32(8 * position))
    }
    frame[head] = kind.rawValue
    return frame
  }
}

extension PolicyKeys {
  fileprivate init(_ reader: inout PackedReader) throws {
    var next: [String: Int64] = [:]
    for _ in 0..<(try reader.count(ofAtLeast: 2)) {
      let name = try reader.text()
      next[name] = try reader.zigzag()
    }
    self.init(next: next)
  }
}

/// The kinds of packed operations.
private enum PackedOperation: UInt8 {
  case standard = 0
  case insert = 1
  case set = 2
  case add = 3
  case remove = 4
  case delete = 5
  case associate = 6
}

private struct PackedOperationWriter {
  var rows = PackedWriter(PolicyWire.packedHead)
  var entities = PackedEntities()
  private var known: [ExactText] = []
  private var numbers: [ExactText: Int] = [:]
  var names: [String] { known.map(\.text) }

  mutating func write(_ operation: PolicyWireOperation) {
    switch operation {
    case .standard(let number, let values):
      kind(.standard)
      rows.count(number)
      fields(values.entries.lazy.map { ($0.name, $0.value) })
    case .plain(.insert(let object)): changed(.insert, object)
    case .plain(.set(let object)): changed(.set, object)
    case .plain(.add(let id, let relationship, let ids)): members(.add, id, relationship, ids)
    case .plain(.remove(let id, let relationship, let ids)): members(.remove, id, relationship, ids)
    case .plain(.delete(let id)):
      kind(.delete)
      rows.object(id, &entities)
    case .plain(.associate(let source, let destination)):
      kind(.associate)
      rows.object(source, &entities)
      rows.object(destination, &entities)
    }
  }

  private mutating func kind(_ kind: PackedOperation) { rows.byte(kind.rawValue) }

  private mutating func changed(_ kind: PackedOperation, _ object: PolicyObject) {
    self.kind(kind)
    rows.object(object.id, &entities)
    fields(object.values.lazy.map { ($0.key, $0.value) })
  }

  private mutating func fields(_ fields: some Collection<(String, PolicyValue)>) {
    rows.count(fields.count)
    for (name, value) in fields {
      rows.count(number(of: name))
      rows.value(value, &entities)
    }
  }

  private mutating func members(
    _ kind: PackedOperation, _ id: PolicyObjectID, _ relationship: String, _ ids: [PolicyObjectID]
  ) {
    self.kind(kind)
    rows.object(id, &entities)
    rows.count(number(of: relationship))
    rows.objects(ids, &entities)
  }

  private mutating func number(of name: String) -> Int {
    // Policies set the same few properties again and again.
    let name = ExactText(name)
    for number in 0..<min(4, known.count) where known[number] == name { return number }
    if let number = numbers[name] { return number }
    numbers[name] = known.count
    known.append(name)
    return known.count - 1
  }
}

extension PackedReader {
  fileprivate mutating func operation(
    _ entities: PackedEntities, _ names: [String], instances: Int
  ) throws -> PolicyWireOperation {
    guard let kind = PackedOperation(rawValue: try byte()) else {
      throw fault("an operation that the protocol does not have")
    }
    switch kind {
    case .standard:
      let number = try number(below: instances, "instance of the call")
      return .standard(number, replacing: try fields(entities, names))
    case .insert, .set:
      let id = try objectID(entities)
      let object = PolicyObject(id: id, values: try fields(entities, names).dictionary)
      return .plain(kind == .insert ? .insert(object) : .set(object))
    case .add, .remove:
      let id = try objectID(entities)
      let relationship = names[try number(below: names.count, "relationship")]
      let ids = try objectIDs(entities)
      return .plain(
        kind == .add ? .add(id, relationship: relationship, ids) : .remove(id, relationship: relationship, ids))
    case .delete: return .plain(.delete(try objectID(entities)))
    case .associate:
      let source = try objectID(entities)
      return .plain(.associate(source: source, destination: try objectID(entities)))
    }
  }

  private mutating func fields(_ entities: PackedEntities, _ names: [String]) throws -> PolicyFields {
    let count = try count(ofAtLeast: 2)
    guard count > 0 else { return PolicyFields() }
    var entries: [PolicyFields.Entry] = []
    entries.reserveCapacity(count)
    for _ in 0..<count {
      let name = names[try number(below: names.count, "property")]
      entries.append(PolicyFields.Entry(name: name, value: try value(entities)))
    }
    return PolicyFields(read: entries)
  }
}
