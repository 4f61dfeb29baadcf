// The check against the model: a valid expression passes with its type, an invalid one is reported with the remedy.

import BlockingTests
import Diagnostics
import Expressions
import ManagedObjectModel
import Testing

@Suite(.blocking) struct ExpressionCheckerTests {
  static let model = ManagedObjectModel(
    name: "Library 2",
    entities: [
      Entity(
        name: "Person",
        attributes: [
          Attribute(name: "name", type: .string), Attribute(name: "age", type: .integer16),
          Attribute(name: "balance", type: .decimal), Attribute(name: "born", type: .date),
          Attribute(name: "flag", type: .boolean), Attribute(name: "weight", type: .double),
          Attribute(name: "photo", type: .binary, allowsExternalStorage: true), Attribute(name: "thumb", type: .binary),
          Attribute(name: "caption", type: .string, allowsExternalStorage: true),
          Attribute(name: "tags", type: .transformable), Attribute(name: "token", type: .uuid),
          Attribute(name: "home", type: .uri), Attribute(name: "shown", type: .string, isTransient: true),
          Attribute(name: "count", type: .integer64, derivationExpression: "count:(books)"),
        ],
        relationships: [
          Relationship(name: "books", destinationEntityName: "Book", inverseName: "owner", isToMany: true),
          Relationship(
            name: "queue", destinationEntityName: "Book", inverseName: "queued", isToMany: true, isOrdered: true),
          Relationship(name: "boss", destinationEntityName: "Person"),
        ],
        fetchedProperties: [FetchedProperty(name: "recent")]),
      Entity(name: "Author", parentName: "Person", attributes: [Attribute(name: "penName", type: .string)]),
      Entity(
        name: "Book",
        attributes: [
          Attribute(name: "title", type: .string), Attribute(name: "pages", type: .integer32),
          Attribute(name: "price", type: .decimal),
        ],
        relationships: [
          Relationship(name: "owner", destinationEntityName: "Person", inverseName: "books"),
          Relationship(name: "queued", destinationEntityName: "Person", inverseName: "queue"),
          Relationship(name: "chapters", destinationEntityName: "Chapter", inverseName: "book", isToMany: true),
        ]),
      Entity(
        name: "Chapter", attributes: [Attribute(name: "words", type: .integer64)],
        relationships: [Relationship(name: "book", destinationEntityName: "Book", inverseName: "chapters")]),
    ])

  private static func checker(
    _ place: ExpressionScope.Place, entity: String? = "Person", hasPolicy: Bool = false, each: String? = nil
  ) -> ExpressionChecker {
    ExpressionChecker(
      ExpressionScope(
        model: model, sourceEntity: entity, place: place, variables: each.map { ["each": $0] } ?? [:],
        entityMappings: ["PersonToPerson", "BookToBook"], hasPolicy: hasPolicy))
  }

  @Test func types() throws {
    let types: [(String, ExpressionType)] = [
      ("$source", .object(entity: "Person")), ("$source.name", .value(.string)),
      ("$source.boss.boss.age", .value(.integer16)), ("$source.books", .objects(entity: "Book", isOrdered: false)),
      ("$source.queue", .objects(entity: "Book", isOrdered: true)),
      ("$source.boss.queue", .objects(entity: "Book", isOrdered: true)),
      ("$source.queue.owner", .objects(entity: "Person", isOrdered: true)),
      ("$source.queue.chapters", .objects(entity: "Chapter", isOrdered: false)),
      ("$source.books.pages", .values(.integer32)), ("$source.books.@count", .value(.integer64)),
      ("$source.books.@sum.pages", .value(.integer64)), ("$source.books.@avg.pages", .value(.double)),
      ("$source.books.@avg.price", .value(.decimal)), ("$source.books.@max.title", .value(.string)),
      ("$source.books.@sum.owner.weight", .value(.double)), ("$source.books.@min.owner.born", .value(.date)),
      ("$source.books.@distinctUnionOfObjects.title", .values(.string)),
      ("$source.books.@unionOfObjects.owner", .objects(entity: "Person", isOrdered: false)),
      ("$source.books.@distinctUnionOfSets.chapters", .objects(entity: "Chapter", isOrdered: false)),
      ("($source.books.@distinctUnionOfObjects.title).@count", .value(.integer64)),
      ("$source.queue[0].pages", .value(.integer32)), ("$source.books[SIZE]", .value(.integer64)),
      ("{3, 4.5}[0]", .value(.double)), ("max:($source.books.pages)", .value(.integer32)),
      ("sum:({1, 2})", .value(.integer64)), ("count:({})", .value(.integer64)),
      ("$source.age + 1", .value(.integer64)), ("$source.age * 1.5", .value(.double)),
      ("$source.balance * 1.5", .value(.decimal)), ("$source.age ** 2", .value(.double)),
      ("-$source.age", .value(.integer64)), ("-$source.balance", .value(.decimal)),
      ("$source.born + 3600", .value(.date)), ("now() - $source.born", .value(.double)),
      ("abs:($source.age)", .value(.integer64)), ("floor:($source.weight)", .value(.double)),
      ("modulus:by:($source.age, 3)", .value(.integer64)), ("uppercase:($source.name)", .value(.string)),
      ("concat:($source.name, ' ', nil)", .value(.string)),
      ("length:($source.name)", .value(.integer64)), ("now()", .value(.date)), ("name", .value(.string)),
      ("boss.books", .objects(entity: "Book", isOrdered: false)), ("$source.age.stringValue", .value(.string)),
      ("$source.books.pages.stringValue", .values(.string)), ("$source.name.intValue", .value(.integer32)),
      ("sqrt:($source.age)", .value(.double)), ("$source.age & 1", .value(.integer64)),
      ("mode:($source.books.pages)", .values(.integer32)), ("median:($source.books.price)", .value(.decimal)),
      ("noindex:($source.books)", .objects(entity: "Book", isOrdered: false)),
      ("CAST($source.age, 'NSString')", .value(.string)), ("CAST($source.name, 'Integer 32')", .value(.integer32)),
      ("CAST($source.age, 'NSNumber')", .value(.integer16)), ("CAST($source.name, 'NSNumber')", .value(.double)),
      ("CAST($source.age, 'NSDate')", .value(.date)), ("TERNARY($source.flag == YES, 1, 2.5)", .value(.double)),
      ("TERNARY($source.age > 3, $source.name, nil)", .value(.string)),
      ("TERNARY($source.flag == 1, $source.boss, $source)", .object(entity: "Person")),
      ("SUBQUERY($source.books, $b, $b.pages > 10)", .objects(entity: "Book", isOrdered: false)),
      ("SUBQUERY($source.queue, $b, $b.owner == $source)[FIRST].title", .value(.string)),
      ("$source.objectID.URIRepresentation.path", .value(.string)), ("nil", .null),
      ("$source.nowhere", .unknown), ("$each.title", .value(.string)),
    ]
    let checker = Self.checker(.attribute, each: "Book")
    for (text, type) in types {
      #expect(checker.type(of: try ExpressionParser.expression(text)) == type, "\(text)")
    }
    let lookup = try ExpressionParser.expression(
      "FUNCTION($manager, 'destinationInstancesForEntityMappingNamed:sourceInstances:', 'BookToBook', $source.books)")
    #expect(
      Self.checker(.relationship).type(of: lookup) == .destinationObjects(.entityMapping("BookToBook"), isMany: true))
    let inner = try ExpressionParser.expression("$b.title")
    #expect(checker.type(of: inner, variables: ["b": "Book"]) == .value(.string))
  }

  @Test func filtersThatHold() throws {
    for text in [
      "name != nil", "boss == nil", "boss.name == 'x'", "age > 3 && weight < 1.5", "flag == YES", "flag = 1",
      "books.@count == 1", "ANY books.pages > 10", "NONE books.title IN {'a', nil}", "ALL books.owner == SELF",
      "ANY books.chapters.words > 5", "SUBQUERY(books, $b, $b.pages > 10 AND $b.owner.name == name).@count > 0",
      "name LIKE[cd] '*x?'", "name MATCHES '[a-z]+(b|c)?'", "age BETWEEN {1, 5}", "age IN {1, 2}", "age IN {}",
      "born > CAST(0, 'NSDate')", "token == CAST('00010203-0405-0607-0809-0a0b0c0d0e0f', 'NSUUID')", "photo != nil",
      "caption == 'x'",
      "tags == nil", "thumb == CAST('00', 'NSData')", "boss IN {SELF}", "balance > 1.5", "TRUEPREDICATE",
      "'a' IN books.@distinctUnionOfObjects.title", "length:(name) > 3", "age < nil", "queue[0].title == 'x'",
      "objectID.URIRepresentation.path == '/Person/p1'", "$source.name == 'x'", "10 IN books.pages",
      "'a' IN name", "books.title CONTAINS 'x'", "name <[c] 'b'", "name.length > 3", "boss IN books.owner",
      "SUBQUERY(books, $b, $b.owner == $source).@count > 0", "age & 3 == 1", "books.title.@count > 1",
    ] {
      do {
        try Self.checker(.sourceFilter).check(try ExpressionParser.predicate(text))
      } catch {
        Issue.record("\(text): \(error)")
      }
    }
    try Self.checker(.sourceFilter, entity: "Author").check(ExpressionParser.predicate("penName == name"))
  }

  @Test func filtersThatDoNot() throws {
    let refused: [(text: String, word: String, hint: String?)] = [
      ("nam == 'x'", "no attribute or relationship nam", "Person has: age"),
      ("Name == 'x'", "relationship Name", "use 'name'"),
      ("penName == 'x'", "relationship penName", "subentity Author"), ("boss.nam == 'x'", "relationship nam", nil),
      ("name.size > 3", "size is used on a string", "uppercaseString"),
      ("age.length > 3", "length is used on a number", "stringValue"),
      ("photo.length > 3", "external storage", nil), ("tags.description == 'x'", "used on a transformable", nil),
      ("books.chapters.@count > 3", "set of sets", "(books.@distinctUnionOfSets.chapters)"),
      ("count:(books.chapters.words) > 3", "set of sets", "(books.@distinctUnionOfSets.chapters).words"),
      ("name == 3", "a string is compared with a number", "quotes"),
      ("age == '3'", "a number is compared with a string", "quotes"),
      ("born > 5", "a date is compared with a number", "NSDate"),
      ("born > '2026-11-28'", "a date is compared with a string", "date -ud"),
      ("token == 'x'", "a UUID is compared", "NSUUID"), ("books.pages > 3", "many values", "ANY"),
      ("books == nil", "many objects of Book", "books.@count == 0"),
      ("ANY name == 'x'", "ANY requires a to-many", "remove ANY"),
      ("books.title CONTAINS 3", "is compared", nil), ("books.title BEGINSWITH 'x'", "many values", "ANY"),
      ("name CONTAINS 3", "requires strings", nil),
      ("name BEGINSWITH ''", "the pattern is empty", "=="), ("name MATCHES ''", "the pattern is empty", nil),
      ("name MATCHES '(?<=a)b'", "MATCHES", nil), ("name MATCHES 'a++'", "MATCHES", nil),
      ("name MATCHES '[[:alpha:]]'", "MATCHES", nil), ("name MATCHES '\\\\p{L}'", "MATCHES", nil),
      ("name MATCHES '('", "MATCHES", nil), ("name MATCHES boss.name", "a pattern in quotes", "LIKE"),
      ("3 IN name", "requires strings", nil), ("'' IN name", "the pattern is empty", nil),
      ("age IN 3", "requires a list", nil),
      ("age IN {'a'}", "is compared", nil),
      ("age IN {1, 'a'}", "is either", nil), ("age BETWEEN {1}", "list of two", nil),
      ("age BETWEEN books", "list of two", nil),
      ("3 IN books.title", "is compared", nil), ("age ==[c] 3", "modifiers require strings", nil),
      ("age <[c] 3", "modifiers require strings", nil), ("3 IN[c] books.pages", "modifiers require strings", nil),
      ("photo == thumb", "external storage", "!= nil"), ("tags == name", "a transformable", "nil"),
      ("shown == 'x'", "transient", nil),
      ("recent == nil", "fetched property", nil), ("boss == 3", "an object of Person is compared", nil),
      ("boss == ANY", "keyword", nil), ("books.@sum.title > 3", "requires numbers", nil),
      ("name.@count > 3", "to-many relationship before it", nil),
      ("books.@sum.chapters.@count > 3", "more than one collection operator", "parentheses"),
      ("books.@distinctUnionOfObjects.chapters == nil", "requires one value", "@distinctUnionOfSets"),
      ("books.@distinctUnionOfSets.title == nil", "requires a to-many", "@distinctUnionOfObjects"),
      ("books[0].title == 'x'", "without an order", nil),
      ("$source.nam == 'x'", "relationship nam", nil), ("$x.name == 'x'", "$x is unknown", "$source"),
      ("SUBQUERY(boss, $b, $b.age > 1).@count > 0", "collection of objects", nil),
      ("SUBQUERY(books, $source, TRUEPREDICATE).@count > 0", "a meaning already", nil),
      ("FUNCTION($entityPolicy, 'x') == 1", "filters have none", nil), ("name + 1 == 2", "requires numbers", "CAST"),
      (
        "FUNCTION($manager, 'destinationInstancesForEntityMappingNamed:sourceInstances:', 'BookToBook', books) == nil",
        "only a relationship", nil
      ),
      ("CAST('x', 'NSNumber') == 1", "not a number", nil),
      ("CAST(name, 'NSDate') == nil", "CAST cannot make a date", "seconds"),
      ("boss.objectID == nil", "only its path", "URIRepresentation"), ("age < boss", "is compared", nil),
      ("boss < SELF", "is compared", nil),
      ("TERNARY(age > 1, 'a', 2) == 2", "is either", nil),
      ("modulus:by:(weight, 2) == 1", "requires integers", "Integer 64"),
      ("concat:(name, 2) == 'x2'", "requires strings", "CAST(2, 'NSString')"),
    ]
    for (text, word, hint) in refused {
      let error = #expect(throws: HopdError.self, "\(text)") {
        try Self.checker(.sourceFilter).check(try ExpressionParser.predicate(text))
      }
      let message = error?.message ?? ""
      #expect(message.contains(word), "\(text): \(message)")
      if let hint { #expect(error?.hint?.contains(hint) == true, "\(text): \(error?.hint ?? "no hint")") }
    }
    // All findings at once, each with the entity.
    let error = #expect(throws: HopdError.self) {
      try Self.checker(.sourceFilter).check(ExpressionParser.predicate("nam == 'x' AND name == 3 AND age > born"))
    }
    #expect(error?.reasons.count == 3 && error?.place.entity == "Person")
  }

  @Test func valuesOfAttributes() throws {
    func error(_ text: String, _ type: AttributeType, hasPolicy: Bool = false, entity: String? = "Person") -> HopdError?
    {
      do throws(HopdError) {
        try Self.checker(.attribute, entity: entity, hasPolicy: hasPolicy)
          .check(try ExpressionParser.expression(text), for: Attribute(name: "target", type: type))
        return nil
      } catch {
        return error
      }
    }
    let numbers: [AttributeType] = [.integer16, .integer32, .integer64, .decimal, .double, .float, .boolean]
    for type in numbers {
      for text in [
        "$source.age", "$source.balance", "$source.weight", "$source.flag", "1", "nil", "$source.books.@count",
      ] {
        #expect(error(text, type) == nil, "\(text) for \(type)")
      }
      let text = error("$source.name", type)
      #expect(text?.message.contains("is a string, but target is of type") == true)
      #expect(text?.hint == "write CAST($source.name, '\(type == .decimal ? "NSDecimalNumber" : "NSNumber")')")
      #expect(text?.place.property == "target")
    }
    let fitting: [(String, AttributeType)] = [
      ("$source.name", .string), ("$source.born", .date), ("now()", .date), ("$source.photo", .binary),
      ("$source.tags", .transformable),
      ("$source.token", .uuid), ("$source.home", .uri), ("CAST($source.age, 'NSString')", .string),
    ]
    for (text, type) in fitting { #expect(error(text, type) == nil, "\(text)") }
    let refused: [(String, AttributeType, String, String?)] = [
      ("$source.age", .string, "is a number", "CAST($source.age, 'NSString')"),
      ("nam", .string, "stands alone", "write $source.nam"),
      ("SELF", .string, "SELF has no meaning", "$source"), ("$source.age", .date, "is a number", "NSDate"),
      ("'x'", .uri, "is a string", "policy"),
      ("$source.books.title", .string, "many values", "@count"), ("$source", .string, "an object of Person", nil),
      ("70000", .integer16, "70000 does not fit", nil),
      ("2", .boolean, "2 does not fit", nil), ("FUNCTION($entityPolicy, 'x')", .string, "names none", "set a policy"),
      ("$destination", .string, "$destination is not supported", nil),
      ("$source.shown", .string, "transient", nil), ("$source.thumb", .transformable, "binary data", nil),
    ]
    for (text, type, word, hint) in refused {
      let found = error(text, type)
      #expect(found?.message.contains(word) == true, "\(text): \(found?.message ?? "passes")")
      if let hint { #expect(found?.hint?.contains(hint) == true, "\(text): \(found?.hint ?? "no hint")") }
    }
    #expect(error("FUNCTION($entityPolicy, 'x:', $source.name)", .date, hasPolicy: true) == nil)
    #expect(error("FUNCTION($entityPolicy, 'x:', $source.nam)", .date, hasPolicy: true) != nil)
    #expect(error("$source.name", .string, entity: nil)?.message.contains("no source") == true)
    #expect(error("'x'", .string, entity: nil) == nil)
    // A derived attribute is not written, so any expression is accepted.
    let derived = Attribute(name: "n", type: .integer64, derivationExpression: "count:(books)")
    try Self.checker(.attribute).check(ExpressionParser.expression("$source.name"), for: derived)
  }

  @Test func objectsOfRelationshipsAndKeys() throws {
    func error(_ text: String) -> HopdError? {
      do throws(HopdError) {
        try Self.checker(.relationship).check(
          try ExpressionParser.expression(text),
          forRelationship: Relationship(name: "target", destinationEntityName: "Book", isToMany: true))
        return nil
      } catch {
        return error
      }
    }
    let named = "FUNCTION($manager, 'destinationInstancesForEntityMappingNamed:sourceInstances:', "
    let related = "FUNCTION($manager, 'destinationInstancesForSourceRelationshipNamed:sourceInstances:', "
    for text in [
      named + "'BookToBook', $source.books)", named + "'BookToBook', $source.boss)", named + "'BookToBook', nil)",
      "nil",
      related + "'books', $source.books)", related + "'renamed', $source.books)",
      named + "'BookToBook', $source.books.@distinctUnionOfSets.chapters)",
    ] {
      #expect(error(text) == nil, "\(text): \(error(text)?.description ?? "")")
    }
    let refused: [(String, String)] = [
      (named + "'BookToBok', $source.books)", "no entity mapping “BookToBok”"),
      (named + "'BookToBook', $source.name)", "requires objects of the source"),
      ("$source.books", "objects of the source, but target needs"),
      ("$source.name", "target is a relationship"), (named + "'BookToBook', bouks)", "stands alone"),
    ]
    for (text, word) in refused { #expect(error(text)?.message.contains(word) == true, "\(text)") }

    let keys = Self.checker(.key)
    #expect(try keys.checkKey(ExpressionParser.expression("$source.boss.name")) == .string)
    #expect(throws: HopdError.self) { try keys.checkKey(ExpressionParser.expression("$source.books")) }
    #expect(throws: HopdError.self) { try keys.checkKey(ExpressionParser.expression("$source.tags")) }
    #expect(try keys.checkKey(ExpressionParser.expression("name")) == .string)
    #expect(throws: HopdError.self) { try keys.checkKey(ExpressionParser.expression("nam")) }
    #expect(try keys.checkCollection(ExpressionParser.expression("$source.books")) == "Book")
    #expect(throws: HopdError.self) { try keys.checkCollection(ExpressionParser.expression("$source.boss")) }
  }

  /// A pattern is compiled together with its filter, by the matcher that will run it.
  @Test func patterns() throws {
    func error(_ pattern: String) -> HopdError? {
      do throws(HopdError) {
        try Self.checker(.sourceFilter).check(
          .comparison(
            Comparison(.path(.selfObject, [.key("name")]), .matches, .constant(.string(pattern)))))
        return nil
      } catch {
        return error
      }
    }
    for pattern in ["a", "^a.*b$", "[^\\]x-z]+", "(?:a|b){2,5}", "\\d{3}\\s\\w", "\\.\\("] {
      #expect(error(pattern) == nil, "\(pattern): \(error(pattern)?.message ?? "")")
    }
    for pattern in [
      "(?<!a)b", "(?>a)", "a*+", "a?+", "\\d++", "[[:alpha:]]", "\\Qa\\E", "a\\", "(", "[a", "a{99999999999999999999}",
      String(repeating: "(", count: 5_000) + String(repeating: ")", count: 5_000),
    ] {
      #expect(error(pattern)?.message.contains("name MATCHES") == true, "\(pattern)")
    }
  }
}
