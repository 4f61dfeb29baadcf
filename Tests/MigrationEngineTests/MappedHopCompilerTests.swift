// The compilation of a hop with mapping models: which mappings need an evaluator, which are refused by name, and that
// the two ends of one relationship are written once.

import BlockingTests
import Diagnostics
import Expressions
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import MappingModel
@testable import MigrationEngine

@Suite(.blocking) struct MappedHopCompilerTests {
  private let entities = [
    Entity(
      name: "Book", attributes: [SmallHop.uid, Attribute(name: "title", type: .string, isOptional: true)],
      relationships: [
        Relationship(name: "pages", destinationEntityName: "Page", inverseName: "book", isToMany: true)
      ]),
    Entity(
      name: "Page", attributes: [SmallHop.uid],
      relationships: [Relationship(name: "book", destinationEntityName: "Book", inverseName: "pages")]),
  ]

  private func source(_ name: String) -> ExpressionNode { .keyPath(.variable("source"), [.key(name)]) }

  private func mapping(
    _ entity: String, name: String? = nil, filter: PredicateNode? = nil, attributes: [ExplicitPropertyMapping] = [],
    relationships: [ExplicitPropertyMapping] = []
  ) -> ExplicitEntityMapping {
    ExplicitEntityMapping(
      name: name ?? "\(entity)To\(entity)", type: .transform, source: entity, destination: entity,
      filter: filter.map { SourceFilter(text: "", predicate: $0) }, attributes: attributes, relationships: relationships
    )
  }

  private func lookup(_ name: String, _ mapping: String, _ key: String) -> ExplicitPropertyMapping {
    ExplicitPropertyMapping(
      name: name, value: .expression(.destinationInstances(.entityMapping(mapping), source(key))))
  }

  private func program(
    _ mappings: [ExplicitEntityMapping], to destination: [Entity]? = nil, isSound: Bool = false
  ) throws -> HopProgram {
    let hop = SmallHop.hop(entities, destination ?? entities, mappings)
    return try MappedHopCompiler(
      hop: hop, layout: try AssociationLayout(hop: hop, spans: [:]), source: .schema("s"), destinationSchema: "d",
      moment: 0, withIndexes: false, isSound: { _ in isSound }
    ).compile()
  }

  private func statements(_ program: HopProgram, of subject: String) -> [String] {
    program.steps.flatMap { step -> [String] in
      if case .chunks(let chunks) = step, chunks.subject == subject { chunks.actions.map(\.sql) } else { [] }
    }
  }

  private func subjects(_ program: HopProgram) -> [String] {
    program.steps.compactMap { if case .chunks(let step) = $0 { step.subject } else { nil } }
  }

  @Test func bothEndsOfARelationshipAreWrittenOnce() throws {
    let program = try program([
      mapping("Book", relationships: [lookup("pages", "PageToPage", "pages")]),
      mapping("Page", relationships: [lookup("book", "BookToBook", "book")]),
    ])
    // Two passes over rows, none over pairs: the to-one is a column of its own row.
    #expect(subjects(program) == ["BookToBook", "PageToPage"])
  }

  @Test func anEndThatIsAloneIsSet() throws {
    let program = try program([
      mapping("Book", relationships: [lookup("pages", "PageToPage", "pages")]), mapping("Page"),
    ])
    #expect(subjects(program) == ["BookToBook", "PageToPage", "Book.pages"])
  }

  @Test func endsThatDifferAreBothSet() throws {
    // The second mapping makes objects of some pages only, so that the ends do not follow the same rule.
    let program = try program([
      mapping("Book", relationships: [lookup("pages", "PageToPage", "pages")]),
      mapping("Page", relationships: [lookup("book", "BookToBook", "book")]),
      mapping("Page", name: "Copy", relationships: [lookup("book", "BookToBook", "book")]),
    ])
    #expect(subjects(program).filter { $0.hasPrefix("Book.") || $0.hasPrefix("Page.") }.contains("Book.pages"))
  }

  /// Two objects made of one are joined when their rows are written, although the mapping sets one end only.
  @Test func theHalvesOfASplitAreJoinedInTheirRows() throws {
    let split = [
      Entity(
        name: "Book", attributes: [SmallHop.uid],
        relationships: [Relationship(name: "cover", destinationEntityName: "Cover", inverseName: "book")]),
      Entity(
        name: "Cover", attributes: [SmallHop.uid],
        relationships: [Relationship(name: "book", destinationEntityName: "Book", inverseName: "cover")]),
    ]
    let cover = ExplicitPropertyMapping(
      name: "cover", value: .expression(.destinationInstances(.entityMapping("Covers"), .variable("source"))))
    let covers = ExplicitEntityMapping(name: "Covers", type: .transform, source: "Book", destination: "Cover")
    let whole = try program([mapping("Book", relationships: [cover]), covers], to: split)
    #expect(subjects(whole) == ["BookToBook", "Covers"])
    #expect(statements(whole, of: "BookToBook").first?.contains("\"ZCOVER\") SELECT s.\"Z_PK\"") == true)
    #expect(statements(whole, of: "BookToBook").first?.contains("(SELECT") == false)
    #expect(statements(whole, of: "Covers").first?.contains("\"ZBOOK\") SELECT s.\"Z_PK\"") == true)
    // If a filter excludes one of them, the other one has no partner.
    let filter = PredicateNode.comparison(
      Comparison(.keyPath(.selfObject, [.key("title")]), .notEqual, .constant(.null)))
    let some = ExplicitEntityMapping(
      name: "Covers", type: .transform, source: "Book", destination: "Cover",
      filter: SourceFilter(text: "", predicate: filter))
    let part = try program([mapping("Book", relationships: [cover]), some], to: split)
    #expect(statements(part, of: "BookToBook").first?.contains("CASE WHEN") == true)
    #expect(statements(part, of: "Covers").first?.contains("CASE WHEN") == false)
  }

  @Test func referencesAreLookedUpUnlessAllLeadToObjectsOfTheMapping() throws {
    let mappings = [mapping("Book"), mapping("Page", relationships: [lookup("book", "BookToBook", "book")])]
    #expect(statements(try program(mappings), of: "PageToPage").first?.contains("(SELECT") == true)
    let sound = try program(mappings, isSound: true)
    #expect(statements(sound, of: "PageToPage").first?.contains("s.\"ZBOOK\" FROM") == true)
    // A source object that a filter excludes has no destination object, sound or not.
    let filter = PredicateNode.comparison(
      Comparison(.keyPath(.selfObject, [.key("title")]), .notEqual, .constant(.null)))
    let filtered = try program([mapping("Book", filter: filter), mappings[1]], isSound: true)
    #expect(statements(filtered, of: "PageToPage").first?.contains("(SELECT") == true)
  }

  @Test func aReferenceIsSoundWhenEveryKeyLeadsToAnObjectOfTheEntity() throws {
    let connection = try Connection(path: "memory", access: .memory)
    try connection.execute(
      "CREATE TABLE ZBOOK (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER); INSERT INTO ZBOOK VALUES (1, 5), (2, 5), (3, 6);"
        + " CREATE TABLE ZPAGE (Z_PK INTEGER PRIMARY KEY, ZBOOK INTEGER); INSERT INTO ZPAGE VALUES (1, 1), "
        + "(2, NULL), (3, 1)"
    )
    let reference = SourceReference(table: "ZPAGE", column: "ZBOOK", targetTable: "ZBOOK", targetNumber: 5)
    #expect(try reference.isSound(in: .schema("main"), of: connection))
    // An object of another entity, and a missing one.
    for key in [3, 9] {
      try connection.execute("INSERT INTO ZPAGE VALUES (9, \(key))")
      #expect(try !reference.isSound(in: .schema("main"), of: connection), "\(key)")
      try connection.execute("DELETE FROM ZPAGE WHERE Z_PK = 9")
    }
    // Keys without gaps are checked by their ends; a value between them that is not a key, or a missing object, is
    // still found.
    for (change, key, isSound) in [
      ("DELETE FROM ZBOOK WHERE Z_PK = 3", "2", true), ("DELETE FROM ZBOOK WHERE Z_PK = 3", "1.5", false),
      ("DELETE FROM ZBOOK WHERE Z_PK = 3", "'x'", false), ("DELETE FROM ZBOOK WHERE Z_PK = 3", "3", false),
      ("DELETE FROM ZBOOK WHERE Z_PK = 3", "0", false), ("DELETE FROM ZBOOK WHERE Z_PK = 2", "2", false),
      ("UPDATE ZBOOK SET Z_ENT = 5", "3", true), ("UPDATE ZBOOK SET Z_ENT = NULL WHERE Z_PK = 2", "2", false),
      ("DELETE FROM ZBOOK", "1", false),
    ] {
      try connection.execute("BEGIN; \(change); INSERT INTO ZPAGE VALUES (9, \(key))")
      #expect(try reference.isSound(in: .schema("main"), of: connection) == isSound, "\(change), \(key)")
      try connection.execute("ROLLBACK")
    }
  }

  @Test func objectsOfSeveralMappingsAreRefusedWhereThereAreAny() throws {
    let polymorphic = ExplicitPropertyMapping(
      name: "book", value: .expression(.destinationInstances(.sourceRelationship("book"), source("book"))))
    let refusals = try refusals([
      mapping("Book"), mapping("Book", name: "Second"), mapping("Page", relationships: [polymorphic]),
    ])
    #expect(refusals.map(\.code) == [.mappingUnsupported])
    #expect(refusals.first?.message.text(keys: [1]).contains("BookToBook, Second") == true)
    #expect(refusals.first?.property == "book")
  }

  @Test func lookupsOfUnknownMappingsAreRefused() {
    let error = #expect(throws: HopdError.self) {
      _ = try program([mapping("Book"), mapping("Page", relationships: [lookup("book", "Nowhere", "book")])])
    }
    #expect(error?.code == .mappingUnsupported)
    #expect(error?.place.entity == "PageToPage")
  }

  @Test func objectsThatARelationshipCannotHoldAreRefusedWhereThereAreAny() throws {
    let refusals = try refusals([
      mapping("Book"), mapping("Page", relationships: [lookup("book", "PageToPage", "book")]),
    ])
    #expect(refusals.map(\.code) == [.mappingUnsupported])
    #expect(refusals.first?.message.text(keys: [1, 2]).contains("the object of Page with key 2") == true)
    #expect(
      try self.refusals([mapping("Book"), mapping("Page", relationships: [lookup("book", "BookToBook", "book")])])
        .isEmpty)
  }

  /// Returns the program's refusals for rows that its queries find.
  private func refusals(_ mappings: [ExplicitEntityMapping]) throws -> [HopProgram.Action.Refusal] {
    try program(mappings).steps.flatMap { step -> [HopProgram.Action.Refusal] in
      if case .chunks(let chunks) = step { chunks.actions.compactMap(\.refusal) } else { [] }
    }.filter { $0.code == .mappingUnsupported }
  }

  @Test func theWayOfEachMappingIsReported() throws {
    let title = ExplicitPropertyMapping(name: "title", value: .expression(source("title")))
    let pattern = PredicateNode.comparison(
      Comparison(.keyPath(.selfObject, [.key("title")]), .matches, .constant(.string("[a-c]+(d|e)?"))))
    let hop = SmallHop.hop(
      entities, entities,
      [
        mapping("Book", attributes: [title]),
        ExplicitEntityMapping(
          name: "PageToPage", type: .custom, source: "Page", destination: "Page", policy: "App.PagePolicy"),
        mapping("Book", name: "Some", filter: pattern, attributes: [title]),
      ])
    let ways = try MappedHopCompiler.executions(hop: hop)
    #expect(ways["BookToBook"] == .sql)
    #expect(ways["PageToPage"] == .policy("App.PagePolicy"))
    #expect(ways.count == 3)
  }
}
