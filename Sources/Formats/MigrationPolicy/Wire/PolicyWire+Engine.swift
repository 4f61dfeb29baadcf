// The engine's messages: the introduction, calls and answers. Written by the host, read by a policy program.

/// A message of the engine.
package enum PolicyEngineMessage: Sendable, Hashable {
  /// First: the version of the protocol, and the mapping that the policy belongs to.
  case introduction(version: Int64, PolicyIntroduction)
  case call(PolicyCall, keys: PolicyKeys)
  case answer(PolicyAnswer)
}

extension PolicyWire {
  /// Returns the frame of a message; nil if it is longer than a frame can be.
  package static func encode(_ message: PolicyEngineMessage) -> [UInt8]? {
    var writer = JSONWriter()
    switch message {
    case .introduction(let version, let introduction): writer.introduction(version, introduction)
    case .call(let call, let keys):
      writer.call(call)
      writer.keys(keys)
    case .answer(let answer): writer.answer(answer)
    }
    return writer.framed()
  }

  /// Returns the message of createDestinationInstances, without its keys and its end.
  static func encodeCall(of instances: [PolicySourceInstance]) -> [UInt8] {
    var writer = JSONWriter()
    writer.call(.createDestinationInstances(instances))
    return writer.bytes
  }

  /// Returns the frame of such a message, with its keys; nil if it is longer than a frame can be.
  static func finish(_ call: [UInt8], keys: PolicyKeys) -> [UInt8]? {
    var writer = JSONWriter(call)
    writer.keys(keys)
    return writer.framed()
  }

  /// Decodes a message of the engine from the JSON of its frame.
  package static func decodeEngine(_ json: [UInt8]) throws -> PolicyEngineMessage {
    let fields = try JSONFields(message: json)
    if fields.has("hello") {
      let number = try fields.read("hello") { try $0.integer() }
      guard number == PolicyWire.version else {
        throw PolicyWireError("the engine speaks version \(number) of the protocol, this library \(PolicyWire.version)")
      }
      return .introduction(version: number, try fields.field("introduction").introduction())
    }
    if fields.has("call") { return try fields.call() }
    if fields.has("answer") { return .answer(try fields.answer()) }
    throw PolicyWireError("a message without hello, call or answer")
  }
}

/// The fields of an object, found by name.
struct JSONFields {
  private let reader: JSONReader
  private let offsets: [String: Int]

  var names: some Sequence<String> { offsets.keys }

  /// Reads the fields of a message, which must be one object with nothing after it.
  init(message json: [UInt8]) throws {
    var reader = JSONReader(json)
    offsets = try reader.fields()
    try reader.end()
    self.reader = reader
  }

  /// Reads the fields of the object at the reader's position.
  init(_ reader: JSONReader) throws {
    var cursor = reader
    offsets = try cursor.fields()
    self.reader = reader
  }

  func has(_ name: String) -> Bool { offsets[name] != nil }

  /// Returns a reader at the field's value.
  func at(_ name: String) throws -> JSONReader {
    guard let offset = offsets[name] else { throw PolicyWireError("the field \(name) is missing") }
    return reader.moved(to: offset)
  }

  /// Returns a reader at the field's value; nil if it is missing or null.
  func optional(_ name: String) throws -> JSONReader? {
    guard let offset = offsets[name] else { return nil }
    var cursor = reader.moved(to: offset)
    return try cursor.peek() == UInt8(ascii: "n") ? nil : cursor
  }

  func field(_ name: String) throws -> JSONFields { try JSONFields(at(name)) }

  /// Reads the field with `value`.
  func read<Value>(_ name: String, _ value: (inout JSONReader) throws -> Value) throws -> Value {
    var cursor = try at(name)
    return try value(&cursor)
  }

  /// Reads the field with `value`; nil if it is missing or null.
  func readOptional<Value>(_ name: String, _ value: (inout JSONReader) throws -> Value) throws -> Value? {
    guard var cursor = try optional(name) else { return nil }
    return try value(&cursor)
  }

  func string(_ name: String) throws -> String { try read(name) { try $0.string() } }

  func optionalString(_ name: String) throws -> String? { try readOptional(name) { try $0.string() } }

  func page() throws -> PolicyPage {
    let skipped = try readOptional("offset") { try $0.integer() } ?? 0
    guard skipped >= 0 else { throw PolicyWireError("an offset below 0") }
    return PolicyPage(offset: Int(clamping: skipped), after: try readOptional("after") { try $0.integer() })
  }

  func objects() throws -> [PolicyObject] {
    let shapes = try read("shapes") { try $0.shapes() }
    return try read("rows") { try $0.objects(shapes) }
  }

  func ids() throws -> [PolicyObjectID] { try objects().map(\.id) }
}

// MARK: Writing

extension JSONWriter {
  /// Appends a call, without its keys and its end.
  fileprivate mutating func call(_ call: PolicyCall) {
    raw("{\"call\":", string: call.name)
    switch call {
    case .method(let selector, let arguments):
      raw(",\"selector\":", string: selector)
      raw(",\"arguments\":")
      value(.list(arguments.map { .list($0) }))
    case .createDestinationInstances(let instances):
      byte(",")
      objects(instances.lazy.flatMap { [$0.source, $0.standard] })
    case .createRelationships(let ids):
      byte(",")
      objects(ids.lazy.map { PolicyObject(id: $0, values: [:]) })
    default: break
    }
  }

  /// Appends the keys and the end of a call.
  fileprivate mutating func keys(_ keys: PolicyKeys) {
    raw(",\"keys\":")
    fields(keys.next.mapValues { .integer($0) })
    byte("}")
  }

  fileprivate mutating func answer(_ answer: PolicyAnswer) {
    raw("{\"answer\":\"")
    switch answer {
    case .done: raw("done\"")
    case .objects(let found):
      raw("objects\",")
      objects(found)
    case .ids(let ids):
      raw("ids\",")
      objects(ids.lazy.map { PolicyObject(id: $0, values: [:]) })
    case .value(let found):
      raw("value\",\"value\":")
      value(found)
    case .refused(let reason): raw("refused\",\"reason\":", string: reason)
    }
    byte("}")
  }

  fileprivate mutating func introduction(_ version: Int64, _ introduction: PolicyIntroduction) {
    raw("{\"hello\":")
    integer(version)
    raw(",\"introduction\":{\"policy\":", string: introduction.policy)
    raw(",\"mapping\":", string: introduction.mapping)
    raw(",\"mappingType\":", string: introduction.mappingType)
    raw(",\"source\":")
    value(PolicyValue(introduction.source))
    raw(",\"destination\":")
    value(PolicyValue(introduction.destination))
    raw(",\"userInfo\":")
    fields(introduction.userInfo)
    raw(",\"expressions\":")
    fields(introduction.expressions.mapValues { PolicyValue($0) })
    raw(",\"sourceVersion\":", string: introduction.sourceVersion)
    raw(",\"destinationVersion\":", string: introduction.destinationVersion)
    raw(",\"sourceEntities\":")
    entities(introduction.sourceEntities)
    raw(",\"destinationEntities\":")
    entities(introduction.destinationEntities)
    if let store = introduction.store {
      raw(",\"store\":{\"path\":", string: store.path)
      raw(",\"metadata\":")
      fields(store.metadata)
      raw("}")
    }
    if let stage = introduction.stage { raw(",\"stage\":", string: stage.rawValue) }
    raw("}}")
  }

  /// `[{"name":…,"root":…,"abstract":…,"properties":{name:[kind] or [kind, destination]}}]`.
  private mutating func entities(_ entities: [PolicyEntity]) {
    array(entities) { writer, entity in
      writer.raw("{\"name\":", string: entity.name)
      writer.raw(",\"root\":", string: entity.root)
      writer.raw(",\"abstract\":")
      writer.raw(entity.isAbstract ? "true" : "false")
      writer.raw(",\"properties\":")
      writer.object(entity.properties) { $0.list([$1.kind] + ($1.destination.map { [$0] } ?? [])) }
      writer.byte("}")
    }
  }
}

// MARK: Reading

extension JSONFields {
  fileprivate func call() throws -> PolicyEngineMessage {
    var next: [String: Int64] = [:]
    try read("keys") { try $0.object { reader, name in next[name] = try reader.integer() } }
    let keys = PolicyKeys(next: next)
    let name = try string("call")
    if let call = PolicyCall.withoutParts.first(where: { $0.name == name }) { return .call(call, keys: keys) }
    switch name {
    case "method":
      let lists = try read("arguments") { try $0.list { try $0.list { try $0.value() } } }
      return .call(.method(selector: try string("selector"), arguments: lists), keys: keys)
    case "createDestinationInstances":
      let objects = try objects()
      guard objects.count.isMultiple(of: 2) else { throw PolicyWireError("a source without its standard object") }
      let instances = stride(from: 0, to: objects.count, by: 2).map {
        PolicySourceInstance(source: objects[$0], standard: objects[$0 + 1])
      }
      return .call(.createDestinationInstances(instances), keys: keys)
    case "createRelationships": return .call(.createRelationships(try ids()), keys: keys)
    default: throw PolicyWireError("a call that this version of the protocol does not have")
    }
  }

  fileprivate func answer() throws -> PolicyAnswer {
    switch try string("answer") {
    case "done": return .done
    case "objects": return .objects(try objects())
    case "ids": return .ids(try ids())
    case "value": return .value(try read("value") { try $0.value() })
    case "refused": return .refused(try string("reason"))
    default: throw PolicyWireError("an answer that this version of the protocol does not have")
    }
  }

  fileprivate func introduction() throws -> PolicyIntroduction {
    var expressions: [String: String?] = [:]
    try read("expressions") {
      try $0.object { reader, name in expressions.updateValue(try reader.optionalString(), forKey: name) }
    }
    return PolicyIntroduction(
      policy: try string("policy"), mapping: try string("mapping"), mappingType: try string("mappingType"),
      source: try optionalString("source"), destination: try optionalString("destination"),
      userInfo: try read("userInfo") { try $0.values() }, expressions: expressions,
      sourceVersion: try string("sourceVersion"),
      destinationVersion: try string("destinationVersion"), sourceEntities: try entities("sourceEntities"),
      destinationEntities: try entities("destinationEntities"), store: try store(),
      stage: try stage())
  }

  private func store() throws -> PolicyStore? {
    guard try optional("store") != nil else { return nil }
    let fields = try field("store")
    return PolicyStore(path: try fields.string("path"), metadata: try fields.read("metadata") { try $0.values() })
  }

  private func stage() throws -> PolicyStage? {
    guard let word = try optionalString("stage") else { return nil }
    guard let stage = PolicyStage(rawValue: word) else {
      throw PolicyWireError("a stage that this version of the protocol does not have")
    }
    return stage
  }

  private func entities(_ name: String) throws -> [PolicyEntity] {
    try read(name) { try $0.list { try Self.entity(&$0) } }
  }

  private static func entity(_ reader: inout JSONReader) throws -> PolicyEntity {
    let fields = try JSONFields(reader)
    try reader.skip()
    var properties: [String: PolicyProperty] = [:]
    var cursor = try fields.at("properties")
    try cursor.object { reader, name in
      let words = try reader.strings()
      guard let kind = words.first, words.count <= 2 else { throw reader.fault("a property is [kind, destination]") }
      properties[name] = PolicyProperty(kind: kind, destination: words.count > 1 ? words[1] : nil)
    }
    return PolicyEntity(
      name: try fields.string("name"), root: try fields.string("root"),
      isAbstract: try fields.read("abstract") { try $0.boolean() }, properties: properties)
  }
}
