// Misuses by a policy, one by one: each ends the hop with Core Data's 134170, and the error names policy, mapping and
// place and contains no value. The source is unchanged, and a corrected policy gives the full result from the same
// files.

import BlockingTests
import Diagnostics
import Expressions
import ManagedObjectModel
import MigrationPolicy
import Testing

@testable import MappingModel
@testable import MigrationEngine
@testable import PolicyMigration

@Suite(.blocking) struct PolicyMisuseTests {
  static let rows = """
    INSERT INTO ZNODE (Z_PK, Z_ENT, Z_OPT, ZSTRING) VALUES (1, 4, 1, 'secret'), (2, 4, 1, 'secret'), \
    (9, 4, 1, 'secret');
    INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (7, 6, 1, 'secret');
    """

  static func at(_ entity: String, _ key: Int64, _ side: PolicyObjectID.Side = .destination) -> PolicyObjectID {
    PolicyObjectID(side: side, entity: entity, key: key)
  }

  static func object(_ entity: String, _ key: Int64, _ values: [String: PolicyValue] = [:]) -> PolicyObject {
    PolicyObject(id: at(entity, key), values: values)
  }

  struct Misuse: Sendable, CustomTestStringConvertible {
    let title: String
    let operations: [PolicyOperation]
    /// The names in the message or the place.
    let names: [String]
    var testDescription: String { title }

    init(_ title: String, _ operations: [PolicyOperation], _ names: String...) {
      self.title = title
      self.operations = operations
      self.names = names
    }
  }

  /// Sent after the default creation of the three nodes; the next free keys are 10 for nodes and 8 for tags.
  static let misuses: [Misuse] = [
    Misuse("insert: unknown entity", [.insert(object("Nobody", 1))], "Nobody"),
    Misuse("insert: abstract entity", [.insert(object("Base", 1))], "Base", "abstract"),
    Misuse(
      "insert: in the source", [.insert(PolicyObject(id: at("Node", 10, .source), values: [:]))], "source", "row 10"),
    Misuse("insert: a standard key twice", [.insert(object("Node", 2))], "row 2", "key"),
    Misuse("insert: a key of another row", [.insert(object("Tag", 7))], "row 7", "next free"),
    Misuse("insert: a key too far", [.insert(object("Node", 11))], "row 11", "10"),
    Misuse("insert: a key far behind", [.insert(object("Node", .max))], "key"),
    Misuse("insert: a key below", [.insert(object("Node", -4))], "key"),
    Misuse("insert: keys out of order", [.insert(object("Node", 10)), .insert(object("Leaf", 10))], "Leaf", "11"),
    Misuse("insert: unknown property", [.insert(object("Tag", 8, ["colour": .null]))], "Tag.colour"),
    Misuse(
      "insert: wrong type", [.insert(object("Tag", 8, ["name": .integer(1)]))], "Tag.name", "an integer", "String"),
    Misuse("insert: does not fit", [.insert(object("Node", 10, ["int16": .integer(40_000)]))], "Node.int16"),
    Misuse(
      "insert: to-one to nothing", [.insert(object("Node", 10, ["single": .object(at("Tag", 99))]))], "Node.single",
      "99"),
    Misuse(
      "insert: to-one to another entity", [.insert(object("Node", 10, ["single": .object(at("Home", 1))]))],
      "Node.single",
      "Home"),
    Misuse(
      "insert: to-one into the source", [.insert(object("Node", 10, ["parent": .object(at("Node", 1, .source))]))],
      "Node.parent", "source"),
    Misuse(
      "insert: a value for a to-one", [.insert(object("Node", 10, ["parent": .string("secret")]))], "Node.parent",
      "a string"),
    Misuse(
      "insert: an object for a to-many", [.insert(object("Node", 10, ["tags": .object(at("Tag", 7))]))], "Node.tags",
      "list"),
    Misuse(
      "insert: an object for an attribute", [.insert(object("Node", 10, ["string": .object(at("Tag", 7))]))],
      "Node.string"),
    Misuse(
      "insert: an entity that the row has not", [.insert(object("Node", 10, ["parent": .object(at("Leaf", 1))]))],
      "Node.parent"),
    Misuse("set: nothing there", [.set(object("Node", 10, ["string": .null]))], "row 10"),
    Misuse("set: another entity", [.set(object("Leaf", 1, ["string": .null]))], "Leaf", "row 1"),
    Misuse("set: nothing of nothing", [.set(object("Node", 10))], "row 10"),
    Misuse("set: in the source", [.set(PolicyObject(id: at("Node", 1, .source), values: ["string": .null]))], "source"),
    Misuse("set: unknown property", [.set(object("Node", 1, ["nothing": .null]))], "Node.nothing"),
    Misuse("set: property of a subentity", [.set(object("Node", 1, ["extra": .string("secret")]))], "Node.extra"),
    Misuse("set: wrong type", [.set(object("Node", 1, ["date": .double(5)]))], "Node.date", "a double"),
    Misuse("set: NaN", [.set(object("Node", 1, ["double": .double(.nan)]))], "Node.double"),
    Misuse("set: UUID of one byte", [.set(object("Node", 1, ["uuid": .uuid([1])]))], "Node.uuid"),
    Misuse("set: no decimal", [.set(object("Node", 1, ["decimal": .decimal("secret")]))], "Node.decimal"),
    Misuse(
      "set: to-many of another entity", [.set(object("Node", 1, ["tags": .objects([at("Node", 2)])]))], "Node.tags"),
    Misuse(
      "set: to-many of nothing", [.set(object("Node", 1, ["tags": .objects([at("Tag", 7), at("Tag", 70)])]))],
      "Node.tags", "70"),
    Misuse("add: to a to-one", [.add(at("Node", 1), relationship: "parent", [at("Node", 2)])], "Node.parent"),
    Misuse("add: to an attribute", [.add(at("Node", 1), relationship: "string", [])], "Node.string"),
    Misuse("add: to nothing", [.add(at("Node", 30), relationship: "tags", [at("Tag", 7)])], "row 30"),
    Misuse("add: nothing", [.add(at("Node", 1), relationship: "tags", [at("Tag", 70)])], "Node.tags", "70"),
    Misuse("remove: from a to-one", [.remove(at("Node", 1), relationship: "home", [])], "Node.home"),
    Misuse("remove: another entity", [.remove(at("Node", 1), relationship: "tags", [at("Home", 1)])], "Node.tags"),
    Misuse("delete: nothing there", [.delete(at("Node", 30))], "row 30"),
    Misuse("delete: twice", [.delete(at("Node", 1)), .delete(at("Node", 1))], "row 1"),
    Misuse("delete: in the source", [.delete(at("Node", 1, .source))], "source"),
    Misuse("associate: sides exchanged", [.associate(source: at("Node", 1), destination: at("Node", 1))], "source"),
    Misuse(
      "associate: nothing there", [.associate(source: at("Node", 1, .source), destination: at("Node", 30))], "row 30"),
    Misuse("associate: no source", [.associate(source: at("Node", 30, .source), destination: at("Node", 1))], "row 30"),
    Misuse(
      "associate: a source of another entity", [.associate(source: at("Leaf", 1, .source), destination: at("Node", 1))],
      "Leaf"),
    Misuse(
      "associate: unknown entity", [.associate(source: at("Nobody", 1, .source), destination: at("Node", 1))],
      "Nobody"),
  ]

  /// Every other one is sent with a request during the call, the others with its end.
  @Test(arguments: zip(misuses, misuses.indices)) func endsTheHop(_ misuse: Misuse, _ number: Int) throws {
    let isApplied = number % 2 == 0
    let world = try EveryKind.world(Self.rows)
    let before = try world.sourceBytes()
    let wrong = ClosurePolicies([
      "P": { call, pen in
        guard case .createDestinationInstances(let instances) = call else { return nil }
        for instance in instances { _ = pen.standard(instance) }
        if isApplied {
          pen.operations += misuse.operations
          // A policy that ignores the error gets no further.
          _ = try? pen.ask(.log("on"))
          _ = try? pen.ask(.log("and on"))
          return .done([])
        }
        return .done(misuse.operations)
      }
    ])
    let error = try #require(policyError { try world.run(wrong) })
    #expect(error.code == .policyFailed)
    #expect(error.place.hop == "V1 → V2")
    for name in misuse.names + ["policy P", "Nodes", "134170"] {
      #expect(error.description.contains(name), "\(name) is missing in: \(error)")
    }
    #expect(!error.description.contains("secret"))
    #expect(wrong.opened == 1 && wrong.closed == 1)
    #expect(try world.sourceBytes() == before)
    try world.run(ClosurePolicies(["P": { _, _ in nil }]))
    #expect(
      try world.rows("SELECT Z_PK, ZSTRING FROM ZNODE") == [["1", "secret"], ["2", "secret"], ["9", "secret"]])
    #expect(try world.rows("SELECT Z_PK FROM ZTAG") == [["7"]])
    #expect(try world.rows("SELECT name FROM sqlite_master WHERE name LIKE 'HOPD%'").isEmpty)
  }

  // MARK: The conversation itself

  @Test func failuresOfHooksAndMethodsAreReportedAsTheyAre() throws {
    let world = try EveryKind.world(Self.rows)
    func error(_ policy: @escaping ClosurePolicy) throws -> HopdError {
      try #require(policyError { try world.run(ClosurePolicies(["P": policy])) })
    }
    let failed = try error { call, _ in call == .endInstanceCreation ? .failed("row 5 has no parent") : nil }
    #expect(failed.code == .policyFailed && failed.message.contains("row 5 has no parent"))
    let thrown = try error { call, _ in call == .end ? try { throw PolicyFailure("gone") }() : nil }
    #expect(thrown.code == .policyFailed && thrown.cause != nil)
    let results = try error { _, _ in .results([]) }
    #expect(results.code == .policyFailed && results.message.contains("results"))
    let long = try error { _, _ in .failed(String(repeating: "x", count: 100_000)) }
    #expect(long.message.count < 3_000)
    let large = try error { call, pen in
      _ = try pen.ask(.remember(table: "t", key: .integer(1), .data([UInt8](repeating: 1, count: 2 << 20))))
      return nil
    }
    #expect(large.code == .policyFailed && large.message.contains("remember"))
    // A class that is not bound is never called, and one that cannot be opened is reported.
    let unbound = try #require(policyError { try world.run(ClosurePolicies([:])) })
    #expect(unbound.code == .policyFailed && unbound.hint?.contains("--policy P=") == true)
  }

  @Test func resultsOfMethodsAreCheckedLikeValues() throws {
    let model = [entity("Item", [attribute("n", .integer16)], [toOne("next", "Item")])]
    let world = try PolicyWorld(
      from: model, to: model,
      [
        [
          mapping(
            "Items", "Item", "Item", policy: "P", ["n": .policyMethod(selector: "n", [])],
            ["next": .policyMethod(selector: "next", [])])
        ]
      ], "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1)")
    func run(_ n: [PolicyValue], _ next: [PolicyValue]) -> HopdError? {
      policyError {
        try world.run(
          ClosurePolicies([
            "P": { call, _ in
              guard case .method(let selector, let arguments) = call else { return nil }
              #expect(arguments == [[], []])
              return .results(selector == "n" ? n : next)
            }
          ]))
      }
    }
    #expect(run([.integer(1)], [.null, .null])?.message.contains("1 results for 2 calls") == true)
    let wrong = run([.integer(1), .string("secret")], [.null, .null])
    #expect(wrong?.place.property == "n" && wrong?.place.row == 2 && wrong?.description.contains("secret") == false)
    #expect(run([.integer(1), .integer(70_000)], [.null, .null])?.place.property == "n")
    #expect(run([.null, .null], [.null, .integer(3)])?.place.property == "next")
    #expect(run([.null, .null], [.null, .object(Self.at("Item", 1, .source))])?.place.property == "next")
    #expect(run([.integer(-4), .null], [.null, .object(Self.at("Item", 2))]) == nil)
    #expect(try world.rows("SELECT ZN, ZNEXT FROM ZITEM") == [["-4", "–"], ["–", "2"]])
  }

  @Test func groupingWordsAndPoliciesExcludeEachOther() throws {
    let model = [entity("Item", [attribute("n", .integer16)])]
    let plain = mapping("Items", "Item", "Item", policy: "P")
    let world = try PolicyWorld(
      from: model, to: model,
      [
        [
          ExplicitEntityMapping(
            name: plain.name, type: plain.type, source: plain.source, destination: plain.destination, policy: "P",
            grouping: .distinctBy([source("n")], keep: .lowest))
        ]
      ], "")
    let error = try #require(policyError { try world.run(ClosurePolicies(["P": { _, _ in nil }])) })
    #expect(error.code == .policyFailed)
  }
}
