// A chunk of source objects, each with the object that default creation would make of it, packed as they go over the
// pipe. The engine fills it from SQLite and inserts standard objects from it directly; a policy in Swift reads only the
// values that it asks for.

/// Source instances of one call, packed.
package final class PolicyBatch: Sendable {
  /// Where a pair of rows is: indexes of the first value.
  struct Instance: Sendable {
    /// First byte of the pair.
    let start: Int
    let sourceShape: Int
    let source: Int64
    let sourceAt: Int
    let standardShape: Int
    let standard: Int64
    let standardAt: Int
  }

  let bytes: [UInt8]
  /// Where the rows end.
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

  /// Packs instances that are there as values.
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

  /// How many there are.
  package var count: Int { instances.count }

  /// Keys of the source objects, in their order.
  package var sourceKeys: some Sequence<Int64> { instances.lazy.map(\.source) }
  /// Keys of the standard objects, in their order.
  package var standardKeys: some Sequence<Int64> { instances.lazy.map(\.standard) }

  /// The source object of an instance.
  package func source(of index: Int) -> PolicyObjectID {
    shapes[instances[index].sourceShape].id(instances[index].source)
  }

  /// The object of default creation.
  package func standard(of index: Int) -> PolicyObjectID {
    shapes[instances[index].standardShape].id(instances[index].standard)
  }

  /// One value of an instance's source.
  package func sourceValue(_ index: Int, _ column: Int) throws -> PolicyValue {
    var reader = PackedReader(bytes, at: instances[index].sourceAt, end: end)
    for _ in 0..<column { _ = try reader.item() }
    return try reader.value(entities)
  }

  /// One value of an instance's standard object.
  func standardValue(_ index: Int, _ column: Int) throws -> PolicyValue {
    var reader = PackedReader(bytes, at: instances[index].standardAt, end: end)
    for _ in 0..<column { _ = try reader.item() }
    let value = reader
    if case .copy(let original) = try reader.item() { return try sourceValue(index, original) }
    reader = value
    return try reader.value(entities)
  }

  /// An instance as values.
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

  /// All instances as values.
  package func values() throws -> [PolicySourceInstance] { try instances.indices.map(instance) }

  // MARK: Standard objects, for the engine

  /// Names of the standard object's values; the same list for instances of one batch that the engine has made.
  package func standardColumns(_ index: Int) -> [String] { shapes[instances[index].standardShape].columns }

  /// The values of a standard object as they are in `bytes`, in the order of its columns; `scratch` is for our use.
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

  /// The values of a source as they are in `bytes`.
  func sourceItems(_ index: Int, into items: inout [PackedItem]) throws {
    items.removeAll(keepingCapacity: true)
    var reader = PackedReader(bytes, at: instances[index].sourceAt, end: end)
    for _ in 0..<shapes[instances[index].sourceShape].columns.count { items.append(try reader.item()) }
  }

  /// The value of an item.
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

  /// The same batch with more values in every standard object; `results` has a list per column.
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

  /// All objects are of these entities and have these values.
  package init(source: (entity: String, columns: [String]), standard: (entity: String, columns: [String])) {
    shapes = [
      PolicyShape(side: .source, entity: source.entity, columns: source.columns),
      PolicyShape(side: .destination, entity: standard.entity, columns: standard.columns),
    ]
  }

  /// Instances so far.
  package var count: Int { instances.count }
  /// Bytes so far.
  package var size: Int { rows.bytes.count }

  /// Begins an instance; the values of the source follow.
  package mutating func begin(source key: Int64) {
    start = rows.bytes.count
    source = key
    rows.count(0)
    rows.zigzag(key)
    sourceAt = rows.bytes.count
  }

  /// The values of the standard object follow, which ends the instance.
  package mutating func standard(_ key: Int64) {
    rows.count(1)
    rows.zigzag(key)
    instances.append(
      PolicyBatch.Instance(
        start: start, sourceShape: 0, source: source, sourceAt: sourceAt, standardShape: 1, standard: key,
        standardAt: rows.bytes.count))
  }

  /// nil.
  package mutating func null() { rows.null() }
  /// A whole number.
  package mutating func integer(_ value: Int64) { rows.integer(value) }
  /// A double, or the seconds of a date.
  package mutating func real(_ value: Double, isDate: Bool) { rows.real(value, isDate: isDate) }
  /// A text, which must be UTF-8.
  package mutating func string(_ utf8: UnsafeRawBufferPointer) { rows.string(utf8) }
  /// Binary data.
  package mutating func data(_ data: UnsafeRawBufferPointer) { rows.data(data) }
  /// Any value.
  package mutating func value(_ value: PolicyValue) { rows.value(value, &entities) }
  /// In a standard object: the value of a column of its source.
  package mutating func copy(of column: Int) { rows.copy(of: column) }

  /// The batch.
  package consuming func finished() -> PolicyBatch {
    PolicyBatch(
      bytes: rows.bytes, end: rows.bytes.count, entities: entities, shapes: shapes, instances: instances)
  }
}
