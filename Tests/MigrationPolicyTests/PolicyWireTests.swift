import LocalPolicies
import Testing

@testable import MigrationPolicy

@Suite struct PolicyWireTests {
  private static let book = PolicyObjectID(side: .destination, entity: "Book", key: 7)
  private static let old = PolicyObjectID(side: .source, entity: "Book", key: 7)

  private func object(_ random: inout SeededRandom, _ side: PolicyObjectID.Side) -> PolicyObject {
    var values: [String: PolicyValue] = [:]
    for name in ["title", "pages", "author", "x\"y"] where Bool.random(using: &random) {
      values[name] = random.value(depth: 2)
    }
    var id = random.id()
    id.side = side
    return PolicyObject(id: id, values: values)
  }

  private func engineMessages(_ random: inout SeededRandom) -> [PolicyEngineMessage] {
    let keys = PolicyKeys(next: ["Book": .random(in: 1...(.max), using: &random), "A\n": 1])
    let objects = (0..<4).map { _ in object(&random, .source) }
    let instances = (0..<5).map { _ in
      PolicySourceInstance(source: object(&random, .source), standard: object(&random, .destination))
    }
    let entity = PolicyEntity(
      name: "Book", root: "Item", isAbstract: true,
      properties: [
        "title": PolicyProperty(kind: "String"), "authors": PolicyProperty(kind: "to-many", destination: "Author"),
      ])
    return [
      .introduction(
        version: PolicyWire.version,
        PolicyIntroduction(
          policy: "App.Policy", mapping: "BookToBook", mappingType: "custom", source: "Book", destination: nil,
          userInfo: ["modelVersion": "2", "list": random.value(depth: 2)],
          expressions: ["title": "$source.title", "pages": nil],
          sourceVersion: "v 1", destinationVersion: "v 2", sourceEntities: [entity],
          destinationEntities: [entity, entity])),
      .call(.begin, keys: keys), .call(.endInstanceCreation, keys: keys), .call(.endRelationshipCreation, keys: keys),
      .call(.performCustomValidation, keys: keys), .call(.end, keys: PolicyKeys(next: [:])),
      .call(
        .method(
          selector: "hex:with:",
          arguments: [[random.value(depth: 1)], [], PolicyVariable.allCases.map { .variable($0) }]),
        keys: keys),
      .call(.createDestinationInstances(instances), keys: keys), .call(.createDestinationInstances([]), keys: keys),
      .call(.createRelationships([Self.book, random.id()]), keys: keys), .answer(.done), .answer(.objects(objects)),
      .answer(.ids([Self.old, Self.book, random.id()])), .answer(.value(random.value(depth: 2))),
      .answer(.refused("no \"way\"")),
    ]
  }

  private func programMessages(_ random: inout SeededRandom) -> [PolicyProgramMessage] {
    let operations: [PolicyOperation] = [
      .insert(object(&random, .destination)), .set(object(&random, .destination)),
      .add(Self.book, relationship: "authors", [random.id()]),
      .remove(Self.book, relationship: "authors", []), .delete(Self.book),
      .associate(source: Self.old, destination: Self.book),
    ]
    return [
      .hello(version: 1), .request(.apply(operations)), .request(.apply([])),
      .request(.fetch(side: .source, entity: "Book", predicate: "title == 'a'", limit: 3)),
      .request(.fetch(side: .destination, entity: "Book", predicate: nil, limit: nil)),
      .request(
        .fetch(
          side: .destination, entity: "Book", predicate: "a == $b", limit: nil,
          objects: ["b": Self.book, "ä\"": Self.old],
          sort: [PolicySort(keyPath: "a.b"), PolicySort(keyPath: "", ascending: false)])),
      .request(.values([Self.book, random.id()], properties: ["authors"])),
      .request(.destinationInstances(mapping: "M", sources: [Self.old])),
      .request(.destinationInstances(mapping: "M", sources: nil)),
      .request(.sourceInstances(mapping: "M", destinations: [])),
      .request(.sourceInstances(mapping: "M", destinations: nil)),
      .request(.lookup(table: "t", key: random.value(depth: 1))),
      .request(.remember(table: "t", key: random.value(depth: 1), random.value(depth: 1))), .request(.log("a\nb")),
      .reply(.done(operations)), .reply(.done([])), .reply(.results([random.value(depth: 2), .null])),
      .reply(.results([.null], operations)),
      .reply(.failed("because")),
    ]
  }

  private func json(_ frame: [UInt8]?) throws -> [UInt8] {
    let frame = try #require(frame)
    #expect(frame.prefix(4).reduce(0) { $0 << 8 | Int($1) } == frame.count - 4)
    return Array(frame.dropFirst(4))
  }

  @Test func everyMessageOfTheEngineComesBack() throws {
    for seed in UInt64(1)...40 {
      var random = SeededRandom(seed: seed)
      for message in engineMessages(&random) {
        #expect(try PolicyWire.decodeEngine(json(PolicyWire.encode(message))) == message, "seed \(seed)")
      }
    }
  }

  @Test func everyMessageOfAProgramComesBack() throws {
    for seed in UInt64(1)...40 {
      var random = SeededRandom(seed: seed)
      for message in programMessages(&random) {
        #expect(try PolicyWire.decodeProgram(json(PolicyWire.encode(message)), during: nil) == message, "seed \(seed)")
      }
    }
  }

  /// Default creation is sent as a number and read as the insertion and the association that it represents.
  @Test func defaultCreationIsSpelledOut() throws {
    let instance = PolicySourceInstance(
      source: PolicyObject(id: Self.old, values: [:]),
      standard: PolicyObject(id: Self.book, values: ["title": "a", "pages": 3]))
    let call = PolicyCall.createDestinationInstances([instance])
    let frame = try json(PolicyWire.encode(done: [.standard(0, replacing: ["title": "b"])]))
    let expected: [PolicyOperation] = [
      .insert(PolicyObject(id: Self.book, values: ["title": "b", "pages": 3])),
      .associate(source: Self.old, destination: Self.book),
    ]
    #expect(try PolicyWire.decodeProgram(frame, during: call) == .reply(.done(expected)))
    #expect(PolicyOperation.spelledOut([.standard(0, replacing: ["title": "b"])], during: call) == expected)
    for other in [PolicyCall.begin, .createDestinationInstances([])] {
      #expect(throws: PolicyWireError.self) { try PolicyWire.decodeProgram(frame, during: other) }
    }
  }

  @Test func fieldsMayStandInAnyOrderAndUnknownOnesAreIgnored() throws {
    let text = #"{"future":{"a":[1]},"limit":2,"entity":"Book","side":"source","request":"fetch"}"#
    let message = try PolicyWire.decodeProgram(Array(text.utf8), during: nil)
    #expect(message == .request(.fetch(side: .source, entity: "Book", predicate: nil, limit: 2)))
  }

  /// Any truncated or changed message ends in a message or an error.
  @Test func damagedMessagesNeverTrap() throws {
    var random = SeededRandom(seed: 9)
    var refused = 0
    for message in engineMessages(&random).map({ PolicyWire.encode($0) })
      + programMessages(&random).map({ PolicyWire.encode($0) })
    {
      let whole = try json(message)
      for _ in 0..<120 {
        var bytes = whole
        if Bool.random(using: &random) {
          bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
        } else {
          bytes[Int.random(in: bytes.indices, using: &random)] = UInt8(random.next() & 0x7f)
        }
        do {
          _ = try PolicyWire.decodeEngine(bytes)
        } catch { refused += 1 }
        do {
          _ = try PolicyWire.decodeProgram(bytes, during: .createDestinationInstances([]))
        } catch { refused += 1 }
      }
    }
    #expect(refused > 1000)
  }

  @Test(arguments: [
    #"{}"#, #"[]"#, #"{"hello":"1"}"#, #"{"request":"fly"}"#, #"{"reply":"done","operations":[["insert"]]}"#,
    #"{"reply":"done","operations":[["insert",["destination","Book",1],{},1]]}"#,
    #"{"reply":"done","operations":[["standard",-1]]}"#,
    #"{"reply":"done","operations":[[]]}"#, #"{"reply":"done","operations":[["explode",1]]}"#, #"{"reply":"done"} x"#,
    #"{"reply":"failed"}"#, #"{"request":"fetch","side":"source","entity":"A","limit":-1}"#,
    #"{"reply":"done","reply":"done"}"#, #"{"reply":"done","operation":[]}"#, #"{"request":"apply"}"#,
    #"{"request":"apply","operations":[],"more":1}"#, #"{"request":"fetch","side":"source","entity":"A","sort":[[]]}"#,
    #"{"request":"fetch","side":"source","entity":"A","sort":[["a",true,1]]}"#,
    #"{"request":"lookup","table":"t","key":{"$variable":"nobody"}}"#,
  ])
  func whatTheProtocolDoesNotHaveIsRefused(_ text: String) {
    #expect(throws: PolicyWireError.self) { try PolicyWire.decodeProgram(Array(text.utf8), during: nil) }
  }
}
