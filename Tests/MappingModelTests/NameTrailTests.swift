// The continuations in a mapped hop, as far as the layout of the new store needs them.

import Diagnostics
import Expressions
import ManagedObjectModel
import SystemPackage
import Testing

@testable import MappingModel

@Suite struct NameTrailTests {
  @Test func renamesAreFollowedAndComputedValuesAreNot() throws {
    let old = model(
      "V1",
      [
        entity("Base", abstract: true, [attribute("id")]),
        entity(
          "Book", parent: "Base", [attribute("title"), attribute("isbn")], [toMany("tags", "Tag", inverse: "books")]),
        entity("Tag", [attribute("word")], [toMany("books", "Book", inverse: "tags")]), entity("Gone"),
      ])
    let new = model(
      "V2",
      [
        entity("Root", id: "Base", abstract: true, [attribute("id")]),
        entity(
          "Volume", parent: "Root", [attribute("name"), attribute("length")], [toMany("labels", "Label", inverse: "of")]
        ),
        entity("Label", [attribute("word")], [toMany("of", "Volume", inverse: "labels")]),
        entity("Fresh", [attribute("a")]),
      ])
    func value(_ name: String, _ text: String) throws -> ExplicitPropertyMapping {
      ExplicitPropertyMapping(name: name, value: .expression(try ExpressionParser.expression(text, at: Place())))
    }
    let lookup = "FUNCTION($manager, 'destinationInstancesForEntityMappingNamed:sourceInstances:', 'T', $source.tags)"
    let hop = MappedHop(mappings: [
      ExplicitMapping(
        name: "M", path: "/M.cdm", sourceVersion: "V1", destinationVersion: "V2",
        entityMappings: [
          ExplicitEntityMapping(
            name: "B", type: .transform, source: "Book", destination: "Volume",
            attributes: [
              try value("id", "$source.id"), try value("name", "$source.title"),
              try value("length", "length:($source.title)"),
            ], relationships: [try value("labels", lookup)]),
          ExplicitEntityMapping(
            name: "T", type: .copy, source: "Tag", destination: "Label", attributes: [try value("word", "$source.word")]
          ),
          // It decides nothing: another mapping makes these objects one for one.
          ExplicitEntityMapping(
            name: "X", type: .transform, source: "Gone", destination: "Label",
            attributes: [try value("word", "$source.isbn")], grouping: .distinctBy([], keep: .lowest)),
        ])
    ])
    let trail = hop.nameTrail(source: old, destination: new)
    #expect(trail.sourceVersion == "V1" && trail.destinationVersion == "V2")
    let volume = try #require(trail.mapping(toDestination: "Volume"))
    #expect(volume.sourceEntity == "Book")
    #expect(
      Dictionary(uniqueKeysWithValues: volume.attributes.map { ($0.destination, $0.source) }) == [
        "id": "id", "name": "title", "length": nil,
      ])
    #expect(
      volume.relationships.first?.source == .init(entity: "Book", relationship: "tags", isInverted: false))
    #expect(volume.droppedAttributes == ["isbn"])
    // Only the other end is mapped.
    let label = try #require(trail.mapping(toDestination: "Label"))
    #expect(label.sourceEntity == "Tag" && label.kind == .copy)
    #expect(label.relationships.first?.source == .init(entity: "Book", relationship: "tags", isInverted: true))
    #expect(trail.mapping(toDestination: "Root")?.sourceEntity == "Base")
    #expect(trail.mapping(toDestination: "Root")?.attributes.first?.source == "id")
    #expect(trail.mapping(toDestination: "Fresh")?.kind == .add)
    #expect(trail.mapping(fromSource: "Gone")?.kind == .remove)
    #expect(trail.entityMappings.count == 5)
  }
}
