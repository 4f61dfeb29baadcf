// The messages as JSON (Examples/Policies/MESSAGES.md): values and objects here, whole messages in
// PolicyWire+Engine.swift and PolicyWire+Program.swift. Both ends of the pipe use these files, so a Swift policy and
// the engine cannot disagree about a form.
//
// The engine sends objects as rows: a message with objects lists their shapes once (side, entity, columns), and a row
// is [shape, key, value, …]. The names of a thousand books' attributes are sent once, not a thousand times. A program's
// messages are plainer, because their authors use any language: an object is [side, entity, key], and values have their
// names.

/// The protocol between the engine and a policy program.
package enum PolicyWire {
  /// The version of the protocol. Each side sends its version first; they end the conversation if the versions differ.
  package static let version: Int64 = 1
}

// MARK: Values

extension JSONWriter {
  mutating func value(_ value: PolicyValue) {
    switch value {
    case .null: raw("null")
    case .boolean(let flag): raw(flag ? "true" : "false")
    case .integer(let number): integer(number)
    case .double(let double):
      guard double.isFinite else { return tagged("{\"$double\":") { $0.number(unusual: double) } }
      finite(double)
    case .decimal(let digits): tagged("{\"$decimal\":") { $0.string(digits) }
    case .string(let text): string(text)
    case .date(let seconds):
      tagged("{\"$date\":") { seconds.isFinite ? $0.finite(seconds) : $0.number(unusual: seconds) }
    case .data(let data): tagged("{\"$data\":") { $0.ascii(Base64.encode(data)) }
    case .uuid(let bytes): tagged("{\"$uuid\":") { $0.ascii(Hexadecimal.uuid(bytes)) }
    case .uri(let text): tagged("{\"$uri\":") { $0.string(text) }
    case .transformable(let data): tagged("{\"$transformable\":") { $0.ascii(Base64.encode(data)) }
    case .object(let id): tagged("{\"$object\":") { $0.object(id) }
    case .objects(let ids): tagged("{\"$objects\":") { $0.objects(ids) }
    case .variable(let variable): tagged("{\"$variable\":") { $0.string(variable.rawValue) }
    case .list(let values): array(values) { $0.value($1) }
    }
  }

  private mutating func tagged(_ tag: StaticString, _ body: (inout JSONWriter) -> Void) {
    raw(tag)
    body(&self)
    byte("}")
  }

  private mutating func number(unusual number: Double) {
    raw(number.isNaN ? "\"nan\"" : number < 0 ? "\"-inf\"" : "\"inf\"")
  }

  /// Appends `["destination","Book",3]`.
  mutating func object(_ id: PolicyObjectID) {
    byte("[")
    side(id.side)
    byte(",")
    string(id.entity)
    byte(",")
    integer(id.key)
    byte("]")
  }

  mutating func objects(_ ids: [PolicyObjectID]) { array(ids) { $0.object($1) } }

  mutating func side(_ side: PolicyObjectID.Side) { raw(side == .source ? "\"source\"" : "\"destination\"") }

  /// Appends the start of a fetch: `"offset":20`, `"after":17`.
  mutating func page(_ page: PolicyPage) {
    if page.offset > 0 {
      raw(",\"offset\":")
      integer(Int64(page.offset))
    }
    if let after = page.after {
      raw(",\"after\":")
      integer(after)
    }
  }

  mutating func fields(_ values: [String: PolicyValue]) { object(values) { $0.value($1) } }
}

extension JSONReader {
  mutating func value() throws -> PolicyValue {
    switch try peek() {
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "{"): return try tagged()
    case UInt8(ascii: "["):
      return .list(try list { try $0.value() })
    case UInt8(ascii: "n"):
      try null()
      return .null
    case UInt8(ascii: "t"), UInt8(ascii: "f"): return .boolean(try boolean())
    default: return try number()
    }
  }

  private mutating func tagged() throws -> PolicyValue {
    var found: PolicyValue?
    try object { reader, tag in
      guard found == nil else { throw reader.fault("a value with two tags") }
      found = try reader.tagged(tag)
    }
    guard let found else { throw fault("a value without tag") }
    return found
  }

  private mutating func tagged(_ tag: String) throws -> PolicyValue {
    switch tag {
    case "$date": return .date(try double())
    case "$double": return .double(try double())
    case "$data": return .data(try base64())
    case "$transformable": return .transformable(try base64())
    case "$uuid":
      guard let bytes = Hexadecimal.uuid(try string()) else { throw fault("a UUID expected") }
      return .uuid(bytes)
    case "$decimal":
      let text = try string()
      guard JSONReader.isDecimal(text) else { throw fault("digits of a decimal expected") }
      return .decimal(text)
    case "$uri": return .uri(try string())
    case "$object": return .object(try objectID())
    case "$objects": return .objects(try objectIDs())
    case "$variable":
      guard let variable = PolicyVariable(rawValue: try string()) else { throw fault("a variable that is known") }
      return .variable(variable)
    default: throw fault("\(tag.prefix(40)) is not a tag of a value")
    }
  }

  private mutating func base64() throws -> [UInt8] {
    guard let data = Base64.decode(try string()) else { throw fault("base64 expected") }
    return data
  }

  /// Reads a number, or the name of a double that JSON does not have.
  private mutating func double() throws -> Double {
    guard try peek() != UInt8(ascii: "\"") else {
      switch try string() {
      case "nan": return .nan
      case "inf": return .infinity
      case "-inf": return -.infinity
      default: throw fault("a number expected")
      }
    }
    switch try number() {
    case .double(let value): return value
    case .integer(let value):
      guard let exact = Double(exactly: value) else { throw fault("an integer that no double holds") }
      return exact
    default: throw fault("a number expected")
    }
  }

  mutating func objectID() throws -> PolicyObjectID {
    var id = PolicyObjectID(side: .source, entity: "", key: 0)
    let count = try parts { reader, position in
      switch position {
      case 0: id.side = try reader.side()
      case 1: id.entity = try reader.string()
      case 2: id.key = try reader.integer()
      default: throw reader.fault("an object is [side, entity, key]")
      }
    }
    guard count == 3 else { throw fault("an object is [side, entity, key]") }
    return id
  }

  mutating func objectIDs() throws -> [PolicyObjectID] {
    try list { try $0.objectID() }
  }

  mutating func side() throws -> PolicyObjectID.Side {
    guard let side = PolicyObjectID.Side(rawValue: try string()) else {
      throw fault("\"source\" or \"destination\" expected")
    }
    return side
  }

  mutating func values() throws -> [String: PolicyValue] {
    var values: [String: PolicyValue] = [:]
    try object { reader, name in values[name] = try reader.value() }
    return values
  }

  mutating func strings() throws -> [String] {
    try list { try $0.string() }
  }

  /// Reads a text; nil for null.
  mutating func optionalString() throws -> String? {
    guard try peek() == UInt8(ascii: "n") else { return try string() }
    try null()
    return nil
  }
}

// MARK: One value by itself

extension PolicyValue {
  /// The value as JSON, the same for equal values only: texts with different bytes differ, and values of two types are
  /// never the same key. −0 and 0 are one key.
  package var json: [UInt8] {
    var writer = JSONWriter()
    writer.value(withoutNegativeZero)
    return Array(writer.bytes.dropFirst(JSONWriter.headLength))
  }

  /// Reads such JSON; nil if it is not a value.
  package init?(json: [UInt8]) {
    var reader = JSONReader(json)
    guard let value = try? reader.value(), (try? reader.end()) != nil else { return nil }
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

// MARK: Objects

/// The side, entity and columns that rows of one kind have in common.
struct PolicyShape: Hashable {
  var side: PolicyObjectID.Side
  var entity: String
  /// In ascending order when written; in any order when read.
  var columns: [String]
}

/// The shapes of one message while it is written. Objects of one kind follow one another, so the last shape is tried
/// first.
struct PolicyShapes {
  private(set) var shapes: [PolicyShape] = []
  private var last: [PolicyObjectID.Side: Int] = [:]
  private var numbers: [PolicyShape: Int] = [:]

  /// Returns the number of an object's shape, counted from 0.
  mutating func number(of object: PolicyObject) -> Int {
    if let number = last[object.id.side] {
      let shape = shapes[number]
      if shape.entity == object.id.entity, shape.columns.count == object.values.count,
        shape.columns.allSatisfy({ object.values[$0] != nil })
      {
        return number
      }
    }
    let shape = PolicyShape(side: object.id.side, entity: object.id.entity, columns: object.values.keys.sorted())
    let number = numbers[shape] ?? shapes.count
    if number == shapes.count {
      shapes.append(shape)
      numbers[shape] = number
    }
    last[object.id.side] = number
    return number
  }
}

extension JSONWriter {
  private mutating func row(_ object: PolicyObject, _ shapes: inout PolicyShapes) {
    let number = shapes.number(of: object)
    byte("[")
    integer(Int64(number))
    byte(",")
    integer(object.id.key)
    for column in shapes.shapes[number].columns {
      byte(",")
      value(object.values[column] ?? .null)
    }
    byte("]")
  }

  /// Appends `"rows":[…],"shapes":[…]`: the shapes are complete only when all rows are written.
  mutating func objects(_ objects: some Sequence<PolicyObject>) {
    var shapes = PolicyShapes()
    raw("\"rows\":")
    array(objects) { $0.row($1, &shapes) }
    self.shapes(shapes.shapes)
  }

  private mutating func shapes(_ shapes: [PolicyShape]) {
    raw(",\"shapes\":")
    array(shapes) { writer, shape in
      writer.byte("[")
      writer.side(shape.side)
      writer.raw(",", string: shape.entity)
      writer.byte(",")
      writer.list(shape.columns)
      writer.byte("]")
    }
  }

  mutating func list(_ texts: [String]) { array(texts) { $0.string($1) } }
}

extension JSONReader {
  mutating func shapes() throws -> [PolicyShape] {
    try list { reader in
      var shape = PolicyShape(side: .source, entity: "", columns: [])
      let count = try reader.parts { reader, position in
        switch position {
        case 0: shape.side = try reader.side()
        case 1: shape.entity = try reader.string()
        case 2: shape.columns = try reader.strings()
        default: throw reader.fault("a shape is [side, entity, columns]")
        }
      }
      guard count == 3, Set(shape.columns).count == shape.columns.count else {
        throw reader.fault("a shape is [side, entity, columns], each column once")
      }
      return shape
    }
  }

  /// Reads rows of `shape, key, value, …`.
  mutating func objects(_ shapes: [PolicyShape]) throws -> [PolicyObject] {
    try list { reader in
      var row = PolicyRow(shapes)
      try reader.array { reader in try row.read(&reader) }
      return try row.object(reader)
    }
  }
}

/// Reads a row, element by element.
struct PolicyRow {
  private let shapes: [PolicyShape]
  private var shape: PolicyShape?
  private var key: Int64 = 0
  private var position = 0
  private var values: [String: PolicyValue] = [:]

  init(_ shapes: [PolicyShape]) { self.shapes = shapes }

  mutating func read(_ reader: inout JSONReader) throws {
    switch position {
    case 0:
      let number = try reader.integer()
      guard number >= 0, number < shapes.count else { throw reader.fault("no shape has the number \(number)") }
      shape = shapes[Int(number)]
      values.reserveCapacity(shape?.columns.count ?? 0)
    case 1: key = try reader.integer()
    default:
      guard let columns = shape?.columns, position - 2 < columns.count else {
        throw reader.fault("a row has more values than its shape has columns")
      }
      values[columns[position - 2]] = try reader.value()
    }
    position += 1
  }

  func object(_ reader: JSONReader) throws -> PolicyObject {
    guard let shape, position == shape.columns.count + 2 else {
      throw reader.fault("a row has fewer values than its shape has columns")
    }
    return PolicyObject(id: PolicyObjectID(side: shape.side, entity: shape.entity, key: key), values: values)
  }
}
