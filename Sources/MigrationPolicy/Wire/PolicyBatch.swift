// A chunk of source objects, each with the object that default creation would make of it, packed as in the message. The
// engine fills it from SQLite and inserts standard objects from it directly; a policy in Swift decodes only the values
// that it reads.

/// The source instances of one call, packed.
package final class PolicyBatch: Sendable {
  /// The position of an instance's two rows: the indexes of their first values.
  struct Instance: Sendable {
    /// The first byte of the two rows.
    let start: Int
    let sourceShape: Int
    let source: Int64
    let sourceAt: Int
    let standardShape: Int
    let standard: Int64
    let standardAt: Int
  }

  let bytes: [UInt8]
  /// The end of the rows.
  let end: Int
  let entities: PackedEntities
  let shapes: [PolicyShape]
  let instances: [Instance]

  init(bytes: [UInt8], end: Int, entities: PackedEntities, shapes: [PolicyShape], instances: [Instance]) {
    self.bytes = bytes
    self.end = end
    self.entities = entities
    self.shapes = shapes
    self.instances = instances
  }

  /// Packs instances given as values.
  package convenience init(_ instances: [PolicySourceInstance]) {
    var shapes = PolicyShapes()
    var entities = PackedEntities()
    var rows = PackedWriter(PolicyWire.packedHead)
    var places: [Instance] = []
    func row(_ object: PolicyObject) -> (shape: Int, at: Int) {
      let shape = shapes.number(of: object)
      rows.count(shape)
      rows.zigzag(object.id.key)
      let at = rows.bytes.count
      for column in shapes.shapes[shape].columns { rows.value(object.values[column] ?? .null, &entities) }
      return (shape, at)
    }
    for instance in instances {
      let start = rows.bytes.count
      let source = row(instance.source)
      let standard = row(instance.standard)
      places.append(
        Instance(
          start: start, sourceShape: source.shape, source: instance.source.id.key, sourceAt: source.at,
          standardShape: standard.shape, standard: instance.standard.id.key, standardAt: standard.at))
    }
    self.init(
      bytes: rows.bytes, end: rows.bytes.count, entities: entities, shapes: shapes.shapes, instances: places)
  }

  /// The number of instances.
  package var count: Int { instances.count }

  /// The keys of the source objects, in their order.
  package var sourceKeys: some Sequence<Int64> { instances.lazy.map(\.source) }
  /// The keys of the standard objects, in their order.
  package var standardKeys: some Sequence<Int64> { instances.lazy.map(\.standard) }

  /// Returns the id of an instance's source object.
  package func source(of index: Int) -> PolicyObjectID {
    shapes[instances[index].sourceShape].id(instances[index].source)
  }

  /// Returns the id of the object that default creation makes.
  package func standard(of index: Int) -> PolicyObjectID {
    shapes[instances[index].standardShape].id(instances[index].standard)
  }

  /// Returns one value of an instance's source object.
  package func sourceValue(_ index: Int, _ column: Int) throws -> PolicyValue {
    var reader = PackedReader(bytes, at: instances[index].sourceAt, end: end)
    for _ in 0..<column { _ = try reader.item() }
    return try reader.value(entities)
  }

  /// Returns one value of an instance's standard object.
  func standardValue(_ index: Int, _ column: Int) throws -> PolicyValue {
    var reader = PackedReader(bytes, at: instances[index].standardAt, end: end)
    for _ in 0..<column { _ = try reader.item() }
    let value = reader
    if case .copy(let original) = try reader.item() { return try sourceValue(index, original) }
    reader = value
    return try reader.value(entities)
  }

  /// Returns an instance as values.
  package func instance(_ index: Int) throws -> PolicySourceInstance {
    let instance = instances[index]
    var source: [PolicyValue] = []
    var reader = PackedReader(bytes, at: instance.sourceAt, end: end)
    for _ in shapes[instance.sourceShape].columns { source.append(try reader.value(entities)) }
    reader = PackedReader(bytes, at: instance.standardAt, end: end)
    var standard: [PolicyValue] = []
    for _ in shapes[instance.standardShape].columns {
      var value = reader
      if case .copy(let column) = try reader.item() {
        guard column < source.count else { throw reader.fault("no column has this number") }
        standard.append(source[column])
      } else {
        standard.append(try value.value(entities))
      }
    }
    func object(_ id: PolicyObjectID, _ shape: Int, _ values: [PolicyValue]) -> PolicyObject {
      PolicyObject(
        id: id, values: Dictionary(zip(shapes[shape].columns, values)) { first, _ in first })
    }
    return PolicySourceInstance(
      source: object(self.source(of: index), instance.sourceShape, source),
      standard: object(self.standard(of: index), instance.standardShape, standard))
  }

  /// Returns all instances as values.
  package func values() throws -> [PolicySourceInstance] { try instances.indices.map(instance) }

  // MARK: Standard objects, for the engine

  /// Returns the names of the standard object's values. In a batch that the engine made, all instances have the same
  /// list.
  package func standardColumns(_ index: Int) -> [String] { shapes[instances[index].standardShape].columns }

  /// Reads the values of a standard object as they are in `bytes`, in the order of its columns. `scratch` is a buffer
  /// that calls reuse.
  package func standardItems(_ index: Int, into items: inout [PackedItem], _ scratch: inout [PackedItem]) throws {
    items.removeAll(keepingCapacity: true)
    scratch.removeAll(keepingCapacity: true)
    let instance = instances[index]
    var reader = PackedReader(bytes, at: instance.standardAt, end: end)
    for _ in 0..<shapes[instance.standardShape].columns.count {
      let item = try reader.item()
      guard case .copy(let column) = item else {
        items.append(item)
        continue
      }
      if scratch.isEmpty {
        var source = PackedReader(bytes, at: instance.sourceAt, end: end)
        for _ in 0..<shapes[instance.sourceShape].columns.count { scratch.append(try source.item()) }
      }
      guard column < scratch.count else { throw reader.fault("no column has this number") }
      items.append(scratch[column])
    }
  }

  /// Reads the values of a source object as they are in `bytes`.
  func sourceItems(_ index: Int, into items: inout [PackedItem]) throws {
    items.removeAll(keepingCapacity: true)
    var reader = PackedReader(bytes, at: instances[index].sourceAt, end: end)
    for _ in 0..<shapes[instances[index].sourceShape].columns.count { items.append(try reader.item()) }
  }

  /// Returns the decoded value of an item.
  package func value(_ item: PackedItem) throws -> PolicyValue {
    switch item {
    case .null: return .null
    case .boolean(let flag): return .boolean(flag)
    case .integer(let number): return .integer(number)
    case .double(let number): return .double(number)
    case .date(let seconds): return .date(seconds)
    case .string(let place): return .string(try PackedReader(bytes).text(at: place))
    case .data(let place): return .data(Array(bytes[place]))
    case .copy: throw PolicyWireError("a copy outside the row of a standard object")
    case .other(let place):
      var reader = PackedReader(bytes, at: place.lowerBound, end: place.upperBound)
      return try reader.value(entities)
    }
  }

  /// Calls `body` with the bytes of a text or of data.
  package func withBytes<T>(at place: Range<Int>, _ body: (UnsafeRawBufferPointer) throws -> T) rethrows -> T {
    try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[place])) }
  }

  /// Returns the batch with more values in every standard object; `results` has one list per column.
  package func adding(_ columns: [String], _ results: [[PolicyValue]]) -> PolicyBatch {
    guard !columns.isEmpty, !instances.isEmpty else { return self }
    var entities = entities
    var rows = PackedWriter(PolicyWire.packedHead)
    var places: [Instance] = []
    for (index, instance) in instances.enumerated() {
      let shift = rows.bytes.count - instance.start
      rows.append(bytes[instance.start..<(index + 1 < instances.count ? instances[index + 1].start : end)])
      for values in results { rows.value(values.indices.contains(index) ? values[index] : .null, &entities) }
      places.append(
        Instance(
          start: instance.start + shift, sourceShape: instance.sourceShape, source: instance.source,
          sourceAt: instance.sourceAt + shift, standardShape: instance.standardShape, standard: instance.standard,
          standardAt: instance.standardAt + shift))
    }
    var shapes = shapes
    for number in Set(instances.map(\.standardShape)) { shapes[number].columns += columns }
    return PolicyBatch(
      bytes: rows.bytes, end: rows.bytes.count, entities: entities, shapes: shapes, instances: places)
  }
}

/// Writes a batch row by row: first the source's values, then those of its standard object.
package struct PolicyBatchWriter {
  private var rows = PackedWriter(PolicyWire.packedHead)
  private var entities = PackedEntities()
  private var instances: [PolicyBatch.Instance] = []
  private let shapes: [PolicyShape]
  private var start = 0
  private var source: Int64 = 0
  private var sourceAt = 0

  /// All source objects are of one entity and have the same columns; so do all standard objects.
  package init(source: (entity: String, columns: [String]), standard: (entity: String, columns: [String])) {
    shapes = [
      PolicyShape(side: .source, entity: source.entity, columns: source.columns),
      PolicyShape(side: .destination, entity: standard.entity, columns: standard.columns),
    ]
  }

  /// The number of instances so far.
  package var count: Int { instances.count }
  /// The number of bytes so far.
  package var size: Int { rows.bytes.count }

  /// Begins an instance; the values of the source follow.
  package mutating func begin(source key: Int64) {
    start = rows.bytes.count
    source = key
    rows.count(0)
    rows.zigzag(key)
    sourceAt = rows.bytes.count
  }

  /// Begins the standard object of the instance; its values follow and end the instance.
  package mutating func standard(_ key: Int64) {
    rows.count(1)
    rows.zigzag(key)
    instances.append(
      PolicyBatch.Instance(
        start: start, sourceShape: 0, source: source, sourceAt: sourceAt, standardShape: 1, standard: key,
        standardAt: rows.bytes.count))
  }

  /// Appends nil.
  package mutating func null() { rows.null() }
  /// Appends a whole number.
  package mutating func integer(_ value: Int64) { rows.integer(value) }
  /// Appends a double, or the seconds of a date.
  package mutating func real(_ value: Double, isDate: Bool) { rows.real(value, isDate: isDate) }
  /// Appends a text, which must be UTF-8.
  package mutating func string(_ utf8: UnsafeRawBufferPointer) { rows.string(utf8) }
  /// Appends binary data.
  package mutating func data(_ data: UnsafeRawBufferPointer) { rows.data(data) }
  /// Appends a value of any kind.
  package mutating func value(_ value: PolicyValue) { rows.value(value, &entities) }
  /// Appends, in a standard object, the value of a column of its source.
  package mutating func copy(of column: Int) { rows.copy(of: column) }

  /// Returns the batch.
  package consuming func finished() -> PolicyBatch {
    PolicyBatch(
      bytes: rows.bytes, end: rows.bytes.count, entities: entities, shapes: shapes, instances: instances)
  }
}
