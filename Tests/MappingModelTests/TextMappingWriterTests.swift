// Mappings written as text: read again they are equal, and anything that text cannot express is refused by name.

import Diagnostics
import Expressions
import ManagedObjectModel
import PropertyLists
import SystemPackage
import Testing

@testable import MappingModel

@Suite struct TextMappingWriterTests {
  private let source = model(
    "V 1",
    [
      entity(
        "Book", [attribute("authorName"), attribute("pages", .integer32), attribute("title"), attribute("größe")],
        [toOne("user", "User", inverse: "books"), toMany("tags", "Tag", inverse: "books")]),
      entity("Tag", [attribute("title")], [toMany("books", "Book", inverse: "tags")]),
      entity("User", [attribute("name")], [toMany("books", "Book", inverse: "user")]),
      entity("Admin", parent: "User"),
    ])
  private let destination = model(
    "V \"2\"",
    [
      entity(
        "Book", [attribute("authorName"), attribute("pages", .integer32), attribute("title"), attribute("größe")],
        [
          toOne("user", "User", inverse: "books"), toMany("tags", "Tag", inverse: "books"),
          toOne("owner", "User", inverse: "owned"),
        ]),
      entity("Tag", [attribute("title")], [toMany("books", "Book", inverse: "tags")]),
      entity(
        "User", [attribute("name")],
        [toMany("books", "Book", inverse: "user"), toMany("owned", "Book", inverse: "owner")]),
      entity("Admin", parent: "User"),
    ])

  private static func ofSource(_ name: String) -> ExpressionNode { .keyPath(.variable("source"), [.key(name)]) }

  /// Every combination of a grouping with a property's value.
  @Test func everythingReadsBackEqual() throws {
    let key = Self.ofSource("title")
    let groupings: [SourceGrouping] = [
      .each, .distinctBy([key], keep: .lowest), .distinctBy([key, Self.ofSource("pages")], keep: .highest),
      .deduplicate(by: [key], keep: .latest(Self.ofSource("pages"))), .expand(Self.ofSource("tags"), entity: "Tag"),
    ]
    let attributeValues: [PropertyValue?] = [
      nil, .expression(key), .expression(Self.ofSource("authorName")), .expression(.constant(.null)),
      .expression(.constant(.string("it's \"quoted\" \\ and\nmore"))), .expression(.function(.uppercase, [key])),
    ]
    let objects = Self.ofSource("user")
    let relationshipValues: [PropertyValue?] = [
      nil, .expression(.destinationInstances(.sourceRelationship("user"), objects)),
      .expression(.destinationInstances(.entityMapping("UserToUser"), objects)),
      .expression(.destinationInstances(.sourceRelationship("tags"), objects)), .expression(.constant(.null)),
      .matching(entity: "User", attribute: "name", key: Self.ofSource("authorName")),
      .grouped(mapping: "People", keys: [Self.ofSource("authorName")]),
    ]
    var count = 0
    for grouping in groupings {
      for value in attributeValues {
        for objects in relationshipValues {
          let mapping = self.mapping(grouping, title: value, user: objects)
          let text = try mapping.text(source: source, destination: destination)
          let read = try TextMapping(text: text, file: mapping.path).resolved(source: source, destination: destination)
          #expect(Self.said(read) == Self.said(mapping), "\(text)")
          count += 1
        }
      }
    }
    #expect(count == 5 * 6 * 7)
  }

  private func mapping(
    _ grouping: SourceGrouping, title: PropertyValue?, user: PropertyValue?
  ) -> ExplicitMapping {
    func plain(_ name: String) -> ExplicitEntityMapping {
      ExplicitEntityMapping(
        name: "\(name)To\(name)", type: .copy, source: name, destination: name,
        policy: name == "Tag" ? "X.TagPolicy" : nil,
        userInfo: name == "Tag" ? ["a b": .string("c\"d"), "list": .array([.integer(1), .boolean(false)])] : [:],
        filter: name == "Admin"
          ? SourceFilter(
            text: "name == 'x\"y'",
            predicate: .comparison(
              Comparison(.keyPath(.selfObject, [.key("name")]), .equal, .constant(.string("x\"y")))))
          : nil)
    }
    let people = ExplicitEntityMapping(
      name: "People", type: .transform, source: "Book", destination: "User",
      attributes: [ExplicitPropertyMapping(name: "name", value: .expression(Self.ofSource("authorName")))],
      grouping: .distinctBy([Self.ofSource("authorName")], keep: .lowest))
    let book = ExplicitEntityMapping(
      name: "Books", type: .transform, source: "Book", destination: "Book",
      attributes: [
        ExplicitPropertyMapping(name: "größe", value: .expression(Self.ofSource("größe"))),
        ExplicitPropertyMapping(name: "title", value: title),
      ],
      relationships: [ExplicitPropertyMapping(name: "user", value: user)], grouping: grouping)
    return ExplicitMapping(
      name: "m", path: "/m.hopmap.toml", sourceVersion: source.name, destinationVersion: destination.name,
      entityMappings: [people, book, plain("Tag"), plain("User"), plain("Admin")])
  }

  private static func said(_ mapping: ExplicitMapping) -> [ExplicitEntityMapping] {
    mapping.entityMappings.map { entity in
      ExplicitEntityMapping(
        name: entity.name, type: .undefined, source: entity.source, destination: entity.destination,
        policy: entity.policy, userInfo: entity.userInfo, filter: entity.filter,
        attributes: entity.attributes.filter { $0.value != nil },
        relationships: entity.relationships.filter { $0.value != nil }
          .map { ExplicitPropertyMapping(name: $0.name, value: $0.value) }, grouping: entity.grouping)
    }
  }

  @Test func onlyWhatDiffersIsWritten() throws {
    let text = """
      [mapping]
      source = "V 1"
      destination = 'V "2"'

      [[entity]]
      source = "Book"
      destination = "Book"
      attributes.title = "$source.authorName"
      relationships.owner = "$source.user"
      skip = ["pages"]

      [[entity]]
      source = "User"
      destination = "User"

      [[entity]]
      source = "Admin"
      destination = "Admin"

      """
    let mapping = try TextMapping(text: text, file: "/m.hopmap.toml")
      .resolved(source: source, destination: destination)
    #expect(
      try mapping.text(source: source, destination: destination)
        == "# What m.hopmap.toml says, as a text mapping.\n\n" + text)
  }

  @Test func whatTextCannotSayIsRefusedByName() {
    for value in [PropertyListValue.data([1, 2]), .date(3), .array([.real(.infinity)])] {
      let mapping = ExplicitMapping(
        name: "m", path: "/m.cdm", sourceVersion: source.name, destinationVersion: destination.name,
        entityMappings: [
          ExplicitEntityMapping(
            name: "Tags", type: .custom, source: "Tag", destination: "Tag", policy: "P", userInfo: ["key": value])
        ])
      let error = #expect(throws: HopdError.self) {
        _ = try mapping.text(source: source, destination: destination)
      }
      #expect(error?.reasons.map(\.place.entity) == ["Tags"])
    }
  }
}
