// What a hop with mapping models compiles to: which mappings need an evaluator, what is refused by name, and that the two ends
// of one relationship are written once.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import SystemPackage
import Testing

@Suite struct MappedHopCompilerTests {
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

  private func program(_ mappings: [ExplicitEntityMapping]) throws -> HopProgram {
    let hop = SmallHop.hop(entities, entities, mappings)
    return try MappedHopCompiler(
      hop: hop, layout: try AssociationLayout(hop: hop, spans: [:]), sourceSchema: "s", destinationSchema: "d",
      moment: 0, withIndexes: false
    ).compile()
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
    // The second mapping takes some pages only, so that the ends do not follow the same rule.
    let program = try program([
      mapping("Book", relationships: [lookup("pages", "PageToPage", "pages")]),
      mapping("Page", relationships: [lookup("book", "BookToBook", "book")]),
      mapping("Page", name: "Copy", relationships: [lookup("book", "BookToBook", "book")]),
    ])
    #expect(subjects(program).filter { $0.hasPrefix("Book.") || $0.hasPrefix("Page.") }.contains("Book.pages"))
  }

  @Test func objectsOfSeveralMappingsAreRefusedByName() {
    let polymorphic = ExplicitPropertyMapping(
      name: "book", value: .expression(.destinationInstances(.sourceRelationship("book"), source("book"))))
    let error = #expect(throws: HopdError.self) {
      _ = try program([mapping("Book"), mapping("Book", name: "Second"), mapping("Page", relationships: [polymorphic])])
    }
    #expect(error?.code == .mappingUnsupported)
    #expect(error?.message.contains("BookToBook, Second") == true)
    #expect(error?.place.property == "book")
  }

  @Test func lookupsOfUnknownOrWrongMappingsAreRefused() {
    for name in ["Nowhere", "PageToPage"] {
      let error = #expect(throws: HopdError.self) {
        _ = try program([mapping("Book"), mapping("Page", relationships: [lookup("book", name, "book")])])
      }
      #expect(error?.code == .mappingUnsupported, "\(name)")
      #expect(error?.place.entity == "PageToPage", "\(name)")
    }
  }

  @Test func theWayOfEachMappingIsTold() throws {
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
