// The packed form of values: one byte for the kind, then the value, without text around it. It is written and read in
// place, so a batch of rows needs neither a String nor a dictionary per value. JSON remains the form for programs in
// any language; hopd and its own library agree on the packed form at the start (docs/decisions/0025).

/// The kinds of packed values: the first byte of each.
enum PackedKind: UInt8, Sendable {
  case null = 0
  case no = 1
  case yes = 2
  /// Zigzag, seven bits per byte.
  case integer = 3
  /// Eight bytes, the least significant first. Dates have the same form.
  case double = 4
  case date = 5
  case string = 6
  case decimal = 7
  case uri = 8
  case data = 9
  case transformable = 10
  case uuid = 11
  case object = 12
  case objects = 13
  case list = 14
  /// In the row of a standard object: the value of a column of its source.
  case copy = 15
  case variable = 16
}

/// A packed value that is not decoded: small values are read, all others are ranges of the bytes.
package enum PackedItem: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  case date(Double)
  /// Text as it was written; whether it is valid UTF-8 is not checked yet.
  case string(Range<Int>)
  case data(Range<Int>)
  /// The value of a column of the source.
  case copy(Int)
  /// A value of any other kind, from its kind byte on.
  case other(Range<Int>)
}

/// Writes packed bytes.
struct PackedWriter {
  private(set) var bytes: [UInt8]

  init(_ bytes: [UInt8] = []) { self.bytes = bytes }

  mutating func byte(_ byte: UInt8) { bytes.append(byte) }

  mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  mutating func count(_ count: Int) { varint(UInt64(count)) }

  /// Appends an integer in zigzag form, in which small numbers of either sign are short.
  mutating func zigzag(_ value: Int64) { varint(UInt64(bitPattern: value << 1 ^ value >> 63)) }

  mutating func double(_ value: Double) {
    withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func raw(_ raw: UnsafeRawBufferPointer) {
    count(raw.count)
    bytes.append(contentsOf: raw)
  }

  mutating func text(_ text: String) {
    var text = text
    text.withUTF8 { raw(UnsafeRawBufferPointer($0)) }
  }

  mutating func append(_ more: ArraySlice<UInt8>) { bytes.append(contentsOf: more) }

  private mutating func kind(_ kind: PackedKind) { bytes.append(kind.rawValue) }

  mutating func value(_ value: PolicyValue, _ entities: inout PackedEntities) {
    switch value {
    case .null: kind(.null)
    case .boolean(let flag): kind(flag ? .yes : .no)
    case .integer(let number): integer(number)
    case .double(let number): real(number, isDate: false)
    case .date(let seconds): real(seconds, isDate: true)
    case .string(let text): self.text(text, as: .string)
    case .decimal(let text): self.text(text, as: .decimal)
    case .uri(let text): self.text(text, as: .uri)
    case .variable(let variable): text(variable.rawValue, as: .variable)
    case .data(let data): raw(data, as: .data)
    case .transformable(let data): raw(data, as: .transformable)
    case .uuid(let data): raw(data, as: .uuid)
    case .object(let id):
      kind(.object)
      object(id, &entities)
    case .objects(let ids):
      kind(.objects)
      objects(ids, &entities)
    case .list(let values):
      kind(.list)
      count(values.count)
      for value in values { self.value(value, &entities) }
    }
  }

  private mutating func text(_ text: String, as kind: PackedKind) {
    self.kind(kind)
    self.text(text)
  }

  private mutating func raw(_ data: [UInt8], as kind: PackedKind) {
    self.kind(kind)
    data.withUnsafeBytes { raw($0) }
  }

  mutating func copy(of column: Int) {
    kind(.copy)
    count(column)
  }

  mutating func null() { kind(.null) }

  mutating func integer(_ value: Int64) {
    kind(.integer)
    zigzag(value)
  }

  mutating func real(_ value: Double, isDate: Bool) {
    kind(isDate ? .date : .double)
    double(value)
  }

  mutating func string(_ utf8: UnsafeRawBufferPointer) {
    kind(.string)
    raw(utf8)
  }

  mutating func data(_ data: UnsafeRawBufferPointer) {
    kind(.data)
    raw(data)
  }

  mutating func object(_ id: PolicyObjectID, _ entities: inout PackedEntities) {
    count(entities.number(of: id))
    zigzag(id.key)
  }

  mutating func objects(_ ids: [PolicyObjectID], _ entities: inout PackedEntities) {
    count(ids.count)
    for id in ids { object(id, &entities) }
  }
}

/// A cursor in packed bytes. Every input ends in a value or an error.
struct PackedReader {
  /// The deepest nesting of lists: the same as in the JSON of a message.
  static let maxDepth = 24

  let bytes: [UInt8]
  private(set) var index: Int
  /// The end of the bytes that may be read.
  let end: Int
  /// Whether decimals and UUIDs are checked. Stored values are returned unchecked, as they arrived.
  var checksForms = true

  init(_ bytes: [UInt8], at index: Int = 0, end: Int? = nil) {
    self.bytes = bytes
    self.end = min(end ?? bytes.count, bytes.count)
    self.index = min(max(0, index), self.end)
  }

  func fault(_ message: String) -> PolicyWireError { PolicyWireError(message, offset: index) }

  @inline(__always)
  mutating func byte() throws -> UInt8 {
    guard index < end else { throw fault("the message ends early") }
    defer { index += 1 }
    return bytes[index]
  }

  @inline(__always)
  mutating func varint() throws -> UInt64 {
    let first = try byte()
    return first < 0x80 ? UInt64(first) : try longVarint(first)
  }

  private mutating func longVarint(_ first: UInt8) throws -> UInt64 {
    var value = UInt64(first & 0x7f)
    var shift: UInt64 = 7
    while true {
      let byte = try byte()
      guard shift < 63 || byte <= 1 else { throw fault("a number beyond 64 bits") }
      value |= UInt64(byte & 0x7f) << shift
      guard byte >= 0x80 else { return value }
      shift += 7
    }
  }

  @inline(__always)
  mutating func zigzag() throws -> Int64 {
    let value = try varint()
    return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }

  /// Reads the number of elements that follow, each of at least `size` bytes.
  mutating func count(ofAtLeast size: Int) throws -> Int {
    guard let count = Int(exactly: try varint()), count <= (end - index) / max(1, size) else {
      throw fault("more elements than the message has bytes for")
    }
    return count
  }

  /// Reads an index into a list of `all` elements.
  @inline(__always)
  mutating func number(below all: Int, _ what: StaticString) throws -> Int {
    guard let number = Int(exactly: try varint()), number < all else { throw fault("no \(what) has this number") }
    return number
  }

  mutating func double() throws -> Double {
    guard end - index >= 8 else { throw fault("the message ends early") }
    let bits = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: index, as: UInt64.self) }
    index += 8
    return Double(bitPattern: UInt64(littleEndian: bits))
  }

  /// Reads the range of the bytes of a text or of data.
  @inline(__always)
  mutating func place() throws -> Range<Int> {
    guard let count = Int(exactly: try varint()), count <= end - index else { throw fault("the message ends early") }
    let start = index
    index += count
    return start..<index
  }

  mutating func text() throws -> String { try text(at: try place()) }

  func text(at place: Range<Int>) throws -> String {
    let text = bytes.withUnsafeBufferPointer {
      String(validating: UnsafeBufferPointer(rebasing: $0[place]), as: UTF8.self)
    }
    guard let text else { throw PolicyWireError("text that is not UTF-8", offset: place.lowerBound) }
    return text
  }

  mutating func data() throws -> [UInt8] { Array(bytes[try place()]) }

  /// Reads the elements of a list, each of at least `size` bytes.
  mutating func list<Element>(
    ofAtLeast size: Int, _ element: (inout PackedReader) throws -> Element
  ) throws -> [Element] {
    // No memory is reserved for elements that a message only announces.
    var elements: [Element] = []
    for _ in 0..<(try count(ofAtLeast: size)) { elements.append(try element(&self)) }
    return elements
  }

  mutating func kind() throws -> PackedKind {
    guard let kind = PackedKind(rawValue: try byte()) else { throw fault("a value of a kind that is not known") }
    return kind
  }

  // MARK: Values

  mutating func value(_ entities: PackedEntities, depth: Int = 0) throws -> PolicyValue {
    switch try kind() {
    case .null: return .null
    case .no: return .boolean(false)
    case .yes: return .boolean(true)
    case .integer: return .integer(try zigzag())
    case .double: return .double(try double())
    case .date: return .date(try double())
    case .string: return .string(try text())
    case .decimal:
      let text = try text()
      guard !checksForms || JSONReader.isDecimal(text) else { throw fault("digits of a decimal expected") }
      return .decimal(text)
    case .uri: return .uri(try text())
    case .data: return .data(try data())
    case .transformable: return .transformable(try data())
    case .uuid:
      let bytes = try data()
      guard !checksForms || bytes.count == 16 else { throw fault("a UUID expected") }
      return .uuid(bytes)
    case .object: return .object(try objectID(entities))
    case .objects: return .objects(try objectIDs(entities))
    case .list:
      guard depth < Self.maxDepth else { throw fault("nested deeper than \(Self.maxDepth)") }
      return .list(try list(ofAtLeast: 1) { try $0.value(entities, depth: depth + 1) })
    case .variable:
      guard let variable = PolicyVariable(rawValue: try text()) else { throw fault("a variable that is known") }
      return .variable(variable)
    case .copy: throw fault("a copy outside the row of a standard object")
    }
  }

  @inline(__always)
  mutating func objectID(_ entities: PackedEntities) throws -> PolicyObjectID {
    let entity = entities.all[try number(below: entities.all.count, "entity")]
    return PolicyObjectID(side: entity.side, entity: entity.name.text, key: try zigzag())
  }

  mutating func objectIDs(_ entities: PackedEntities) throws -> [PolicyObjectID] {
    try list(ofAtLeast: 2) { try $0.objectID(entities) }
  }

  /// Reads a value without decoding its bytes.
  @inline(__always)
  mutating func item() throws -> PackedItem {
    let start = index
    switch try kind() {
    case .null: return .null
    case .no: return .boolean(false)
    case .yes: return .boolean(true)
    case .integer: return .integer(try zigzag())
    case .double: return .double(try double())
    case .date: return .date(try double())
    case .string: return .string(try place())
    case .data: return .data(try place())
    case .copy:
      guard let column = Int(exactly: try varint()) else { throw fault("no column has this number") }
      return .copy(column)
    case .decimal, .uri, .transformable, .uuid, .variable: _ = try place()
    case .object: try skipObject()
    case .objects: for _ in 0..<(try count(ofAtLeast: 2)) { try skipObject() }
    case .list: try skipList(depth: 1)
    }
    return .other(start..<index)
  }

  private mutating func skipObject() throws {
    _ = try varint()
    _ = try varint()
  }

  private mutating func skipList(depth: Int) throws {
    for _ in 0..<(try count(ofAtLeast: 1)) {
      guard index < end, bytes[index] == PackedKind.list.rawValue else {
        _ = try item()
        continue
      }
      index += 1
      guard depth < Self.maxDepth else { throw fault("nested deeper than \(Self.maxDepth)") }
      try skipList(depth: depth + 1)
    }
  }
}

// MARK: One value by itself

extension PolicyValue {
  /// The value as bytes, the same for equal values only: texts with different bytes differ, and values of two types are
  /// never the same key. −0 and 0 are one key.
  package var packed: [UInt8] {
    var value = PackedWriter()
    var entities = PackedEntities()
    value.value(withoutNegativeZero, &entities)
    // Entities are numbered within one value, so their names are part of it.
    var bytes = PackedWriter()
    entities.write(to: &bytes)
    bytes.append(value.bytes[...])
    return bytes.bytes
  }

  /// Decodes such bytes; nil if they are not a value.
  package init?(packed bytes: [UInt8]) {
    var reader = PackedReader(bytes)
    reader.checksForms = false
    guard let entities = try? PackedEntities(&reader), let value = try? reader.value(entities),
      reader.index == reader.end
    else { return nil }
    self = value
  }

  private var withoutNegativeZero: PolicyValue {
    switch self {
    case .double(0): .double(0)
    case .date(0): .date(0)
    case .list(let values): .list(values.map(\.withoutNegativeZero))
    default: self
    }
  }
}
