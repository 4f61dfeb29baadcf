import Testing

@testable import MigrationPolicy

/// The packed form has the same content as the JSON, and any bytes end in a message or an error.
@Suite struct PackedTests {
  private static let keys = PolicyKeys(next: ["Book": .max, "A\n": 1, "": -3])

  /// Every kind of value, with the difficult cases of each form.
  private static let extremes: [PolicyValue] = [
    .null, .boolean(true), .boolean(false), .integer(.min), .integer(.max), .integer(0), .integer(-1), .integer(63),
    .integer(64), .integer(-65), .double(.nan), .double(.infinity), .double(-.infinity), .double(-0.0),
    .double(.leastNonzeroMagnitude), .double(.greatestFiniteMagnitude), .date(.nan), .date(-.infinity), .date(0.1),
    .decimal("NaN"), .decimal("-1.50e-3"), .string(""), .string("a\u{0}\"\\\n😀e\u{301}"),
    .string(String(repeating: "é", count: 300)), .uri("x:"), .data([]), .data([UInt8](repeating: 255, count: 200)),
    .transformable([0]), .uuid([UInt8](0..<16)), .object(PolicyObjectID(side: .source, entity: "", key: .min)),
    .variable(.manager), .objects([]), .list([.list([.list([]), .null]), .double(.nan)]),
  ]

  private func object(_ random: inout SeededRandom, _ side: PolicyObjectID.Side) -> PolicyObject {
    var values: [String: PolicyValue] = [:]
    for name in ["title", "pages", "author", "x\"y", ""] where Bool.random(using: &random) {
      values[name] = Bool.random(using: &random) ? random.value(depth: 2) : Self.extremes.randomElement(using: &random)
    }
    var id = random.id()
    id.side = side
    return PolicyObject(id: id, values: values)
  }

  private func instances(_ random: inout SeededRandom) -> [PolicySourceInstance] {
    (0..<Int.random(in: 0...6, using: &random)).map { _ in
      PolicySourceInstance(source: object(&random, .source), standard: object(&random, .destination))
    }
  }

  private func operations(_ random: inout SeededRandom, instances: Int) -> [PolicyWireOperation] {
    var operations: [PolicyWireOperation] = [
      .plain(.insert(object(&random, .destination))), .plain(.set(object(&random, .destination))),
      .plain(.add(random.id(), relationship: random.text(), [random.id(), random.id()])),
      .plain(.remove(random.id(), relationship: "r", [])), .plain(.delete(random.id())),
      .plain(.associate(source: random.id(), destination: random.id())),
    ]
    for number in 0..<instances {
      operations.append(.standard(number, replacing: PolicyFields(object(&random, .destination).values)))
    }
    return operations.shuffled(using: &random)
  }

  private func message(_ frame: [UInt8]?) throws -> [UInt8] {
    let frame = try #require(frame)
    #expect(frame.prefix(4).reduce(0) { $0 << 8 | Int($1) } == frame.count - 4)
    return Array(frame.dropFirst(4))
  }

  /// NaN does not equal itself, but its text does.
  private func json(_ message: PolicyEngineMessage) throws -> [UInt8] { try self.message(PolicyWire.encode(message)) }

  @Test func callsSayTheSameInBothForms() throws {
    for seed in UInt64(1)...200 {
      var random = SeededRandom(seed: seed)
      let instances = instances(&random)
      let batch = PolicyBatch(instances)
      #expect(batch.count == instances.count)
      let plain = try json(.call(.createDestinationInstances(instances), keys: Self.keys))
      let packed = try message(PolicyWire.encodePacked(batch, keys: Self.keys))
      #expect(PolicyWire.isPacked(packed) && !PolicyWire.isPacked(plain))
      #expect(try json(PolicyWire.decodeEngine(packed)) == plain, "seed \(seed)")
      // The same batch in JSON, for programs that read no other form.
      let finished = try message(PolicyWire.finishJSON(PolicyWire.encodeJSON(batch), keys: Self.keys))
      #expect(try json(PolicyWire.decodeEngine(finished)) == plain, "seed \(seed)")
      let ids = (0..<5).map { _ in random.id() }
      let relationships = try message(PolicyWire.encodePacked(relationships: ids, keys: Self.keys))
      #expect(
        try PolicyWire.decodeEngine(relationships) == .call(.createRelationships(ids), keys: Self.keys), "seed \(seed)")
    }
  }

  @Test func operationsSayTheSameInBothForms() throws {
    for seed in UInt64(1)...200 {
      var random = SeededRandom(seed: seed)
      let operations = operations(&random, instances: 3)
      for isEnd in [true, false] {
        let plain = try message(
          isEnd ? PolicyWire.encode(done: operations) : PolicyWire.encode(apply: operations))
        let packed = try message(PolicyWire.encodePacked(operations, isEnd: isEnd))
        func again(_ bytes: [UInt8]) throws -> [UInt8] {
          switch try PolicyWire.decode(bytes, instances: 3) {
          case .done(let read): try message(PolicyWire.encode(done: read))
          case .apply(let read): try message(PolicyWire.encode(apply: read))
          case .message(let other): throw PolicyWireError("\(other)")
          }
        }
        #expect(try again(packed) == plain && again(plain) == plain, "seed \(seed)")
        // An instance that the call does not have.
        #expect(throws: PolicyWireError.self) { try PolicyWire.decode(packed, instances: 2) }
      }
    }
  }

  /// The values that a standard object has from its source are sent once, and are read as its own.
  @Test func copiesAreTheValuesOfTheSource() throws {
    var writer = PolicyBatchWriter(source: ("Book", ["title", "pages"]), standard: ("Item", ["n", "name"]))
    for key in Int64(1)...3 {
      writer.begin(source: key)
      writer.value(.string("t\(key)"))
      writer.integer(-key)
      writer.standard(key + 100)
      writer.copy(of: 1)
      writer.copy(of: 0)
    }
    let batch = writer.finished().adding(["hex"], [["a", .null, .list([1])]])
    guard
      case .call(.createDestinationInstances(let all), _) = try PolicyWire.decodeEngine(
        message(PolicyWire.encodePacked(batch, keys: Self.keys)))
    else {
      Issue.record("no call")
      return
    }
    #expect(
      all.map(\.source.values) == (1...3).map { ["title": .string("t\($0)"), "pages": .integer(-$0)] })
    let hex: [PolicyValue] = ["a", .null, .list([1])]
    #expect(
      all.map(\.standard.values)
        == (Int64(1)...3).map { ["n": .integer(-$0), "name": .string("t\($0)"), "hex": hex[Int($0) - 1]] })
    #expect(all.map(\.standard.id.key) == [101, 102, 103] && Set(all.map(\.standard.id.entity)) == ["Item"])
    let json = try message(PolicyWire.finishJSON(PolicyWire.encodeJSON(batch), keys: Self.keys))
    #expect(try PolicyWire.decodeEngine(json) == .call(.createDestinationInstances(all), keys: Self.keys))
  }

  @Test func textThatIsNotUTF8IsRefused() throws {
    let frame = try message(PolicyWire.encodePacked([.standard(0, replacing: ["title": "qqqq"])], isEnd: true))
    let place = try #require(frame.firstRange(of: Array("qqqq".utf8)))
    for bad: [UInt8] in [[0xc3, 0x28, 0x61, 0x61], [0xed, 0xa0, 0x80, 0x61], [0xff, 0xff, 0xff, 0xff]] {
      var bytes = frame
      bytes.replaceSubrange(place, with: bad)
      #expect(throws: PolicyWireError.self) { try PolicyWire.decode(bytes, instances: 1) }
    }
  }

  /// Every byte of small messages in turn, every length, and many at random.
  @Test func damagedMessagesNeverTrap() throws {
    var random = SeededRandom(seed: 25)
    var refused = 0
    func read(_ bytes: [UInt8]) {
      do { _ = try PolicyWire.decodeEngine(bytes) } catch { refused += 1 }
      do { _ = try PolicyWire.decode(bytes, instances: 2) } catch { refused += 1 }
    }
    let batch = PolicyBatch(instances(&random) + instances(&random))
    for whole in [
      try message(PolicyWire.encodePacked(batch, keys: Self.keys)),
      try message(PolicyWire.encodePacked(relationships: [random.id()], keys: Self.keys)),
      try message(PolicyWire.encodePacked(operations(&random, instances: 2), isEnd: true)),
      try message(PolicyWire.encodePacked([], isEnd: false)),
    ] {
      for length in 0..<whole.count { read(Array(whole[..<length])) }
      for index in whole.indices {
        for byte: UInt8 in [0, 1, 12, 14, 15, 0x7f, 0x80, 0xff] {
          var bytes = whole
          bytes[index] = byte
          read(bytes)
        }
      }
    }
    #expect(refused > 2000)
  }

  @Test(arguments: [
    [], [3], [4, 0, 0, 0, 0], [1], [1, 0, 0, 0, 0], [1, 255, 255, 255, 255], [5, 0, 0, 0, 0, 0, 0],
    [5, 0, 0, 0, 0, 0, 0, 1], [5, 0, 0, 0, 0, 0, 0, 0, 0], [5, 1, 0, 0, 0, 9, 0, 0, 1],
    [2, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0],
    [2, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2, 0],
  ])
  func whatThePackedFormDoesNotHaveIsRefused(_ bytes: [UInt8]) {
    #expect(throws: PolicyWireError.self) { try PolicyWire.decode(bytes, instances: 1) }
    #expect(throws: PolicyWireError.self) { try PolicyWire.decodeEngine(bytes) }
  }

  @Test func depthIsBounded() throws {
    func nested(_ depth: Int) -> PolicyValue { (0..<depth).reduce(PolicyValue.null) { value, _ in .list([value]) } }
    let allowed = try message(PolicyWire.encodePacked([.standard(0, replacing: ["a": nested(20)])], isEnd: true))
    _ = try PolicyWire.decode(allowed, instances: 1)
    for depth in [40, 50_000] {
      // Written by hand: no writer makes values of this depth.
      var fields: [UInt8] = [0, 0, 1, 0]
      for _ in 0..<depth { fields += [14, 1] }
      fields.append(0)
      let length = (0..<4).map { UInt8(truncatingIfNeeded: fields.count >> (8 * $0)) }
      #expect(throws: PolicyWireError.self) {
        try PolicyWire.decode([5] + length + fields + [0, 1, 1, 0x61, 1], instances: 1)
      }
    }
  }
}
