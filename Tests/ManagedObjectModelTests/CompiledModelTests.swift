// Compiled models built by hand: they have the same value as their source, and hostile ones end in an error.

import Diagnostics
import ManagedObjectModel
import PropertyLists
import Testing

@Suite struct CompiledModelTests {
  private func read(_ bytes: [UInt8]) throws -> ManagedObjectModel {
    try ModelReader.read(compiled: bytes, name: "M").model
  }

  private func error(_ bytes: [UInt8]) -> HopdError? { #expect(throws: HopdError.self) { try read(bytes) } }

  /// One attribute alone, as the model has it.
  private func attribute(
    _ type: Int64, _ make: (ArchiveBuilder) -> [String: PropertyListValue], kind: String = "NSAttributeDescription"
  ) throws -> Attribute {
    let builder = ArchiveBuilder()
    let property = builder.property(
      kind, "a", make(builder).merging(["NSAttributeType": .integer(type)]) { old, _ in old })
    let model = try read(builder.model([("E", builder.entity("E", [("a", property)]))]))
    return try #require(model.entity(named: "E")?.attributes.first)
  }

  @Test func sourceAndArchiveAreTheSameValue() throws {
    let source = try ModelReader.read(
      contents: Array(
        """
        <model userDefinedModelVersionIdentifier="7">
        <entity name="Book" isAbstract="YES" versionHashModifier="x"><attribute name="z" attributeType="String"
          optional="YES" minValueString="1" maxValueString="9" regularExpressionString="[a-z]+"/>
        <attribute name="count" attributeType="Integer 64" derived="YES" optional="YES"
          derivationExpression="pages.@count"/>
        <attribute name="price" attributeType="Decimal" defaultValueString="0.0" minValueString="0.50"/>
        <attribute name="born" attributeType="Date" defaultDateTimeInterval="-3.5" minDateTimeInterval="-10"/>
        <attribute name="rate" attributeType="Float" defaultValueString="0.1" maxValueString="0.7"/>
        <relationship name="pages" toMany="YES" ordered="YES" maxCount="9223372036854775807" minCount="1"
          deletionRule="Cascade" destinationEntity="Page" inverseName="book" inverseEntity="Page" optional="YES"/>
        <fetchedProperty name="near"><fetchRequest entity="Page" predicateString="number == $FETCH_SOURCE.z"/>
        <userInfo><entry key="k" value="v"/></userInfo></fetchedProperty>
        <fetchIndex name="byZ"><fetchIndexElement property="z" type="Binary" order="ascending"/></fetchIndex>
        <uniquenessConstraints><uniquenessConstraint><constraint value="z"/><constraint value="price"/>
        </uniquenessConstraint></uniquenessConstraints></entity>
        <entity name="Page" elementID="Sheet"><attribute name="number" attributeType="Integer 16" indexed="YES"
          defaultValueString="3" elementID="n"/>
        <relationship name="book" maxCount="1" deletionRule="Nullify" destinationEntity="Book" inverseName="pages"
          inverseEntity="Book"/></entity>
        <entity name="Novel" parentEntity="Book"><attribute name="cover" attributeType="Binary" optional="YES"
          allowsExternalBinaryDataStorage="YES"/></entity>
        <configuration name="C"><memberEntity name="Page"/><memberEntity name="Book"/></configuration></model>
        """.utf8), name: "M"
    ).model

    let b = ArchiveBuilder()
    let (book, page) = (b.reserve(), b.reserve())
    let own = b.object("NSSelfExpression")
    let decimal: (UInt8, Int64) -> PropertyListValue = { mantissa, exponent in
      b.object(
        "NSDecimalNumberPlaceholder",
        [
          "NS.mantissa": .data([mantissa] + [UInt8](repeating: 0, count: 15)), "NS.mantissa.bo": .integer(1),
          "NS.exponent": .integer(exponent), "NS.negative": .boolean(false),
        ])
    }
    let date: (Double) -> PropertyListValue = { b.object("NSDate", ["NS.time": .real($0)]) }
    let z = b.attribute(
      "z", 700,
      [
        "NSIsOptional": .boolean(true), "NSIsIndexed": .boolean(true),
        "NSValidationPredicates": b.list([
          b.comparison(b.keyPath("length"), 3, b.value(.integer(1))),
          b.comparison(b.keyPath("length"), 1, b.value(.integer(9))), b.comparison(own, 6, b.text("[a-z]+")),
        ]),
      ])
    let price = b.attribute(
      "price", 400,
      [
        "NSDefaultValue": decimal(0, -1),
        "NSValidationPredicates": b.list([b.comparison(own, 3, decimal(50, -2))]),
      ])
    let born = b.attribute(
      "born", 900,
      ["NSDefaultValue": date(-3.5), "NSValidationPredicates": b.list([b.comparison(own, 3, date(-10))])])
    let rate = b.attribute(
      "rate", 600,
      [
        "NSDefaultValue": b.value(.real(Double(Float(0.1)))),
        "NSValidationPredicates": b.list([b.comparison(own, 1, b.value(.real(Double(Float(0.7)))))]),
      ])
    let count = b.property(
      "NSDerivedAttributeDescription", "count",
      [
        "NSAttributeType": .integer(300), "NSIsOptional": .boolean(true), "NSIsReadOnly": .boolean(true),
        "NSDerivationExpression": b.function("count:", [b.keyPath("pages")]),
      ])
    let pages = b.property(
      "NSRelationshipDescription", "pages",
      [
        "_NSDestinationEntityName": b.text("Page"), "_NSInverseRelationshipName": b.text("book"),
        "NSDestinationEntity": page, "NSMaxCount": .integer(-1), "NSMinCount": .integer(1),
        "NSDeleteRule": .integer(2), "NSIsOrdered": .boolean(true), "NSIsOptional": .boolean(true),
      ])
    let near = b.property(
      "NSFetchedPropertyDescription", "near",
      [
        "_NSFetchRequestEntityName": b.text("Page"), "NSUserInfo": b.map([("k", b.text("v"))]),
        "NSFetchRequest": b.object(
          "NSFetchRequest",
          [
            "NSPredicate": b.object(
              "NSComparisonPredicate",
              [
                "NSLeftExpression": b.keyPath("number"),
                "NSRightExpression": b.keyPath(
                  "z", of: b.object("NSVariableExpression", ["NSVariable": b.text("FETCH_SOURCE")])),
                "NSPredicateOperator": b.object("NSEqualityPredicateOperator", ["NSOperatorType": .integer(4)]),
              ])
          ]),
      ])
    let index = b.object(
      "NSFetchIndexDescription",
      [
        "NSIndexName": b.text("byZ"),
        "NSIndexElements": b.list([
          b.object(
            "NSFetchIndexElementDescription",
            ["NSPropertyName": b.text("z"), "NSAscending": .boolean(true), "NSFetchIndexElementType": .integer(0)])
        ]),
      ])
    let proxy = b.object("_NSPropertyDescriptionProxy", ["NSUnderlyingProperty": price])
    b.object(
      "NSEntityDescription",
      [
        "NSEntityName": b.text("Book"), "NSIsAbstract": .boolean(true), "NSVersionHashModifier": b.text("x"),
        "NSProperties": b.map([
          ("z", z), ("price", price), ("born", born), ("rate", rate), ("pages", pages), ("near", near),
          ("count", count),
        ]),
        "NSFetchIndexDescriptions": b.list([index]), "NSUniqueTuples": b.list([b.list([b.text("z"), proxy])]),
      ], at: book)
    // The destination only by reference; the inverse, too.
    let number = b.attribute(
      "number", 100,
      [
        "NSIsIndexed": .boolean(true), "NSDefaultValue": b.value(.integer(3)), "NSRenamingIdentifier": b.text("n"),
      ])
    let back = b.property(
      "NSRelationshipDescription", "book",
      [
        "NSDestinationEntity": book, "NSInverseRelationship": pages, "NSMaxCount": .integer(1),
        "NSDeleteRule": .integer(1),
      ])
    _ = b.entity(
      "Page", [("number", number), ("book", back)],
      ["NSRenamingIdentifier": b.object("NSMutableString", ["NS.string": .string("Sheet")])], at: page)
    // A model built in code repeats the parent's declarations.
    let copy = b.attribute(
      "born", 900,
      ["NSDefaultValue": date(-3.5), "NSValidationPredicates": b.list([b.comparison(own, 3, date(-10))])])
    let novel = b.entity(
      "Novel",
      [
        ("cover", b.attribute("cover", 1000, ["NSFlagsKey": .integer(4), "NSIsOptional": .boolean(true)])),
        ("born", copy), ("pages", pages),
      ], ["NSSuperentity": book])
    let bytes = b.model(
      [("Book", book), ("Novel", novel), ("Page", page)],
      [
        "NSVersionIdentifiers": b.list([b.text("7")], "NSSet"),
        "NSConfigurations": b.map([("C", b.list([page, book], "NSSet"))]),
      ])
    let compiled = try read(bytes)
    for (one, other) in zip(compiled.entities, source.entities) { #expect(one == other) }
    #expect(compiled == source)
    #expect(compiled.versionHashes == source.versionHashes)
    #expect(compiled.compiledForm == bytes && source.compiledForm == nil)
    #expect(source.entity(named: "Book")?.relationships.first?.maxCount == 4_294_967_295)
  }

  @Test func entitiesOfAModelCache() throws {
    let b = ArchiveBuilder()
    let entity = b.entity("E", [("a", b.attribute("a", 700))])
    let strategy = b.object("NSKnownKeysMappingStrategy1", ["keys": b.list([b.text("E")]), "length": .integer(1)])
    let entities = b.object(
      "NSKnownKeysDictionary1",
      ["values": b.list([entity]), "searchMapping": strategy, "emptyToken": b.text("__empty")])
    #expect(try read(b.model([], ["NSEntities": entities])).entities.map(\.name) == ["E"])
  }

  @Test func defaultsOfEveryType() throws {
    func value(_ type: Int64, _ make: (ArchiveBuilder) -> PropertyListValue) throws -> AttributeDefault? {
      try attribute(type) { ["NSDefaultValue": make($0)] }.defaultValue
    }
    #expect(try value(300) { $0.value(.integer(.max)) } == .integer(.max))
    #expect(try value(100) { $0.value(.boolean(true)) } == .integer(1))
    #expect(try value(800) { $0.value(.integer(1)) } == .boolean(true))
    #expect(try value(500) { $0.value(.integer(2)) } == .double(2))
    #expect(try value(700) { $0.text("") } == .string(""))
    #expect(try value(1000) { $0.value(.data([1])) } == .binary([1]))
    #expect(try value(1100) { $0.object("NSUUID", ["NS.uuidbytes": .data([UInt8](0..<16))]) } == .uuid([UInt8](0..<16)))
    #expect(
      try value(1200) { $0.object("NSURL", ["NS.base": .uid(0), "NS.relative": $0.text("http://a")]) }
        == .string("http://a"))
    #expect(try value(400) { $0.value(.integer(12)) } == .decimal("12"))
    #expect(try value(1800) { $0.object("App.Cover", ["text": $0.text("x")]) } == .archived(className: "App.Cover"))
    #expect(try value(700) { _ in .uid(0) } == nil)
    // A value that does not fit its type is reported, never guessed.
    #expect(try value(700) { $0.value(.integer(1)) } == .archived(className: "an integer"))
    #expect(
      try attribute(1000) { ["NSDefaultValue": $0.value(.data([1])), "NSFlagsKey": .integer(4)] }.defaultValue
        == .archived(className: "bytes"))
  }

  @Test func validationThatIsNoBoundIsKept() throws {
    let found = try attribute(700) { b in
      let length = b.keyPath("length")
      let range = b.object(
        "NSCompoundPredicate",
        [
          "NSCompoundPredicateType": .integer(1),
          "NSSubpredicates": b.list([
            b.comparison(length, 3, b.value(.integer(3))), b.comparison(length, 1, b.value(.integer(50))),
          ]),
        ])
      let contains = b.comparison(b.object("NSSelfExpression"), 99, b.text("title"))
      return ["NSValidationPredicates": b.list([range, contains, b.object("NSBlockPredicate")])]
    }
    #expect(found.minimum == "3" && found.maximum == "50")
    #expect(found.otherValidations == ["SELF CONTAINS \"title\"", "<NSBlockPredicate>"])
  }

  @Test func derivationsPrintAsNSExpressionDoes() throws {
    let cases: [(String, (ArchiveBuilder) -> PropertyListValue)] = [
      ("now()", { $0.function("now", []) }), ("canonical:(name)", { $0.function("canonical:", [$0.keyPath("name")]) }),
      ("sum:(pages.size)", { $0.function("sum:", [$0.keyPath("pages.size")]) }),
      ("parent.name", { $0.keyPath("parent.name") }), ("count:(pages)", { $0.keyPath("pages.@count") }),
    ]
    for (text, make) in cases {
      let found = try attribute(
        700, { ["NSDerivationExpression": make($0)] }, kind: "NSDerivedAttributeDescription")
      #expect(found.derivationExpression == text)
    }
  }

  /// Photos indexes the object itself and its entity; whatever else an index holds, the model is read.
  @Test func elementsOfIndexesThatAreExpressions() throws {
    let b = ArchiveBuilder()
    let own = b.object("NSSelfExpression", ["NSExpressionType": .integer(1)])
    func element(_ name: String, _ expression: PropertyListValue?, kind: Int64 = 0) -> PropertyListValue {
      var fields: [String: PropertyListValue] = [
        "NSPropertyName": b.text(name), "NSAscending": .boolean(true), "NSFetchIndexElementType": .integer(kind),
      ]
      if let expression {
        fields["NSIndexedProperty"] = b.object("NSExpressionDescription", ["NSExpression": expression])
      }
      return b.object("NSFetchIndexElementDescription", fields)
    }
    func index(_ name: String, _ elements: [PropertyListValue], _ predicate: PropertyListValue? = nil)
      -> PropertyListValue
    {
      var fields = ["NSIndexName": b.text(name), "NSIndexElements": b.list(elements)]
      if let predicate { fields["NSPartialIndexPredicate"] = predicate }
      return b.object("NSFetchIndexDescription", fields)
    }
    let circle = b.reserve()
    b.object(
      "NSCompoundPredicate",
      ["NSCompoundPredicateType": .integer(1), "NSSubpredicates": b.list([circle, circle])], at: circle)
    let model = try read(
      b.model([
        (
          "E",
          b.entity(
            "E", [("a", b.attribute("a", 700))],
            [
              "NSFetchIndexDescriptions": b.list([
                index(
                  "own", [element("a", nil), element("expression1", own), element("expression2", b.keyPath("entity"))]),
                index("odd", [element("expression3", nil), element("a", nil, kind: 7), b.text("a")]),
                index("partial", [element("a", nil)], circle), b.text("no index"),
              ]),
              "NSCompoundIndexes": b.list([
                b.list([b.text("a"), b.text("self"), b.text("entity")]), b.list([b.value(.integer(3))]),
              ]),
            ])
        )
      ]))
    let entity = try #require(model.entity(named: "E"))
    #expect(entity.fetchIndexes.map(\.name) == ["own", "odd", "partial", "?"])
    #expect(entity.fetchIndexes[0].elements.map(\.expression) == [nil, "self", "entity"])
    #expect(entity.fetchIndexes[0].elements.map(\.propertyName) == ["a", nil, nil])
    #expect(entity.fetchIndexes[1].elements.map(\.expression) == ["expression3", nil, "archived"])
    #expect(entity.fetchIndexes[1].elements.map(\.kind) == [.binary, .unknown, .unknown])
    #expect(entity.fetchIndexes[2].partialPredicate == "?")
    // The compound index repeats the first of them.
    #expect(entity.compoundIndexes == [["?"]])
  }

  @Test func whatIsNotKnownIsRefusedByName() throws {
    func entity(_ make: (ArchiveBuilder) -> PropertyListValue) -> HopdError? {
      let b = ArchiveBuilder()
      return error(b.model([("E", b.entity("E", [("p", make(b))]))]))
    }
    let found: [(HopdError?, String)] = [
      (entity { $0.property("NSCompositeAttributeDescription", "p", [:]) }, "composite"),
      (entity { $0.property("NSExpressionDescription", "p", [:]) }, "NSExpressionDescription"),
      (entity { $0.attribute("p", 4711) }, "4711"),
      (entity { $0.property("NSDerivedAttributeDescription", "p", ["NSAttributeType": .integer(700)]) }, "expression"),
      (
        entity {
          $0.property(
            "NSDerivedAttributeDescription", "p",
            [
              "NSAttributeType": .integer(700), "NSDerivationExpression": $0.keyPath("a"),
              "NSFilteringPredicate": $0.object("NSTruePredicate"),
            ])
        }, "filtering"
      ), (entity { $0.property("NSRelationshipDescription", "p", ["NSDeleteRule": .integer(9)]) }, "9"),
    ]
    for (error, word) in found {
      #expect(error?.place.entity == "E" && error?.place.property == "p", "\(word): \(error?.description ?? "read")")
      #expect(error?.description.contains(word) == true && error?.hint != nil, "\(error?.description ?? "read")")
    }
    let b = ArchiveBuilder()
    #expect(error(b.bytes(root: b.object("NSMappingModel")))?.message.contains("NSMappingModel") == true)
    #expect(error(b.model([("E", b.text("no entity"))]))?.code == .damagedArchive)
    #expect(error(b.model([]))?.description.contains("no entities") == true)
  }

  @Test func circlesOfReferencesEnd() throws {
    // Its own parent, its own inverse, a predicate inside itself, a proxy of itself.
    let b = ArchiveBuilder()
    let own = b.reserve()
    _ = b.entity("E", [("a", b.attribute("a", 700))], ["NSSuperentity": own], at: own)
    #expect(error(b.model([("E", own)]))?.description.contains("circle") == true)

    let c = ArchiveBuilder()
    let predicate = c.reserve()
    c.object(
      "NSCompoundPredicate",
      ["NSCompoundPredicateType": .integer(1), "NSSubpredicates": c.list([predicate, predicate])], at: predicate)
    let validated = c.attribute("a", 700, ["NSValidationPredicates": c.list([predicate])])
    #expect(error(c.model([("E", c.entity("E", [("a", validated)]))]))?.code == .damagedArchive)

    let d = ArchiveBuilder()
    let expression = d.reserve()
    d.object(
      "NSFunctionExpression",
      ["NSSelectorName": d.text("f:"), "NSArguments": d.list([expression, expression, expression])], at: expression)
    let derived = d.property(
      "NSDerivedAttributeDescription", "a",
      ["NSAttributeType": .integer(700), "NSDerivationExpression": expression])
    #expect(error(d.model([("E", d.entity("E", [("a", derived)]))]))?.code == .damagedArchive)

    let e = ArchiveBuilder()
    let proxy = e.reserve()
    e.object("_NSPropertyDescriptionProxy", ["NSUnderlyingProperty": proxy], at: proxy)
    #expect(error(e.model([("E", e.entity("E", [("a", proxy)]))])) != nil)
  }

  @Test func sharedCollectionsDoNotMultiply() throws {
    // 3,000 entities that all hold the same dictionary of 1,000 properties.
    let b = ArchiveBuilder()
    let attribute = b.attribute("a", 700)
    let properties = b.map((0..<1_000).map { ("p\($0)", attribute) })
    let entities = (0..<3_000).map { number in
      ("E\(number)", b.entity("E\(number)", [], ["NSProperties": properties]))
    }
    #expect(error(b.model(entities))?.code == .modelTooLarge)
    // And the same list of indexes.
    let c = ArchiveBuilder()
    let index = c.list([c.text("a")])
    let indexes = c.list([PropertyListValue](repeating: index, count: 20_000))
    let many = (0..<100).map { number in
      ("E\(number)", c.entity("E\(number)", [("a", c.attribute("a", 700))], ["NSCompoundIndexes": indexes]))
    }
    #expect(error(c.model(many))?.code == .modelTooLarge)
  }

  @Test func everyDamagedByteReadsOrThrows() throws {
    let b = ArchiveBuilder()
    let range = b.comparison(b.keyPath("length"), 3, b.value(.integer(3)))
    let bytes = b.model([
      ("E", b.entity("E", [("a", b.attribute("a", 700, ["NSValidationPredicates": b.list([range])]))]))
    ])
    #expect(try read(bytes).entities.count == 1)
    var outcomes = 0
    for position in bytes.indices {
      for value in [UInt8(0), 0x7f, 0xff, bytes[position] ^ 1] {
        var damaged = bytes
        damaged[position] = value
        _ = try? read(damaged)
        outcomes += 1
      }
      _ = try? read(Array(bytes[..<position]))
    }
    #expect(outcomes == bytes.count * 4)
  }
}
