// Correct text mappings: the content of a file, and the parts that are filled in.

import Diagnostics
import Expressions
import ManagedObjectModel
import PropertyLists
import SystemPackage
import Testing

@testable import MappingModel

/// Returns a text mapping from "V1" to "V2", resolved.
func resolved(_ text: String, _ source: [Entity], _ destination: [Entity]) throws(HopdError) -> ExplicitMapping {
  try TextMapping(
    text: "[mapping]\nsource = \"V1\"\ndestination = \"V2\"\n" + text, file: "/maps/V1 to V2.hopmap.toml"
  ).resolved(source: model("V1", source), destination: model("V2", destination))
}

/// Returns a property's value as text: an expression, one of the forms of text mappings, or nil for no value.
func shown(_ mapping: ExplicitMapping, _ entityMapping: String, _ property: String) -> String? {
  guard let entity = mapping.entityMappings.first(where: { $0.name == entityMapping }) else { return "no mapping" }
  guard let found = (entity.attributes + entity.relationships).first(where: { $0.name == property }) else {
    return "not listed"
  }
  switch found.value {
  case nil: return nil
  case .expression(let node)?: return node.description
  case .grouped(let mapping, let keys)?: return "\(mapping)[\(keys.map(\.description).joined(separator: ", "))]"
  case .matching(let entity, let attribute, let key)?: return "\(entity).\(attribute) == \(key)"
  }
}

func made(_ mapping: String, _ objects: String) -> String {
  "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"\(mapping)\", \(objects))"
}

func madeByAny(_ relationship: String, _ objects: String) -> String {
  "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", "
    + "\"\(relationship)\", \(objects))"
}

@Suite struct TextMappingTests {
  private let before = [
    entity(
      "Book", [attribute("authorName"), attribute("pages", .integer32), attribute("title")],
      [toOne("user", "User", inverse: "books"), toOne("shelf", "Shelf", inverse: "books")]),
    entity("User", [attribute("userId", .integer32)], [toMany("books", "Book", inverse: "user")]),
    entity("Shelf", abstract: true, [attribute("name")], [toMany("books", "Book", inverse: "shelf")]),
    entity("Box", parent: "Shelf"), entity("Rack", parent: "Shelf"),
  ]
  private let after = [
    entity("Author", [attribute("name"), attribute("title")], [toMany("books", "Book", inverse: "authors")]),
    entity(
      "Book", [attribute("length", .integer32), attribute("title"), attribute("cache", transient: true)],
      [
        toMany("authors", "Author", inverse: "books"), toMany("users", "User", inverse: "books"),
        toOne("shelf", "Shelf", inverse: "books"), toOne("keeper", "User", inverse: "kept"),
      ]),
    entity(
      "User", [attribute("userId", .integer32)],
      [toMany("books", "Book", inverse: "users"), toMany("kept", "Book", inverse: "keeper")]),
    entity("Shelf", abstract: true, [attribute("name")], [toMany("books", "Book", inverse: "shelf")]),
    entity("Box", parent: "Shelf"), entity("Rack", parent: "Shelf"),
  ]
  private let rest = """

    [[entity]]
    source = "User"
    destination = "User"
    [[entity]]
    source = "Box"
    destination = "Box"
    [[entity]]
    source = "Rack"
    destination = "Rack"
    """

  @Test func whatIsNotSaidIsWhatXcodeWouldGenerate() throws {
    let mapping = try resolved("[[entity]]\nsource = \"Book\"\ndestination = \"Book\"" + rest, before, after)
    #expect(mapping.name == "V1 to V2")
    #expect(mapping.entityMappings.map(\.name) == ["BookToBook", "UserToUser", "BoxToBox", "RackToRack"])
    #expect(shown(mapping, "BookToBook", "title") == "$source.title")
    #expect(shown(mapping, "BookToBook", "length") == nil)
    #expect(shown(mapping, "BookToBook", "cache") == "not listed")
    #expect(shown(mapping, "BookToBook", "authors") == nil)
    // Objects of several entities: each is looked up by its own entity.
    #expect(shown(mapping, "BookToBook", "shelf") == madeByAny("shelf", "$source.shelf"))
    #expect(shown(mapping, "UserToUser", "books") == made("BookToBook", "$source.books"))
    #expect(shown(mapping, "BoxToBox", "name") == "$source.name")
    let types = mapping.entityMappings.map(\.type)
    #expect(types == [.transform, .copy, .copy, .copy])
  }

  @Test func everyFormOfARelationship() throws {
    let mapping = try resolved(
      """
      [[entity]]
      name = "Authors"
      source = "Book"
      destination = "Author"
      distinct_by = "$source.authorName"
      attributes.name = "$source.authorName"
      [[entity]]
      source = "Book"
      destination = "Book"
      filter = "title != nil"
      policy = "App.BookPolicy"
      user_info = { modelVersion = "2", deep = { list = [1, 2.5, true] } }
      attributes = { length = "$source.pages" }
      skip = ["title"]
      relationships.authors = { mapping = "Authors", key = "$source.authorName" }
      relationships.users = "$source.user"
      relationships.shelf = "nil"
      relationships.keeper = { entity = "User", attribute = "userId", key = "$source.pages" }
      """ + rest, before, after)
    #expect(shown(mapping, "BookToBook", "authors") == "Authors[$source.authorName]")
    #expect(shown(mapping, "BookToBook", "users") == made("UserToUser", "$source.user"))
    #expect(shown(mapping, "BookToBook", "shelf") == "nil")
    #expect(shown(mapping, "BookToBook", "keeper") == "User.userId == $source.pages")
    #expect(shown(mapping, "BookToBook", "length") == "$source.pages")
    #expect(shown(mapping, "BookToBook", "title") == "not listed")
    // An Author has a title too, but a book's title is not the same.
    #expect(shown(mapping, "Authors", "title") == nil)
    let book = mapping.entityMappings[1]
    #expect(book.filter?.text == "title != nil")
    #expect(book.policy == "App.BookPolicy" && book.type == .custom)
    #expect(
      book.userInfo == [
        "modelVersion": .string("2"),
        "deep": .dictionary(["list": .array([.integer(1), .real(2.5), .boolean(true)])]),
      ])
    guard case .distinctBy(let keys, .lowest) = mapping.entityMappings[0].grouping else {
      Issue.record("not distinct: \(mapping.entityMappings[0].grouping)")
      return
    }
    #expect(keys.map(\.description) == ["$source.authorName"])
    // A second mapping from Book that makes no books does not affect the books of a user.
    #expect(shown(mapping, "UserToUser", "books") == made("BookToBook", "$source.books"))
  }

  @Test func lookupsByNameAreTheFunctionsOfCoreData() throws {
    let forms = [
      "{ mapping = \"UserToUser\", objects = \"$source.user\" }",
      "'FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"UserToUser\", "
        + "$source.user)'",
      "\"$source.user\"",
    ]
    let values = try forms.map { form in
      let text = "[[entity]]\nsource = \"Book\"\ndestination = \"Book\"\nrelationships.users = \(form)" + rest
      return shown(try resolved(text, before, after), "BookToBook", "users")
    }
    #expect(values == Array(repeating: made("UserToUser", "$source.user"), count: 3))
    let text =
      "[[entity]]\nsource = \"Book\"\ndestination = \"Book\"\n"
      + "relationships.users = { relationship = \"user\", objects = \"$source.user\" }"
    #expect(
      shown(try resolved(text + rest, before, after), "BookToBook", "users") == madeByAny("user", "$source.user"))
  }

  @Test func objectsOfSeveralEntitiesAreLookedUpAtTheEndOfAnyPath() throws {
    let text = { (objects: String) in
      """
      [[entity]]
      source = "Note"
      destination = "Note"
      relationships.place = "\(objects)"
      [[entity]]
      source = "Box"
      destination = "Box"
      [[entity]]
      source = "Rack"
      destination = "Rack"
      """
    }
    let old = before + [entity("Note", [], [toOne("book", "Book"), toOne("at", "Shelf")])]
    let new =
      after.filter { $0.name != "User" && $0.name != "Book" && $0.name != "Author" }.map {
        $0.name == "Shelf" ? entity("Shelf", abstract: true, [attribute("name")]) : $0
      } + [entity("Note", [], [toOne("place", "Shelf")])]
    #expect(
      shown(try resolved(text("$source.book.shelf"), old, new), "NoteToNote", "place")
        == madeByAny("shelf", "$source.book.shelf"))
    #expect(shown(try resolved(text("$source.at"), old, new), "NoteToNote", "place") == madeByAny("at", "$source.at"))
  }

  @Test func expandingKnowsEach() throws {
    let mapping = try resolved(
      """
      [[entity]]
      name = "Kept"
      source = "User"
      destination = "Book"
      expand = "$source.books"
      attributes.title = "$each.title"
      relationships.users = { mapping = "UserToUser", objects = "$source" }
      """ + rest, before, after)
    guard case .expand(let members, let entity) = mapping.entityMappings[0].grouping else {
      Issue.record("not expanding")
      return
    }
    #expect(members.description == "$source.books" && entity == "Book")
    #expect(shown(mapping, "Kept", "title") == "$each.title")
    #expect(shown(mapping, "Kept", "users") == made("UserToUser", "$source"))
  }

  @Test func duplicatesAndWhichStays() throws {
    for (keep, expected) in [
      ("", KeepRule.lowest), ("keep = \"lowest\"", .lowest), ("keep = \"highest\"", .highest),
      ("keep = { latest = \"$source.pages\" }", .latest(.keyPath(.variable("source"), [.key("pages")]))),
    ] {
      let mapping = try resolved(
        "[[entity]]\nsource = \"Book\"\ndestination = \"Book\"\n\(keep)\n"
          + "deduplicate_by = [\"$source.title\", \"$source.authorName\"]" + rest, before, after)
      guard case .deduplicate(let keys, let rule) = mapping.entityMappings[0].grouping else {
        Issue.record("not deduplicating")
        return
      }
      #expect(rule == expected && keys.count == 2)
      // Properties that stay are carried as usual.
      #expect(shown(mapping, "BookToBook", "title") == "$source.title")
    }
  }

  @Test func constantsOfTOMLAreConstants() throws {
    let after = [
      entity("A", [attribute("i", .integer64), attribute("d", .double), attribute("b", .boolean), attribute("s")])
    ]
    let mapping = try resolved(
      """
      [[entity]]
      source = "A"
      destination = "A"
      attributes = { i = 25, d = 2.5, b = true, s = "'it'" }
      """, [entity("A", [attribute("x")])], after)
    #expect(["i", "d", "b", "s"].map { shown(mapping, "AToA", $0) } == ["25", "2.5", "true", "\"it\""])
  }

  @Test func withoutDestinationObjectsAreDroppedAndWithoutSourceNoneAreMade() throws {
    let mapping = try resolved(
      "[[entity]]\nsource = \"Gone\"\n[[entity]]\ndestination = \"New\"", [entity("Gone", [attribute("x")])],
      [entity("New", [attribute("x")])])
    #expect(mapping.entityMappings.map(\.type) == [.remove, .add])
    #expect(mapping.entityMappings.map(\.name) == ["Gone", "New"])
    #expect(shown(mapping, "New", "x") == nil)
  }

  @Test func copyFalseCarriesOnlyWhatIsSaid() throws {
    let mapping = try resolved(
      "[[entity]]\nsource = \"Book\"\ndestination = \"Book\"\ncopy = false\nattributes.length = 1" + rest, before, after
    )
    let book = mapping.entityMappings[0]
    #expect((book.attributes + book.relationships).filter { $0.value != nil }.map(\.name) == ["length"])
  }
}
