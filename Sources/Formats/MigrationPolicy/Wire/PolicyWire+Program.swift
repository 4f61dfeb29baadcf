// The program's messages: its hello, requests and replies. Written by a policy program, read by the host.
//
// Default creation is one short operation: ["standard", 3] inserts the standard object of the call's fourth instance
// and associates it, so that values which the engine has sent are not sent back.

extension PolicyWire {
  /// Returns the frame of a message; nil if it is longer than a frame can be.
  package static func encode(_ message: PolicyProgramMessage) -> [UInt8]? {
    var writer = JSONWriter()
    switch message {
    case .hello(let version):
      writer.raw("{\"hello\":")
      writer.integer(version)
      writer.byte("}")
    case .request(.apply(let operations)): return encode(apply: operations.map { .plain($0) })
    case .request(let request): writer.request(request)
    case .reply(.done(let operations)): return encode(done: operations.map { .plain($0) })
    case .reply(.results(let results, let operations)):
      return encode(results: results, operations.map { .plain($0) })
    case .reply(.failed(let reason)):
      writer.raw("{\"reply\":\"failed\",\"reason\":", string: reason)
      writer.byte("}")
    }
    return writer.framed()
  }

  /// Returns the frame of a request to apply changes.
  package static func encode(apply operations: [PolicyWireOperation]) -> [UInt8]? {
    encode("{\"request\":\"apply\",", operations)
  }

  /// Returns the frame of a reply to a method, with the changes that were not sent yet.
  package static func encode(results: [PolicyValue], _ operations: [PolicyWireOperation]) -> [UInt8]? {
    var writer = JSONWriter()
    writer.raw("{\"reply\":\"results\",\"results\":")
    writer.value(.list(results))
    writer.byte(",")
    writer.operations(operations)
    return writer.framed()
  }

  /// Returns the frame of a reply, with the changes that were not sent yet.
  package static func encode(done operations: [PolicyWireOperation]) -> [UInt8]? {
    encode("{\"reply\":\"done\",", operations)
  }

  private static func encode(_ start: StaticString, _ operations: [PolicyWireOperation]) -> [UInt8]? {
    var writer = JSONWriter()
    writer.raw(start)
    writer.operations(operations)
    return writer.framed()
  }

  /// Decodes a message of a program from the JSON of its frame, during `call`.
  package static func decodeProgram(_ json: [UInt8], during call: PolicyCall?) throws -> PolicyProgramMessage {
    let instances = call?.instances ?? []
    func spelledOut(_ operations: [PolicyWireOperation]) -> [PolicyOperation] {
      PolicyOperation.spelledOut(operations) { instances[$0] }
    }
    switch try decode(json, instances: instances.count) {
    case .message(let message): return message
    case .apply(let operations): return .request(.apply(spelledOut(operations)))
    case .done(let operations): return .reply(.done(spelledOut(operations)))
    }
  }

  /// A program's message with changes in their short form.
  package enum ProgramMessage: Sendable, Hashable {
    case apply([PolicyWireOperation])
    case done([PolicyWireOperation])
    /// Any other message.
    case message(PolicyProgramMessage)
  }

  /// Decodes a message of a program from the JSON of its frame, during a call with so many instances.
  package static func decode(_ json: [UInt8], instances: Int) throws -> ProgramMessage {
    let fields = try JSONFields(message: json)
    if fields.has("hello") {
      return .message(.hello(version: try fields.read("hello") { try $0.integer() }))
    }
    if fields.has("request") {
      if try fields.string("request") == "apply" {
        guard try fields.optional("operations") != nil else { throw PolicyWireError("apply without operations") }
        try requireKnown(fields.names, ["request", "operations"])
        return .apply(try fields.operations(instances))
      }
      return .message(.request(try fields.request()))
    }
    if fields.has("reply") {
      try requireKnown(fields.names, ["reply", "operations", "results", "reason"])
      if try fields.string("reply") == "done" { return .done(try fields.operations(instances)) }
      return .message(.reply(try fields.reply()))
    }
    throw PolicyWireError("a message without hello, request or reply")
  }

  /// Throws for an unknown field: changes in it would be lost silently.
  private static func requireKnown(_ names: some Sequence<String>, _ known: Set<String>) throws {
    for name in names.sorted() where !known.contains(name) {
      throw PolicyWireError("a field \(name.prefix(40)) that the protocol does not have here")
    }
  }
}

// MARK: Writing

extension JSONWriter {
  fileprivate mutating func operations(_ operations: [PolicyWireOperation]) {
    raw("\"operations\":")
    array(operations) { writer, operation in
      writer.byte("[")
      switch operation {
      case .standard(let number, let values):
        writer.raw("\"standard\",")
        writer.integer(Int64(number))
        if !values.isEmpty {
          writer.byte(",")
          writer.fields(values)
        }
      case .plain(let operation): writer.operation(operation)
      }
      writer.byte("]")
    }
    byte("}")
  }

  private mutating func operation(_ operation: PolicyOperation) {
    switch operation {
    case .insert(let object):
      raw("\"insert\",")
      self.object(object)
    case .set(let object):
      raw("\"set\",")
      self.object(object)
    case .add(let id, let relationship, let ids):
      raw("\"add\",")
      toMany(id, relationship, ids)
    case .remove(let id, let relationship, let ids):
      raw("\"remove\",")
      toMany(id, relationship, ids)
    case .delete(let id):
      raw("\"delete\",")
      object(id)
    case .associate(let source, let destination):
      raw("\"associate\",")
      object(source)
      byte(",")
      object(destination)
    }
  }

  private mutating func object(_ object: PolicyObject) {
    self.object(object.id)
    byte(",")
    fields(object.values)
  }

  private mutating func toMany(_ id: PolicyObjectID, _ relationship: String, _ ids: [PolicyObjectID]) {
    object(id)
    byte(",")
    string(relationship)
    byte(",")
    objects(ids)
  }

  fileprivate mutating func request(_ request: PolicyRequest) {
    raw("{\"request\":\"")
    switch request {
    case .apply: raw("apply\"")  // written by encode(apply:)
    case .fetch(let side, let entity, let predicate, let limit, let named, let sort, let page):
      raw("fetch\",\"side\":")
      self.side(side)
      raw(",\"entity\":", string: entity)
      if let predicate { raw(",\"predicate\":", string: predicate) }
      if let limit {
        raw(",\"limit\":")
        integer(Int64(limit))
      }
      self.page(page)
      if !named.isEmpty {
        raw(",\"objects\":")
        object(named) { $0.object($1) }
      }
      if !sort.isEmpty {
        raw(",\"sort\":")
        array(sort) { writer, item in
          writer.raw("[", string: item.keyPath)
          writer.raw(item.ascending ? ",true]" : ",false]")
        }
      }
    case .values(let ids, let properties):
      raw("values\",\"objects\":")
      objects(ids)
      raw(",\"properties\":")
      list(properties)
    case .destinationInstances(let mapping, let sources): lookup("destinationInstances\"", mapping, sources)
    case .sourceInstances(let mapping, let destinations): lookup("sourceInstances\"", mapping, destinations)
    case .lookup(let table, let key):
      raw("lookup\",\"table\":", string: table)
      raw(",\"key\":")
      value(key)
    case .remember(let table, let key, let remembered):
      raw("remember\",\"table\":", string: table)
      raw(",\"key\":")
      value(key)
      raw(",\"value\":")
      value(remembered)
    case .log(let line): raw("log\",\"line\":", string: line)
    }
    byte("}")
  }

  private mutating func lookup(_ name: StaticString, _ mapping: String, _ ids: [PolicyObjectID]?) {
    raw(name)
    raw(",\"mapping\":", string: mapping)
    guard let ids else { return }
    raw(",\"objects\":")
    objects(ids)
  }
}

// MARK: Reading

extension JSONFields {
  fileprivate func reply() throws -> PolicyReply {
    switch try string("reply") {
    case "results":
      let results = try read("results") { try $0.list { try $0.value() } }
      // A library that sends no operations loses what methods change, without any error.
      guard try optional("operations") != nil else {
        throw PolicyWireError("results without operations: the policy's library is older than this hopd")
      }
      return .results(results, PolicyOperation.spelledOut(try operations(0)) { _ in nil })
    case "failed": return .failed(try string("reason"))
    default: throw PolicyWireError("a reply that this version of the protocol does not have")
    }
  }

  fileprivate func request() throws -> PolicyRequest {
    switch try string("request") {
    case "fetch":
      let number = try readOptional("limit") { try $0.integer() }
      guard number.map({ $0 >= 0 }) ?? true else { throw PolicyWireError("a limit below 0") }
      return .fetch(
        side: try read("side") { try $0.side() }, entity: try string("entity"),
        predicate: try optionalString("predicate"),
        limit: number.map { Int(clamping: $0) }, objects: try named(), sort: try sort(), page: try page())
    case "values":
      return .values(
        try read("objects") { try $0.objectIDs() }, properties: try read("properties") { try $0.strings() })
    case "destinationInstances": return .destinationInstances(mapping: try string("mapping"), sources: try objectIDs())
    case "sourceInstances": return .sourceInstances(mapping: try string("mapping"), destinations: try objectIDs())
    case "lookup": return .lookup(table: try string("table"), key: try read("key") { try $0.value() })
    case "remember":
      return .remember(
        table: try string("table"), key: try read("key") { try $0.value() }, try read("value") { try $0.value() })
    case "log": return .log(try string("line"))
    default: throw PolicyWireError("a request that this version of the protocol does not have")
    }
  }

  private func objectIDs() throws -> [PolicyObjectID]? { try readOptional("objects") { try $0.objectIDs() } }

  private func named() throws -> [String: PolicyObjectID] {
    var objects: [String: PolicyObjectID] = [:]
    try readOptional("objects") { try $0.object { reader, name in objects[name] = try reader.objectID() } }
    return objects
  }

  private func sort() throws -> [PolicySort] {
    try readOptional("sort") { cursor in
      try cursor.list { reader in
        var item = PolicySort(keyPath: "")
        let count = try reader.parts { reader, position in
          switch position {
          case 0: item.keyPath = try reader.string()
          case 1: item.ascending = try reader.boolean()
          default: throw reader.fault("an order is [key path, ascending]")
          }
        }
        guard count > 0 else { throw reader.fault("an order is [key path, ascending]") }
        return item
      }
    } ?? []
  }

  fileprivate func operations(_ instances: Int) throws -> [PolicyWireOperation] {
    try readOptional("operations") { cursor in
      try cursor.list { reader in
        var operation = PolicyOperationReader(instances)
        try reader.array { reader in try operation.read(&reader) }
        return try operation.finish(reader)
      }
    } ?? []
  }
}

/// Reads an operation, element by element.
private struct PolicyOperationReader {
  let instances: Int
  private var name = ""
  private var position = 0
  private var ids: [PolicyObjectID] = []
  private var relationship = ""
  private var members: [PolicyObjectID] = []
  private var number = 0
  private var values: [String: PolicyValue] = [:]

  init(_ instances: Int) { self.instances = instances }

  mutating func read(_ reader: inout JSONReader) throws {
    defer { position += 1 }
    guard position > 0 else {
      name = try reader.string()
      return
    }
    switch (name, position) {
    case ("standard", 1):
      let wanted = try reader.integer()
      guard wanted >= 0, wanted < instances else {
        throw reader.fault("the call has no instance with the number \(wanted)")
      }
      number = Int(wanted)
    case ("standard", 2), ("insert", 2), ("set", 2): values = try reader.values()
    case ("insert", 1), ("set", 1), ("add", 1), ("remove", 1), ("delete", 1), ("associate", 1), ("associate", 2):
      ids.append(try reader.objectID())
    case ("add", 2), ("remove", 2): relationship = try reader.string()
    case ("add", 3), ("remove", 3): members = try reader.objectIDs()
    default: throw reader.fault("an operation that the protocol does not have, or one with too many parts")
    }
  }

  func finish(_ reader: JSONReader) throws -> PolicyWireOperation {
    switch (name, position) {
    case ("insert", 3): return .plain(.insert(PolicyObject(id: ids[0], values: values)))
    case ("set", 3): return .plain(.set(PolicyObject(id: ids[0], values: values)))
    case ("standard", 2...3): return .standard(number, replacing: values)
    case ("add", 4): return .plain(.add(ids[0], relationship: relationship, members))
    case ("remove", 4): return .plain(.remove(ids[0], relationship: relationship, members))
    case ("delete", 2): return .plain(.delete(ids[0]))
    case ("associate", 3): return .plain(.associate(source: ids[0], destination: ids[1]))
    default: throw reader.fault("an operation that the protocol does not have, or one with too few parts")
    }
  }
}
