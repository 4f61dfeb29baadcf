// Changes that can be inferred: each one in the list of Apple's documents, and the resulting mapping.

import ManagedObjectModel
import Testing

@testable import MappingModel

@Suite struct MappingInferenceTests {
  @Test func equalVersionsAreCopied() throws {
    let entities = [
      entity("Animal", abstract: true, [attribute("name")], [toOne("owner", "Person", inverse: "animals")]),
      entity("Dog", parent: "Animal", [attribute("breed")]),
      entity("Person", [attribute("born", .date)], [toMany("animals", "Animal", inverse: "owner", ordered: true)]),
    ]
    let mapping = try inferred(entities, entities)
    #expect(mapping.entityMappings.map(\.name) == ["IEM_Copy_Animal", "IEM_Copy_Dog", "IEM_Copy_Person"])
    #expect(mapping.entityMappings.allSatisfy { $0.droppedAttributes.isEmpty && $0.droppedRelationships.isEmpty })
    // Inherited properties are listed too.
    let dog = try #require(mapping.mapping(toDestination: "Dog"))
    #expect(dog.attributes.map(\.destination) == ["breed", "name"])
    #expect(
      dog.relationships == [
        RelationshipMapping(
          destination: "owner", source: .init(entity: "Dog", relationship: "owner", isInverted: false))
      ])
  }

  /// Photos' Asset: its identifier is the name of its parent before, and its user info names what it continues.
  @Test func theUserInfoNamesTheEntityThatContinues() throws {
    var asset = entity("Asset", id: "GenericAsset", [attribute("title")])
    let before = [
      entity("GenericAsset", abstract: true, [attribute("title")]), entity("Asset", parent: "GenericAsset"),
    ]
    #expect(MappingInference.attempt(from: model("A", before), to: model("B", [asset])).mapping.conditions.count > 0)
    asset.userInfo = ["NSEntityRenamingShouldRebaseKey": "Asset"]
    let mapping = try inferred(before, [asset])
    #expect(mapping.conditions.isEmpty)
    #expect(mapping.mapping(toDestination: "Asset")?.sourceEntity == "Asset")
    #expect(mapping.mapping(fromSource: "GenericAsset")?.kind == .remove)
  }

  @Test func addedRemovedAndRenamedProperties() throws {
    let mapping = try inferred(
      [entity("Book", [attribute("title"), attribute("isbn")], [toOne("author", "Author")]), entity("Author")],
      [
        entity(
          "Book", [attribute("name", id: "title"), attribute("year", .integer32)],
          [toOne("writer", "Author", id: "author")]),
        entity("Author"),
      ])
    let book = try #require(mapping.mapping(toDestination: "Book"))
    #expect(book.kind == .transform)
    #expect(book.name == "IEM_Transform_Book")
    #expect(
      book.attributes == [
        AttributeMapping(destination: "name", source: "title"), AttributeMapping(destination: "year", source: nil),
      ])
    #expect(book.droppedAttributes == ["isbn"])
    #expect(book.relationships.first?.source == .init(entity: "Book", relationship: "author", isInverted: false))
    #expect(mapping.mapping(toDestination: "Author")?.kind == .copy)
  }

  @Test func addedRemovedAndRenamedEntities() throws {
    let mapping = try inferred(
      [entity("Old", [attribute("a")]), entity("Gone", [attribute("b")], [toOne("old", "Old")])],
      [entity("New", id: "Old", [attribute("a")]), entity("Fresh", [attribute("c")])])
    #expect(
      mapping.entityMappings.map(\.name) == ["IEM_Add_Fresh", "IEM_Transform_New", "IEM_Remove_Gone"])
    #expect(mapping.mapping(fromSource: "Old")?.destinationEntity == "New")
    let gone = try #require(mapping.mapping(fromSource: "Gone"))
    #expect(gone.destinationEntity == nil)
    #expect(gone.droppedAttributes == ["b"])
    #expect(gone.droppedRelationships == ["old"])
    #expect(mapping.mapping(toDestination: "Fresh")?.attributes == [AttributeMapping(destination: "c", source: nil)])
  }

  /// 2→3 and 1→3 both work because a renaming identifier is canonical (docs/formats/migration-semantics.md,
  /// "Matching").
  @Test func aRenamingIdentifierHoldsOverTwoVersions() throws {
    let versions = [
      [entity("E", [attribute("one")])], [entity("E", [attribute("two", id: "one")])],
      [entity("E", [attribute("three", id: "one")])],
    ]
    for (from, to) in [(0, 1), (1, 2), (0, 2)] {
      let mapping = try inferred(versions[from], versions[to])
      #expect(mapping.entityMappings.first?.attributes.first?.source != nil)
    }
  }

  @Test func relationshipsMayGrowAndChangeOrder() throws {
    let oneToMany = [
      entity("A", [], [toMany("bs", "B", inverse: "a")]), entity("B", [], [toOne("a", "A", inverse: "bs")]),
    ]
    let ordered = [
      entity("A", [], [toMany("bs", "B", inverse: "a", ordered: true)]),
      entity("B", [], [toOne("a", "A", inverse: "bs")]),
    ]
    let manyToMany = [
      entity("A", [], [toMany("bs", "B", inverse: "as")]),
      entity("B", [], [toMany("as", "A", inverse: "bs", id: "a")]),
    ]
    for (from, to) in [(oneToMany, ordered), (ordered, oneToMany), (oneToMany, manyToMany), (ordered, manyToMany)] {
      let mapping = try inferred(from, to)
      #expect(mapping.mapping(toDestination: "A")?.relationships.first?.source?.relationship == "bs")
      #expect(mapping.mapping(toDestination: "B")?.relationships.first?.source?.relationship == "a")
    }
    #expect(try inferred(oneToMany, ordered).entityMappings.map(\.kind) == [.transform, .copy])
  }

  @Test func aNewRelationshipWithACarriedInverseTakesThePairsInverted() throws {
    let mapping = try inferred(
      [entity("A", [], [toOne("b", "B")]), entity("B")],
      [entity("A", [], [toOne("b", "B", inverse: "as")]), entity("B", [], [toMany("as", "A", inverse: "b")])])
    #expect(
      mapping.mapping(toDestination: "B")?.relationships
        == [
          RelationshipMapping(
            destination: "as", source: .init(entity: "A", relationship: "b", isInverted: true))
        ])
  }

  @Test func anInverseRenamedWithoutIdentifierKeepsItsPairs() throws {
    let mapping = try inferred(
      [entity("A", [], [toOne("b", "B", inverse: "as")]), entity("B", [], [toMany("as", "A", inverse: "b")])],
      [entity("A", [], [toOne("b", "B", inverse: "list")]), entity("B", [], [toMany("list", "A", inverse: "b")])])
    let b = try #require(mapping.mapping(toDestination: "B"))
    #expect(b.relationships.first?.source == .init(entity: "A", relationship: "b", isInverted: true))
    // The pairs are not lost, so nothing is dropped.
    #expect(b.droppedRelationships.isEmpty)
  }

  @Test func bothEndsGoneAreDropped() throws {
    let mapping = try inferred(
      [entity("A", [], [toMany("bs", "B", inverse: "as")]), entity("B", [], [toMany("as", "A", inverse: "bs")])],
      [entity("A"), entity("B")])
    #expect(mapping.mapping(toDestination: "A")?.droppedRelationships == ["bs"])
    #expect(mapping.mapping(toDestination: "B")?.droppedRelationships == ["as"])
  }

  @Test func hierarchiesMayGainParentsAndChildrenAndLoseMembers() throws {
    let flat = [entity("Car", [attribute("speed", .integer16)])]
    let child = flat + [entity("SportCar", parent: "Car", [attribute("turbo", .boolean)])]
    let parent = [
      entity("Vehicle", abstract: true), entity("Car", parent: "Vehicle", [attribute("speed", .integer16)]),
    ]
    let up = [
      entity("Vehicle", abstract: true, [attribute("speed", .integer16)]), entity("Car", parent: "Vehicle"),
    ]
    for (from, to) in [
      (flat, child), (child, flat), (flat, parent), (parent, flat), (parent, up), (up, parent), (flat, up),
    ] {
      let mapping = try inferred(from, to)
      let car = try #require(mapping.mapping(toDestination: "Car"))
      #expect(car.sourceEntity == "Car")
      #expect(car.attributes.contains(AttributeMapping(destination: "speed", source: "speed")))
    }
    #expect(try inferred(flat, child).mapping(toDestination: "Car")?.kind == .copy)
    #expect(try inferred(flat, parent).mapping(toDestination: "Car")?.kind == .transform)
  }

  @Test func anEntityMayLeaveItsHierarchy() throws {
    let mapping = try inferred(
      [entity("Base", [attribute("x")]), entity("Leaf", parent: "Base", [attribute("y")])],
      [entity("Base", [attribute("x")]), entity("Leaf", [attribute("x"), attribute("y")])])
    let leaf = try #require(mapping.mapping(toDestination: "Leaf"))
    #expect(leaf.attributes.map(\.source) == ["x", "y"])
    #expect(leaf.droppedAttributes.isEmpty)
  }

  @Test func aPropertyPushedDownStaysWhereItGoes() throws {
    let mapping = try inferred(
      [entity("Base", [attribute("x")]), entity("Left", parent: "Base"), entity("Right", parent: "Base")],
      [entity("Base"), entity("Left", parent: "Base", [attribute("x")]), entity("Right", parent: "Base")])
    #expect(mapping.mapping(toDestination: "Left")?.attributes == [AttributeMapping(destination: "x", source: "x")])
    #expect(mapping.mapping(toDestination: "Left")?.droppedAttributes == [])
    #expect(mapping.mapping(toDestination: "Right")?.droppedAttributes == ["x"])
    #expect(mapping.mapping(toDestination: "Base")?.droppedAttributes == ["x"])
  }

  @Test func aRelationshipMovedUpIsNewOnlyForTheOthers() throws {
    let mapping = try inferred(
      [
        entity("Base"), entity("Left", parent: "Base", [], [toOne("to", "X", inverse: "from")]),
        entity("X", [], [toMany("from", "Left", inverse: "to")]),
      ],
      [
        entity("Base", [], [toOne("to", "X", inverse: "from")]), entity("Left", parent: "Base"),
        entity("X", [], [toMany("from", "Base", inverse: "to")]),
      ])
    #expect(mapping.mapping(toDestination: "Left")?.relationships.first?.source?.entity == "Left")
    #expect(mapping.mapping(toDestination: "Base")?.relationships.first?.source == nil)
    #expect(mapping.mapping(toDestination: "X")?.relationships.first?.source?.isInverted == false)
  }

  @Test func aDestinationMayBecomeAnAncestor() throws {
    let source = [
      entity("Base"), entity("Leaf", parent: "Base"), entity("Owner", [], [toOne("it", "Leaf")]),
    ]
    let wider = [entity("Base"), entity("Leaf", parent: "Base"), entity("Owner", [], [toOne("it", "Base")])]
    #expect(try inferred(source, wider).mapping(toDestination: "Owner")?.kind == .transform)
  }

  @Test func transientBecomesStoredAndBack() throws {
    let stored = [entity("E", [attribute("x")])]
    let transient = [entity("E", [attribute("x", transient: true)])]
    let drop = try inferred(stored, transient).mapping(toDestination: "E")
    #expect(drop?.attributes == [])
    #expect(drop?.droppedAttributes == ["x"])
    let add = try inferred(transient, stored).mapping(toDestination: "E")
    #expect(add?.attributes == [AttributeMapping(destination: "x", source: nil)])
  }

  /// Type by type, optional or not, with or without default, renamed or not: only the type decides.
  @Test func onlyTheTypeOfAnAttributeDecides() {
    let types = AttributeType.allCases.filter { ![.undefined, .objectID, .composite].contains($0) }
    let numbers: Set<AttributeType> = [.integer16, .integer32, .integer64, .decimal, .double, .float, .boolean]
    var worlds = 0
    for old in types {
      for new in types {
        for wasOptional in [true, false] {
          for isOptional in [true, false] {
            for hasDefault in [true, false] {
              for isRenamed in [true, false] {
                let found = reasons(
                  [entity("E", [attribute("x", old, optional: wasOptional)])],
                  [
                    entity(
                      "E",
                      [
                        attribute(
                          isRenamed ? "y" : "x", new, id: "x", optional: isOptional,
                          value: hasDefault ? .integer(1) : nil)
                      ])
                  ])
                let isAllowed = old == new || (numbers.contains(old) && numbers.contains(new))
                #expect(found.isEmpty == isAllowed, "\(old) → \(new)")
                if !isAllowed { #expect(found.map(\.place) == [isRenamed ? "E.y" : "E.x"]) }
                worlds += 1
              }
            }
          }
        }
      }
    }
    #expect(worlds == types.count * types.count * 16)
  }
}
