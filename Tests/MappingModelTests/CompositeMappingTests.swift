// Composite attributes from one version to the next: by inference, and in mapping models.

import Diagnostics
import Expressions
import ManagedObjectModel
import SystemPackage
import Testing

@testable import MappingModel

@Suite struct CompositeMappingTests {
  private func composite(
    _ name: String, _ elements: [Attribute], id: String? = nil, optional: Bool = true
  ) -> Attribute {
    var composite = Attribute(name: name, type: .composite, isOptional: optional, renamingIdentifier: id)
    composite.elements = elements
    return composite
  }

  private func pairs(_ source: [Entity], _ destination: [Entity], _ entity: String) throws -> [String: String] {
    let mapping = try inferred(source, destination).entityMappings.first { $0.destinationEntity == entity }
    return (mapping?.attributes ?? []).reduce(into: [:]) { $0[$1.destination] = $1.source ?? "-" }
  }

  @Test func elementsAreMatchedInsideTheirComposite() throws {
    let before = [
      entity("Q", [composite("author", [attribute("id"), attribute("year", .integer64)]), attribute("id")])
    ]
    // Composite and element renamed, one element added, one moved to another position.
    let after = [
      entity(
        "Q",
        [
          composite(
            "writer", [attribute("born", .integer64, id: "year"), attribute("name"), attribute("id")], id: "author"),
          attribute("id"),
        ])
    ]
    #expect(
      try pairs(before, after, "Q") == [
        "writer.born": "author.year", "writer.name": "-", "writer.id": "author.id", "id": "id",
      ])
    let dropped = try inferred(before, [entity("Q", [attribute("id")])]).entityMappings.first?.droppedAttributes
    #expect(dropped.map(Set.init) == ["author.id", "author.year"])
  }

  @Test func changesOfTypeAreRefused() {
    func place(_ source: Attribute, _ destination: Attribute) -> [String] {
      reasons([entity("E", [source])], [entity("E", [destination])]).map { "\($0.place): \($0.message)" }
    }
    let one = composite("x", [attribute("a")])
    #expect(
      place(one, attribute("x")) == [
        "E.x: the type changes from Composite to String; a change of type cannot be inferred"
      ])
    #expect(
      place(attribute("x", .date), one) == [
        "E.x: the type changes from Date to Composite; a change of type cannot be inferred"
      ])
    #expect(place(attribute("y", id: "x"), composite("z", [attribute("a")], id: "x")).count == 1)
    #expect(place(attribute("y"), one).isEmpty)
    // An element's own type counts like an attribute's.
    #expect(place(one, composite("x", [attribute("a", .date)])).first?.hasPrefix("E.x.a: the type changes") == true)
    let nested = composite("x", [composite("in", [attribute("a")])])
    #expect(place(attribute("y"), nested).first?.contains("composites inside") == true)
  }

  // MARK: Mapping models

  private var paintings: [Entity] {
    [
      entity(
        "Painting",
        [
          composite("painter", [attribute("name"), attribute("born", .integer32)]), attribute("title"),
        ], [toOne("room", "Room", inverse: "paintings")]),
      entity(
        "Room", [attribute("name")], [toMany("paintings", "Painting", inverse: "room"), toOne("painter", "Hand")]),
      entity("Hand", [attribute("name")]),
    ]
  }

  private func step(_ node: ExpressionNode) -> [KeyPathStep] {
    if case .keyPath(_, let steps) = node { steps } else { [] }
  }

  /// A composite and its element are one step if the entity has that composite, and two if it is a relationship.
  @Test func keyPathsAreJoinedOnTheirOwnEntity() throws {
    let paths = ElementPaths(model: model("V1", paintings), source: "Painting", variables: ["each": "Room"])
    func steps(_ text: String) throws -> [KeyPathStep] {
      step(paths.joined(try ExpressionParser.expression(text, at: Place())))
    }
    #expect(try steps("$source.painter.name") == [.key("painter.name")])
    #expect(try steps("$source.room.painter.name") == [.key("room"), .key("painter"), .key("name")])
    #expect(try steps("$each.painter.name") == [.key("painter"), .key("name")])
    #expect(
      try steps("$source.room.paintings.@min.painter.born") == [
        .key("room"), .key("paintings"), .collection(.min), .key("painter.born"),
      ])
    #expect(try steps("$source.painter") == [.key("painter")])
    let text = "SUBQUERY($each.paintings, $p, $p.painter.born > 1900).@count"
    let joined = paths.joined(try ExpressionParser.expression(text, at: Place()))
    #expect(joined.description == (try ExpressionParser.expression(text, at: Place())).description)
    guard case .keyPath(.subquery(_, _, .comparison(let comparison)), _) = joined else {
      Issue.record("\(joined)")
      return
    }
    #expect(step(comparison.left) == [.key("painter.born")])
  }

  @Test func textMappingsNameElementsAndWholes() throws {
    let after = [
      entity(
        "Painting",
        [
          composite("artist", [attribute("name"), attribute("died", .integer32)]),
          composite("painter", [attribute("name"), attribute("born", .integer32)]), attribute("line"),
        ])
    ]
    let text = """
      [[entity]]
      source = "Painting"
      destination = "Painting"
      attributes.artist = "$source.painter"
      attributes.painter.born = "$source.painter.born + 1"
      attributes.line = "$source.painter.name"
      filter = "painter.born > 1800"
      [[entity]]
      source = "Room"
      [[entity]]
      source = "Hand"
      """
    let mapping = try resolved(text, paintings, after)
    #expect(shown(mapping, "PaintingToPainting", "artist.name") == "$source.painter.name")
    #expect(shown(mapping, "PaintingToPainting", "artist.died") == nil)
    #expect(shown(mapping, "PaintingToPainting", "painter.born") == "$source.painter.born + 1")
    #expect(shown(mapping, "PaintingToPainting", "painter.name") == "$source.painter.name")
    #expect(shown(mapping, "PaintingToPainting", "line") == "$source.painter.name")
    #expect(throws: Never.self) {
      try MappingChecker.checked([mapping], source: model("V1", paintings), destination: model("V2", after))
    }
    let wrong = text.split(separator: "attributes.artist = \"$source.painter\"").joined(
      separator: "attributes.artist = \"'x'\"")
    let error = #expect(throws: HopdError.self) { try resolved(wrong, paintings, after) }
    #expect(error?.description.contains("artist is a composite") == true)
    let skipping = text.split(separator: "attributes.artist = \"$source.painter\"").joined(
      separator: "skip = [\"artist\"]")
    #expect(shown(try resolved(skipping, paintings, after), "PaintingToPainting", "artist.name") == "not listed")
  }

  /// Xcode writes a property mapping for the composite as a whole.
  @Test func mappingModelsOfXcodeCarryWholes() throws {
    let after = [entity("Painting", [composite("painter", [attribute("name"), attribute("died", .integer32)])])]
    func checked(_ value: ExpressionNode?) throws -> [ExplicitPropertyMapping] {
      let entityMapping = ExplicitEntityMapping(
        name: "P", type: .transform, source: "Painting", destination: "Painting",
        attributes: [ExplicitPropertyMapping(name: "painter", value: value.map { .expression($0) })])
      let file = ExplicitMapping(
        name: "M", path: "/M", sourceVersion: "V1", destinationVersion: "V2", entityMappings: [entityMapping])
      return try MappingChecker.checked([file], source: model("V1", paintings), destination: model("V2", after))
        .mappings[0].entityMappings[0].attributes
    }
    let whole = try checked(.keyPath(.variable("source"), [.key("painter")]))
    #expect(whole.map(\.name) == ["painter.name", "painter.died"])
    #expect(whole[0].value == .expression(.keyPath(.variable("source"), [.key("painter.name")])))
    #expect(whole[1].value == nil)
    let file = ExplicitMapping(
      name: "V1 to V2", path: "/V1 to V2.cdm", sourceVersion: "V1", destinationVersion: "V2",
      entityMappings: [
        ExplicitEntityMapping(
          name: "P", type: .transform, source: "Painting", destination: "Painting",
          attributes: [
            ExplicitPropertyMapping(
              name: "painter", value: .expression(.keyPath(.variable("source"), [.key("painter")])))
          ])
      ])
    let text = try file.text(source: model("V1", paintings), destination: model("V2", after))
    #expect(!text.contains("skip"), "\(text)")
    #expect(try checked(.constant(.null)).allSatisfy { $0.value == .expression(.constant(.null)) })
    #expect(try checked(nil).allSatisfy { $0.value == nil })
    let error = #expect(throws: HopdError.self) { try checked(.constant(.string("x"))) }
    #expect(error?.reasons.first?.place.property == "painter" || error?.place.property == "painter")
  }
}
