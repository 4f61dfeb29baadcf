// Every change that a policy makes in hooks or methods is in the store or causes an error: case by case.
// RestlessPolicyTests does the same at random.

import BlockingTests
import Diagnostics
import Expressions
import LocalPolicies
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import MigrationPolicy
import Testing

@testable import MigrationEngine
@testable import PolicyMigration

@Suite(.blocking, .serialized) struct PolicyCompletenessTests {
  /// The world of all tests here: items with methods for an attribute and a relationship, and notes that only policies
  /// create.
  private func world() throws -> PolicyWorld {
    let model = [
      entity("Item", [attribute("a"), attribute("n", .integer32)], [toOne("next", "Item")]),
      entity("Note", [attribute("tag"), attribute("text")], [toOne("item", "Item")]),
    ]
    return try PolicyWorld(
      from: model, to: model,
      [
        [
          mapping(
            "Items", "Item", "Item", policy: "P",
            [
              "a": .policyMethod(selector: "text:", [source("a")]),
              "n": .policyMethod(selector: "number:", [source("n")]),
            ], ["next": .policyMethod(selector: "next:", [.variable("source")])])
        ]
      ],
      "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZA, ZN) VALUES (1, 1, 1, 'a', 10), (2, 1, 1, 'b', 20), (3, 1, 1, 'c', 30)"
    )
  }

  /// A required value that any hook removes, even the last one, ends the hop, and the error names the row.
  @Test func noHookLeavesARowThatBreaksTheRules() throws {
    func books() throws -> PolicyWorld {
      try PolicyWorld(
        from: [entity("Book", [attribute("title")])], to: [entity("Book", [attribute("title", optional: false)])],
        [[mapping("BookToBook", "Book", "Book", policy: "P", ["title": source("title")])]],
        "INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (4, 1, 1, 'Dune')")
    }
    let world = try books()
    let hooks: [PolicyCall] = [.endInstanceCreation, .endRelationshipCreation, .performCustomValidation, .end]
    for hook in hooks {
      let policies = ClosurePolicies([
        "P": { call, _ in
          guard call == hook else { return nil }
          let book = PolicyObjectID(side: .destination, entity: "Book", key: 4)
          return .done([.set(PolicyObject(id: book, values: ["title": .null]))])
        }
      ])
      let error = policyError { try world.run(policies) }
      #expect(error?.code == .invalidRows, "\(hook): \(String(describing: error))")
      #expect(error?.reasons.first?.place.row == 4, "\(hook)")
    }
    try world.run(ClosurePolicies(["P": { _, _ in nil }]))
    #expect(try world.rows("SELECT ZTITLE FROM ZBOOK") == [["Dune"]])
    // Invalid rows before and in `end` are treated alike.
    let skipping = try books()
    skipping.options.invalidRows = InvalidRowsRules(standard: .skip)
    let second = PolicyObjectID(side: .destination, entity: "Book", key: 5)
    let staged = try skipping.run(
      ClosurePolicies([
        "P": { call, _ in
          switch call {
          case .endInstanceCreation: .done([.insert(PolicyObject(id: second, values: [:]))])
          case .end:
            .done([
              .set(
                PolicyObject(
                  id: PolicyObjectID(side: .destination, entity: "Book", key: 4), values: ["title": .null]))
            ])
          default: nil
          }
        }
      ]))
    #expect(try skipping.rows("SELECT count(*) FROM ZBOOK") == [["0"]])
    #expect(staged.tallies.invalidRows.map(\.keys) == [[5], [4]])
  }

  @Test("What a method inserts and changes is stored without a question after it", arguments: ["text:", "next:"])
  func methodsWithoutQuestions(selector: String) throws {
    let world = try world()
    try world.run(
      ClosurePolicies([
        "P": { call, pen in
          guard case .method(let asked, let arguments) = call else { return nil }
          if asked == selector {
            for index in arguments.indices { _ = try pen.insert("Note", ["tag": .string("\(index)")]) }
          }
          return .results(arguments.map { _ in .null }, pen.operations)
        }
      ]))
    #expect(try world.rows("SELECT ZTAG FROM ZNOTE ORDER BY ZTAG") == [["0"], ["1"], ["2"]])
    #expect(try world.rows("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Note'") == [["3"]])
  }

  @Test("A relationship may lead to what its method has just inserted")
  func resultsThatWereInserted() throws {
    let world = try world()
    try world.run(
      ClosurePolicies([
        "P": { call, pen in
          guard case .method(let selector, let arguments) = call else { return nil }
          let results = try arguments.map { _ in
            selector == "next:" ? PolicyValue.object(try pen.insert("Item", ["a": .string("made")])) : .null
          }
          return .results(results, pen.operations)
        }
      ]))
    #expect(
      try world.rows("SELECT i.Z_PK, n.ZA FROM ZITEM AS i JOIN ZITEM AS n ON n.Z_PK = i.ZNEXT ORDER BY 1")
        == [["1", "made"], ["2", "made"], ["3", "made"]])
  }

  @Test("A change of a method that cannot be made is an error")
  func methodsThatAreWrong() throws {
    let world = try world()
    let error = policyError {
      try world.run(
        ClosurePolicies([
          "P": { call, _ in
            guard case .method(_, let arguments) = call else { return nil }
            let nobody = PolicyObjectID(side: .destination, entity: "Note", key: 77)
            return .results(arguments.map { _ in .null }, [.set(PolicyObject(id: nobody, values: ["tag": .null]))])
          }
        ]))
    }
    #expect(error?.place.row == 77, "\(error.map { "\($0)" } ?? "no error")")
  }

  @Test("A change between two calls is an error of the next one, though the policy lets it pass")
  func changesOutsideCalls() throws {
    for hook in LatePolicy.hooks {
      LatePolicy.hook = hook
      LatePolicy.kept = nil
      let world = try world()
      // Progress is reported between two calls.
      world.observer = { _ in
        _ = try? LatePolicy.kept?.setValue("late", forKey: "text")
        return true
      }
      let error = policyError { try world.run(LocalPolicies(["P": LatePolicy.self])) }
      #expect("\(error.map { "\($0)" } ?? "")".contains("outside hooks and methods"), "\(hook)")
    }
  }
}

/// Keeps an object, which the test changes outside of all calls.
private final class LatePolicy: EntityMigrationPolicy {
  static let hooks = ["begin", "method", "end"]
  nonisolated(unsafe) static var hook = ""
  nonisolated(unsafe) static var kept: ManagedObject?

  private func keep(_ hook: String, _ manager: MigrationPolicy.MigrationManager) throws {
    if hook == Self.hook { Self.kept = try manager.insertNewObject(forEntityName: "Note") }
  }

  override func begin(_ mapping: MigrationPolicy.EntityMapping, with manager: MigrationPolicy.MigrationManager) throws {
    try keep("begin", manager)
  }

  override func end(_ mapping: MigrationPolicy.EntityMapping, manager: MigrationPolicy.MigrationManager) throws {
    try keep("end", manager)
  }

  override func method(_ selector: String, arguments: [PolicyValue], manager: MigrationPolicy.MigrationManager) throws
    -> PolicyValue
  {
    try keep("method", manager)
    return .null
  }
}
