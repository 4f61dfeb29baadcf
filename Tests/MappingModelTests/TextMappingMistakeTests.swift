// Wrong text mappings: every mistake is reported with line, key and remedy, all of them at once, and no text causes a
// trap.

import Diagnostics
import ManagedObjectModel
import SystemPackage
import Testing

@testable import MappingModel

@Suite struct TextMappingMistakeTests {
  private let before = [
    entity(
      "Book", [attribute("author"), attribute("title"), attribute("pages", .integer32)],
      [toOne("user", "User", inverse: "books")]),
    entity("User", [attribute("id", .integer32)], [toMany("books", "Book", inverse: "user")]),
  ]
  private let after = [
    entity("Thing", abstract: true), entity("Note", parent: "Thing", [attribute("text")]),
    entity("Author", [attribute("name")], [toMany("books", "Book", inverse: "author")]),
    entity(
      "Book", [attribute("title"), attribute("cache", transient: true), attribute("pages", .string)],
      [toOne("user", "User", inverse: "books"), toOne("author", "Author", inverse: "books")]),
    entity("User", [attribute("id", .integer32)], [toMany("books", "Book", inverse: "user")]),
  ]

  /// The text below `[[entity]]` for Book, then for User; the line of the mistake counted from the first; words of the
  /// message or hint.
  private static let mistakes: [(text: String, line: Int, words: [String])] = [
    ("atributes.title = \"$source.title\"", 4, ["unknown key `atributes`", "use `attributes`"]),
    ("distict_by = \"$source.title\"", 4, ["unknown key `distict_by`", "`distinct_by`"]),
    ("zzz = 1", 4, ["unknown key `zzz`", "use one of: name, source"]),
    ("filter = 3", 4, ["`filter` must be a string, not an integer"]),
    ("filter = \"\"", 4, ["`filter` must be a string, not an empty one"]),
    ("filter = \"title ==\"", 4, []),
    ("copy = \"yes\"", 4, ["`copy` must be true or false, not a string"]),
    ("skip = \"title\"", 4, ["`skip` must be an array of names"]),
    ("skip = [\"title\", 3]", 4, ["`skip` holds an integer"]),
    ("skip = [\"titel\"]", 4, ["no property titel in entity Book", "use 'title'"]),
    ("skip = [\"title\"]\nattributes.title = \"'x'\"", 4, ["skipped and has a value too"]),
    ("user_info = 3", 4, ["`user_info` must be a table"]),
    ("user_info = { when = 1979-05-27 }", 4, ["cannot be given a"]),
    ("attributes = \"x\"", 4, ["`attributes` must be a table"]),
    ("attributes.titel = \"'x'\"", 4, ["no property titel", "use 'title'"]),
    ("attributes.user = \"$source.user\"", 4, ["is a relationship", "write it under relationships"]),
    ("relationships.title = \"$source.user\"", 4, ["is an attribute"]),
    ("attributes.cache = \"'x'\"", 4, ["is transient"]),
    ("attributes.title = [1]", 4, ["must be an expression in a string, not an array"]),
    ("attributes.title = \"$source.\"", 4, []),
    ("attributes.title = \"$source.nothing\"", 4, ["nothing"]),
    ("attributes.title = \"titel\"", 4, ["$source"]),
    ("relationships.author = { mapping = \"BookToBook\" }", 4, ["one of the four forms"]),
    ("relationships.author = { maping = \"X\", objects = \"$source\" }", 4, ["unknown key `maping`", "`mapping`"]),
    ("relationships.author = { mapping = \"BookToBuch\", objects = \"$source\" }", 4, ["use 'BookToBook'"]),
    ("relationships.author = { mapping = \"BookToBook\", objects = \"$source\" }", 4, ["makes Book objects"]),
    ("relationships.author = { mapping = \"UserToUser\", key = \"$source.title\" }", 4, ["makes User objects"]),
    ("relationships.user = { mapping = \"UserToUser\", key = \"$source.title\" }", 4, ["has no keys"]),
    (
      "relationships.author = { entity = \"Autor\", attribute = \"name\", key = \"$source.author\" }", 4,
      ["use 'Author'"]
    ),
    (
      "relationships.author = { entity = \"Author\", attribute = \"nam\", key = \"$source.author\" }", 4,
      ["use 'name'"]
    ),
    (
      "relationships.author = { entity = \"User\", attribute = \"id\", key = \"$source.pages\" }", 4,
      ["holds Author objects"]
    ),
    ("relationships.author = { entity = \"Author\", attribute = \"name\", key = \"$source.pages\" }", 4, []),
    ("relationships.author = \"$source.user\"", 4, ["no mapping of this hop makes Author objects of User"]),
    ("relationships.author = \"$source.title\"", 4, ["neither an object"]),
    ("keep = \"lowest\"", 4, ["nothing groups them"]),
    ("distinct_by = \"$source.title\"\nkeep = \"newest\"", 5, ["`keep` must be"]),
    ("distinct_by = \"$source.title\"\ndeduplicate_by = \"$source.title\"", 4, ["exclude each other"]),
    ("distinct_by = []", 4, ["empty"]),
    ("distinct_by = \"$source.user\"", 4, []),
    ("expand = \"$source.user\"", 4, ["to-many"]),
    ("expand = \"$source.title\"", 4, ["to-many"]),
  ]

  @Test(arguments: mistakes.indices) func isReportedWithLineAndRemedy(_ index: Int) throws {
    let mistake = Self.mistakes[index]
    // Book.pages changes its type, so that the file must map it if it is carried.
    let isOwn = ["skip", "distinct_by", "expand"].contains { mistake.text.hasPrefix($0) }
    let text = """
      [[entity]]
      source = "Book"
      destination = "Book"
      \(mistake.text)
      \(isOwn ? "attributes.pages = \"'1'\"" : "skip = [\"pages\"]")
      [[entity]]
      source = "User"
      destination = "User"
      """
    let error = #expect(throws: HopdError.self, "\(mistake.text)") { _ = try resolved(text, before, after) }
    guard let error else { return }
    let all = error.reasons.isEmpty ? [error] : error.reasons
    let shown = "\(mistake.text)\n\(error)"
    // Three lines of [mapping] come first.
    let found = all.contains { reason in
      reason.place.line == mistake.line + 3 && reason.place.file == "/maps/V1 to V2.hopmap.toml"
        && reason.place.key?.hasPrefix("entity.BookToBook") == true
        && mistake.words.allSatisfy { "\(reason)".contains($0) }
    }
    #expect(found, "\(shown)")
    #expect(all.count == 1, "\(shown)")
  }

  @Test func wholeMappings() {
    let cases: [(text: String, words: String)] = [
      ("", "no [[entity]]"),
      ("[entity]\nsource = \"Book\"", "`entity` must be an array of tables"),
      ("entity = 3", "unknown key `entity`"),
      ("[[entity]]\nname = \"x\"", "neither a source nor a destination"),
      ("[[entity]]\nsource = \"Bok\"\ndestination = \"Book\"", "use 'Book'"),
      ("[[entity]]\nsource = \"Book\"\ndestination = \"Boook\"", "use 'Book'"),
      ("[[entity]]\nsource = \"Book\"\ndestination = \"Thing\"", "is abstract"),
      ("[[entity]]\nsource = \"Book\"\n[[entity]]\nsource = \"Book\"", "two entity mappings are called Book"),
      ("[[entity]]\nsource = \"Book\"\nattributes.x = 1", "the objects are dropped"),
      ("[[entity]]\ndestination = \"Author\"\nattributes.name = \"'x'\"", "no objects are created"),
      ("[[entity]]\nsource = \"Book\"\ndestination = \"Book\"\n", "pages cannot be carried as it is"),
      ("[[entity]]\nsource = \"User\" = 3", "no valid TOML"),
      ("maping = 1\n[[entity]]\nsource = \"Book\"", "unknown key"),
    ]
    for (text, words) in cases {
      do {
        _ = try resolved(text, before, after)
        Issue.record("accepted: \(text)")
      } catch {
        #expect("\(error)".contains(words), "\(text)\n\(error)")
        let reported = error.reasons.isEmpty ? [error] : error.reasons
        #expect(reported.allSatisfy { $0.hint != nil }, "no hint: \(text)\n\(error)")
      }
    }
  }

  @Test func twoMappingsThatFitMustBeDistinguished() {
    let text = """
      [[entity]]
      name = "Thin"
      source = "Book"
      destination = "Book"
      filter = "pages < 100"
      skip = ["pages"]
      [[entity]]
      name = "Thick"
      source = "Book"
      destination = "Book"
      filter = "pages >= 100"
      skip = ["pages"]
      [[entity]]
      source = "User"
      destination = "User"
      """
    let error = #expect(throws: HopdError.self) { _ = try resolved(text, before, after) }
    #expect(error?.message.contains("Thin, Thick all make Book objects of Book") == true)
    #expect(error?.hint?.contains("{ mapping = \"Thin\", objects = \"$source.books\" }") == true)
    #expect(throws: Never.self) {
      _ = try resolved(
        text + "\nrelationships.books = { relationship = \"books\", objects = \"$source.books\" }", before, after)
    }
  }

  @Test func allMistakesAreReportedInTheOrderOfTheLines() throws {
    let text = """
      [[entity]]
      source = "Book"
      destination = "Book"
      skip = ["pages"]
      relationships.user = "$source.usr"
      attributes.title = "$source.titel"
      colour = 3
      """
    // First the file is read; its names are resolved only if it could be read.
    let first = #expect(throws: HopdError.self) { _ = try resolved(text, before, after) }
    #expect(first?.place.line == 10)
    let second = #expect(throws: HopdError.self) {
      _ = try resolved(text.replacing("colour = 3", with: ""), before, after)
    }
    #expect(second?.reasons.map(\.place.line) == [8, 9])
  }

  @Test func headers() {
    for (text, words) in [
      ("", "no [mapping]"), ("mapping = 3", "must be a table"),
      ("[mapping]\nsource = \"a\"", "`destination` is not set"),
      ("[mapping]\nsource = 3\ndestination = \"b\"", "`source` must be a string"),
      ("[mapping]\nsource = \"a\"\ndestination = \"b\"\nversion = 1", "unknown key `version`"),
    ] {
      let error = #expect(throws: HopdError.self) {
        _ = try TextMapping(text: "\(text)\n[[entity]]\nsource = \"x\"", file: "/x.hopmap.toml")
      }
      #expect("\(error as Any)".contains(words), "\(text): \(error as Any)")
    }
  }

  @Test func everyCutAndEveryChangedByteIsSurvived() {
    let text = """
      [mapping]
      source = "V1"
      destination = "V2"
      [[entity]]
      source = "Book"
      destination = "Book"
      filter = "title != nil"
      user_info = { a = "b" }
      skip = ["pages"]
      attributes.title = "TERNARY($source.pages > 3, 'x', $source.title)"
      relationships.user = { mapping = "UserToUser", objects = "$source.user" }
      [[entity]]
      source = "User"
      destination = "User"
      deduplicate_by = ["$source.id"]
      keep = { latest = "$source.id" }
      """
    let (source, destination) = (model("V1", before), model("V2", after))
    func tryIt(_ bytes: some Sequence<UInt8>) {
      guard let mapping = try? TextMapping(text: String(decoding: Array(bytes), as: UTF8.self), file: "/x.hopmap.toml")
      else { return }
      _ = try? mapping.resolved(source: source, destination: destination)
    }
    let bytes = Array(text.utf8)
    for length in 0...bytes.count { tryIt(bytes[..<length]) }
    for index in bytes.indices {
      for byte in "\"'[{}=.#\n$(0".utf8 {
        var changed = bytes
        changed[index] = byte
        tryIt(changed)
      }
    }
  }
}
