// The input and output of a policy: arguments and results of methods, and the arguments of fetch requests.

import BlockingTests
import Diagnostics
import Expressions
import LocalPolicies
import ManagedObjectModel
import MappingModel
import MigrationPolicy
import Testing

@testable import MigrationEngine
@testable import PolicyMigration

@Suite(.blocking, .serialized) struct PolicyArgumentTests {
  private static let model = [
    entity(
      "Item",
      [
        attribute("a"), attribute("n", .integer32), attribute("u", .uuid), attribute("d", .binary),
        attribute("size", .integer32),
      ],
      [toOne("next", "Item"), toMany("notes", "Note", inverse: "item")]),
    entity("Note", [attribute("tag")], [toOne("item", "Item", inverse: "notes")]),
  ]

  private static let rows = """
    INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZA, ZN, ZU, ZD, ZSIZE) VALUES
      (1, 1, 1, 'a', 3, x'000102030405060708090A0B0C0D0E0F', x'0A0B', 5), (2, 1, 1, 'b', 1, NULL, NULL, 6),
      (3, 1, 1, NULL, 2, NULL, NULL, 7);
    INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTAG, ZITEM) VALUES (1, 2, 1, 'x', 1), (2, 2, 1, 'y', 1), (3, 2, 1, 'z', 2);
    """

  private func world(
    _ attributes: [String: ExpressionNode] = [:], _ relationships: [String: ExpressionNode] = [:]
  ) throws -> PolicyWorld {
    var values: [String: ExpressionNode] = [:]
    for name in ["a", "n", "u", "d", "size"] { values[name] = source(name) }
    return try PolicyWorld(
      from: Self.model, to: Self.model,
      [
        [
          mapping(
            "Notes", "Note", "Note", type: .copy, ["tag": source("tag")], ["item": made(by: "Items", of: "item")]),
          mapping("Items", "Item", "Item", policy: "P", values.merging(attributes) { $1 }, relationships),
        ]
      ], Self.rows)
  }

  /// The methods of one test, by selector.
  private final class Methods: EntityMigrationPolicy {
    nonisolated(unsafe) static var bodies:
      [String: ([PolicyValue], MigrationPolicy.MigrationManager) throws -> PolicyValue] = [:]
    nonisolated(unsafe) static var atEnd: (MigrationPolicy.MigrationManager) throws -> Void = { _ in }

    override func method(_ selector: String, arguments: [PolicyValue], manager: MigrationPolicy.MigrationManager)
      throws -> PolicyValue
    {
      try Self.bodies[selector]?(arguments, manager) ?? .null
    }

    override func endInstanceCreation(
      forMapping mapping: MigrationPolicy.EntityMapping, manager: MigrationPolicy.MigrationManager
    ) throws { try Self.atEnd(manager) }

    static func policies(
      _ bodies: [String: ([PolicyValue], MigrationPolicy.MigrationManager) throws -> PolicyValue] = [:],
      atEnd: @escaping (MigrationPolicy.MigrationManager) throws -> Void = { _ in }
    ) -> LocalPolicies {
      (Self.bodies, Self.atEnd) = (bodies, atEnd)
      return LocalPolicies(["P": Methods.self])
    }
  }

  private func method(_ selector: String, _ arguments: ExpressionNode...) -> ExpressionNode {
    .policyMethod(selector: selector, arguments)
  }

  @Test("The variables of a mapping model reach the policy's methods as what they are")
  func variables() throws {
    let all: [ExpressionNode] = ["source", "destination", "manager", "entityMapping", "entityPolicy"].map {
      .variable($0)
    }
    let world = try world(
      ["a": .policyMethod(selector: "a:::::", all)], ["next": .policyMethod(selector: "next:::::", all)])
    var seen: [String: [[PolicyValue]]] = [:]
    func body(_ name: String) -> ([PolicyValue], MigrationPolicy.MigrationManager) throws -> PolicyValue {
      { arguments, manager in
        seen[name, default: []].append(arguments)
        return name == "a" ? "made" : .null
      }
    }
    try world.run(Methods.policies(["a:::::": body("a"), "next:::::": body("next")]))
    let wanted: [[PolicyValue]] = (1...3).map { key in
      [
        .object(PolicyObjectID(side: .source, entity: "Item", key: key)),
        .object(PolicyObjectID(side: .destination, entity: "Item", key: key)),
        .variable(.manager), .variable(.entityMapping), .variable(.entityPolicy),
      ]
    }
    #expect(seen == ["a": wanted, "next": wanted])
    #expect(try world.rows("SELECT DISTINCT ZA FROM ZITEM") == [["made"]])
  }

  @Test("In a relationship's method $destination can be read and changed; in an attribute's that is an error")
  func destinations() throws {
    func change(_ arguments: [PolicyValue], _ manager: MigrationPolicy.MigrationManager) throws -> PolicyValue {
      guard case .object(let id)? = arguments.first else { return .null }
      try manager.object(with: id).setValue("changed", forKey: "a")
      return .null
    }
    let late = try world([:], ["next": method("change:", .variable("destination"))])
    try late.run(Methods.policies(["change:": change]))
    #expect(try late.rows("SELECT DISTINCT ZA FROM ZITEM") == [["changed"]])
    let early = try world(["n": method("change:", .variable("destination"))])
    let error = policyError { try early.run(Methods.policies(["change:": change])) }
    #expect("\(error.map { "\($0)" } ?? "")".contains("wants to change $destination"), "\(String(describing: error))")
  }

  @Test("A method gives a relationship an object, objects in any kind of list, or none")
  func results() throws {
    func items(_ manager: MigrationPolicy.MigrationManager) throws -> [ManagedObject] { try manager.fetch("Item") }
    let world = try world(
      [:], ["next": method("next:", source("n")), "notes": method("notes:", source("n"))])
    try world.run(
      Methods.policies([
        "next:": { arguments, manager in
          switch arguments[0] {
          case 1: []
          case 2: PolicyValue(try manager.fetch("Item", where: "n == %d", 1))
          default: PolicyValue(try items(manager).last)
          }
        },
        "notes:": { arguments, manager in
          let notes = try manager.fetch("Note")
          return switch arguments[0] {
          case 1: []
          case 2: .list(notes.prefix(1).map { .object($0.objectID) })
          default: PolicyValue(Array(notes.dropFirst()))
          }
        },
      ]))
    #expect(try world.rows("SELECT Z_PK, ZNEXT FROM ZITEM ORDER BY 1") == [["1", "3"], ["2", "–"], ["3", "2"]])
    #expect(try world.rows("SELECT ZTAG, ZITEM FROM ZNOTE ORDER BY 1") == [["x", "3"], ["y", "1"], ["z", "1"]])
    let many = try self.world([:], ["next": method("next:", source("n"))])
    let error = policyError {
      try many.run(Methods.policies(["next:": { _, manager in PolicyValue(try items(manager)) }]))
    }
    #expect("\(error.map { "\($0)" } ?? "")".contains("a to-one takes an object"), "\(String(describing: error))")
  }

  // MARK: Fetch requests

  /// Returns the keys that a closure finds in the destination after all objects are created.
  private func found(_ body: @escaping (MigrationPolicy.MigrationManager) throws -> [ManagedObject]) throws -> [Int64] {
    var keys: [Int64] = []
    let world = try world()
    try world.run(Methods.policies(atEnd: { manager in keys = try body(manager).map(\.objectID.key) }))
    return keys
  }

  @Test("A predicate takes every value that has an order or an identity, and key paths")
  func values() throws {
    let uuid = [UInt8](0..<16)
    #expect(try found { try $0.fetch("Item", where: "u == %@", .uuid(uuid)) } == [1])
    #expect(try found { try $0.fetch("Item", where: "d == %@", .data([10, 11])) } == [1])
    #expect(try found { try $0.fetch("Item", where: "%K IN %@", "n", [1, 2]) } == [2, 3])
    // A key that is a keyword of the language, and a text with a percent sign.
    #expect(try found { try $0.fetch("Item", where: "%K > %d AND a != '%@ % d'", "size", 5) } == [2, 3])
    #expect(try found { try $0.fetch("Item", in: .source, where: "a == %@", "b") } == [2])
    for wrong in ["%Q == 1", "n == %", "%K == 1"] {
      #expect(throws: (any Error).self, "\(wrong)") { try found { try $0.fetch("Item", where: wrong, 1) } }
    }
    for path in ["", "a b", "a.", "1", "a) OR (TRUE", "@count"] {
      #expect(throws: (any Error).self, "\(path)") {
        try found { try $0.fetch("Item", where: "%K == 1", .string(path)) }
      }
    }
  }

  @Test("A predicate takes objects: one, a list, and what leads to and from them")
  func objects() throws {
    // The relationships of the mapping are not set yet, so the policy sets some.
    func made(_ manager: MigrationPolicy.MigrationManager) throws -> [ManagedObject] {
      let items = try manager.fetch("Item")
      let notes = try ["p", "q", "r"].map { tag in
        let note = try manager.insertNewObject(forEntityName: "Note")
        try note.setValue(.string(tag), forKey: "tag")
        return note
      }
      try items[0].add([notes[0], notes[2]], to: "notes")
      try notes[1].setValue(items[1], forKey: "item")
      try items[2].setValue(items[0], forKey: "next")
      return items
    }
    func notes(_ body: @escaping (MigrationPolicy.MigrationManager, [ManagedObject]) throws -> [ManagedObject]) throws
      -> [String]
    {
      var tags: [String] = []
      let world = try world()
      try world.run(
        Methods.policies(atEnd: { manager in
          tags = try body(manager, try made(manager)).map {
            try $0.string(forKey: $0.entityName == "Note" ? "tag" : "a") ?? "–"
          }
        }))
      return tags
    }
    #expect(try notes { try $0.fetch("Note", where: "item == %@", PolicyValue($1[0])) } == ["p", "r"])
    #expect(
      try notes { try $0.fetch("Note", where: "item != %@ AND item != nil", PolicyValue($1[0])) } == ["q"])
    #expect(try notes { try $0.fetch("Note", where: "item IN %@", PolicyValue(Array($1[0...1]))) } == ["p", "q", "r"])
    #expect(try notes { try $0.fetch("Item", where: "SELF == %@", PolicyValue($1[1])) } == ["b"])
    #expect(try notes { try $0.fetch("Item", where: "next == %@ OR a == %@", PolicyValue($1[0]), "b") } == ["b", "–"])
    #expect(
      try notes { manager, _ in
        let note = try manager.fetch("Note", where: "tag == 'q'").first
        return try manager.fetch("Item", where: "ANY notes == %@", PolicyValue(note))
      } == ["b"])
    // The same text with other objects is the same query, and returns the result for these objects.
    #expect(
      try notes { manager, items in
        try items.flatMap { try manager.fetch("Note", where: "item == %@", PolicyValue($0)) }
      } == ["p", "r", "q"])
    // A predicate without a form in SQL is evaluated for each object.
    #expect(
      try notes { try $0.fetch("Note", where: "item == %@ AND tag MATCHES %@", PolicyValue($1[0]), "[p-q]") } == ["p"])
  }

  @Test("An object that cannot be meant is refused")
  func wrongObjects() throws {
    var reasons: [String] = []
    let world = try world()
    try world.run(
      Methods.policies(atEnd: { manager in
        let ids = [
          PolicyObjectID(side: .source, entity: "Item", key: 1),
          PolicyObjectID(side: .destination, entity: "Item", key: 99),
          PolicyObjectID(side: .destination, entity: "Nobody", key: 1),
        ]
        for id in ids {
          do { _ = try manager.fetch("Note", where: "item == %@", .object(id)) } catch { reasons.append("\(error)") }
        }
        let many = PolicyValue.objects((1...41).map { PolicyObjectID(side: .destination, entity: "Item", key: $0) })
        do { _ = try manager.fetch("Note", where: "item IN %@", many) } catch { reasons.append("\(error)") }
      }))
    #expect(reasons.count == 4)
    for (reason, words) in zip(reasons, ["object of the source", "Item 99", "Nobody 1", "more than 40 objects"]) {
      #expect(reason.contains(words), "\(reason)")
    }
  }

  @Test("Objects come in the order that is asked for, and then by key")
  func orders() throws {
    #expect(try found { try $0.fetch("Item", sort: [.ascending("n")]) } == [2, 3, 1])
    #expect(try found { try $0.fetch("Item", sort: [.descending("n")], limit: 2) } == [1, 3])
    // nil comes first, as in Core Data's SQL; equal values are ordered by key.
    #expect(try found { try $0.fetch("Item", sort: [.ascending("a")]) } == [3, 1, 2])
    #expect(try found { try $0.fetch("Item", sort: [.ascending("u"), .descending("a")]) } == [2, 3, 1])
    #expect(
      try found { try $0.fetch("Note", in: .source, sort: [.descending("item.n"), .descending("tag")]) } == [2, 1, 3])
    for wrong in ["notes", "item", "nobody", "1", "tag ==", "d"] {
      #expect(throws: (any Error).self, "\(wrong)") {
        try found { try $0.fetch(wrong == "d" ? "Item" : "Note", sort: [.ascending(wrong)]) }
      }
    }
  }

  @Test("A policy knows where a relationship leads, and shares userInfo with all others")
  func namesAndUserInfo() throws {
    var names: [String] = []
    let world = try world()
    try world.run(
      Methods.policies(atEnd: { manager in
        let item = try manager.fetch("Item")[0]
        names = try item.relationshipNames.map { try item.destinationEntityName(forRelationship: $0) }
        #expect(throws: PolicyError.self) { try item.destinationEntityName(forRelationship: "a") }
        try manager.userInfo.setObject(item, for: "first")
        #expect(try manager.table("userInfo").object(for: "first") == item)
      }))
    #expect(names == ["Item", "Note"])
  }
}
