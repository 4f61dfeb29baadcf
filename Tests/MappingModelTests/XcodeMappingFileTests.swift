// The source form of mapping models: its pitfalls for a reader, and how its gaps are filled.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PropertyLists
import Testing

/// Two versions that differ in everything that the rules use.
private let before = model(
  "V1",
  [
    entity("Base", abstract: true, [attribute("id", .integer32)]),
    entity(
      "Animal", parent: "Base", [attribute("name"), attribute("legs", .integer16)],
      [toOne("keeper", "Keeper", inverse: "animals")]),
    entity("Bird", parent: "Animal", [attribute("wings", .integer16), attribute("song", transient: true)]),
    entity("Keeper", [attribute("name")], [toMany("animals", "Animal", inverse: "keeper"), toOne("badge", "Badge")]),
    entity("Badge", [attribute("number", .integer32)]),
  ])
private let after = model(
  "V2",
  [
    entity("Base", abstract: true, [attribute("id", .integer32)]),
    entity(
      "Animal", parent: "Base", [attribute("name"), attribute("legs", .integer16), attribute("colour")],
      [toOne("keeper", "Keeper", inverse: "animals")]),
    entity("Bird", parent: "Animal", [attribute("wings", .integer32), attribute("song")]),
    entity(
      "Keeper", [attribute("name")],
      [toMany("animals", "Animal", inverse: "keeper"), toOne("badge", "Badge"), toOne("boss", "Keeper")]),
    entity("Badge", [attribute("number", .integer32)]),
    entity("Fresh", [attribute("a")]),
  ])

private func loaded(_ bytes: [UInt8]) throws -> LoadedMapping {
  try sourceFile(bytes).load(source: before, destination: after)
}

/// Returns properties as "name = text", "name = -" without expression.
private func texts(_ properties: [ExplicitPropertyMapping]) -> [String] {
  properties.map { "\($0.name) = \($0.value?.description ?? "-")" }
}

private let manager = "FUNCTION($manager, \"destinationInstancesFor"

@Suite struct XcodeMappingFileTests {
  @Test func numbersDecideTheOrder() throws {
    let result = try loaded(
      xml(
        entityMapping("a", 3, "Keeper", "Keeper") + entityMapping("b", 10, "Bird", "Bird")
          + entityMapping("c", 2, "Animal", "Animal"), list: "b a c"))
    #expect(result.mapping.entityMappings.map(\.name) == ["AnimalToAnimal", "KeeperToKeeper", "BirdToBird"])
    #expect(result.warnings.isEmpty)
  }

  @Test func namesAreTheAuthorsOrTheEntities() throws {
    let result = try loaded(
      xml(
        entityMapping("a", 1, "Animal", "Animal", [("name", "Zoo &amp; more")]) + entityMapping("b", 2, nil, "Fresh")
          + entityMapping("c", 3, "Badge", nil) + entityMapping("d", 4, "Keeper", "Fresh"), list: "a b c d"))
    #expect(result.mapping.entityMappings.map(\.name) == ["Zoo & more", "Fresh", "Badge", "KeeperToFresh"])
    #expect(result.mapping.entityMappings.map(\.type) == [.copy, .add, .remove, .transform])
  }

  @Test func whatIsBrokenIsLeftOutWithARemark() throws {
    let result = try loaded(
      xml(
        entityMapping("a", 1, "Animal", "Animal", attributes: "x1 x2 x3 x1 gone", relationships: "x1")
          + entityMapping("b", 2, nil, nil) + entityMapping("lost", 3, "Keeper", "Keeper")
          + object("ATTRIBUTEMAPPING", "x1", [("name", "legs")]) + object("ATTRIBUTEMAPPING", "x2")
          + object("ATTRIBUTEMAPPING", "x3", [("name", "legs")]) + object("SOMETHINGELSE", "y"),
        list: "a b a nothing x1"))
    let only = try #require(result.mapping.entityMappings.first)
    #expect(result.mapping.entityMappings.count == 1)
    #expect(texts(only.attributes) == ["legs = $source.legs"])
    #expect(only.relationships.isEmpty)
    let messages = result.warnings.map(\.message)
    for part in ["“KeeperToKeeper” is not listed", "neither source nor destination", "has no name", "“legs” twice"] {
      #expect(messages.contains { $0.contains(part) }, "\(part) in \(messages)")
    }
    // "gone", "x1" as relationship, "nothing", "x1" as entity mapping.
    #expect(messages.filter { $0.contains("refers to an object") }.count == 4)
    #expect(result.warnings.allSatisfy { $0.code == .mappingRemark && $0.place.line != nil })
  }

  @Test func escapesHaveTheirBytesSwapped() throws {
    let result = try loaded(
      xml(
        entityMapping(
          "a", 1, "Animal", "Animal",
          [
            (
              "sourcefilterpredicatestring",
              #"legs \u3e001 \u2600\u2600 name != "a\\.b" \u2600\u2600 name != "\u3dd8\u00de""#
            ),
            ("name", #"C:\users \u003"#),
          ]), list: "a"))
    let mapping = try #require(result.mapping.entityMappings.first)
    #expect(mapping.filter?.text == #"legs >1 && name != "a\\.b" && name != "😀""#)
    #expect(mapping.name == #"C:\users \u003"#)
  }

  @Test(arguments: ["", " ", "TRUEPREDICATE", "truepredicate "])
  func filtersThatTakeAllAreNone(text: String) throws {
    let result = try loaded(
      xml(entityMapping("a", 1, "Animal", "Animal", [("sourcefilterpredicatestring", text)]), list: "a"))
    #expect(result.mapping.entityMappings.first?.filter == nil)
  }

  @Test func policiesAreNamesOrNothing() throws {
    let result = try loaded(
      xml(
        entityMapping("a", 1, "Animal", "Animal", [("migrationpolicyclassname", "")])
          + entityMapping("b", 2, "Bird", "Bird", [("migrationpolicyclassname", "App.BirdPolicy")])
          + entityMapping("c", 3, nil, "Fresh", [("migrationpolicyclassname", "FreshPolicy")]), list: "a b c"))
    #expect(result.mapping.entityMappings.map(\.policy) == [nil, "App.BirdPolicy", "FreshPolicy"])
    #expect(result.mapping.entityMappings.map(\.type) == [.copy, .custom, .custom])
  }

  @Test func userInfoIsPlainValues() throws {
    let info = Archived.dictionary([
      ("modelVersion", .text("2")), ("count", .bare(.integer(3))), ("on", .bare(.boolean(true))),
      ("list", .list([.text("a"), .null, .text("b")])), ("inner", .dictionary([("x", .bare(.real(1.5)))])),
      ("odd", .object(["NSRegularExpression"], [])),
    ])
    let result = try loaded(xml(entityMapping("a", 1, "Animal", "Animal", [("userinfodata", base64(info))]), list: "a"))
    #expect(
      result.mapping.entityMappings.first?.userInfo == [
        "modelVersion": .string("2"), "count": .integer(3), "on": .boolean(true),
        "list": .array([.string("a"), .string("b")]), "inner": .dictionary(["x": .real(1.5)]),
      ])
    #expect(result.warnings.map(\.message).contains { $0.contains("NSRegularExpression") })
  }

  // MARK: Generated expressions (docs/formats/mapping-models.md, "Compiling a source")

  @Test func attributesTakeTheirNamesakes() throws {
    let result = try loaded(
      xml(
        entityMapping("a", 1, "Bird", "Bird", attributes: "x1 x2 x3 x4 x5 x6")
          // Transient in the old version: no store has a value for it.
          + object("ATTRIBUTEMAPPING", "x6", [("name", "song")])
          + object("ATTRIBUTEMAPPING", "x1", [("name", "wings")]) + object("ATTRIBUTEMAPPING", "x2", [("name", "id")])
          + object("ATTRIBUTEMAPPING", "x3", [("name", "colour")])
          + object("ATTRIBUTEMAPPING", "x4", [("name", "keeper")])
          + object(
            "ATTRIBUTEMAPPING", "x5",
            [("name", "legs"), ("valueexpressiondata", base64(.path(.variable("source"), "keeper.badge.number")))]),
        list: "a"))
    // Sorted by name; a relationship's name is not an attribute.
    #expect(
      texts(result.mapping.entityMappings[0].attributes) == [
        "colour = -", "id = $source.id", "keeper = -", "legs = $source.keeper.badge.number", "song = -",
        "wings = $source.wings",
      ])
  }

  @Test func relationshipsFollowTheRules() throws {
    let archived = Archived.call(
      .variable("manager"), "destinationInstancesForEntityMappingNamed:sourceInstances:",
      [.constant("BirdToBird"), .path(.variable("source"), "animals")])
    let result = try loaded(
      xml(
        entityMapping("a", 1, "Animal", "Animal", relationships: "r1")
          + entityMapping("b", 2, "Keeper", "Keeper", relationships: "r2 r3 r4 r5")
          + entityMapping("c", 3, "Badge", "Badge") + entityMapping("d", 4, "Bird", "Bird", relationships: "r6 r7 r8")
          + object("RELATIONSHIPMAPPING", "r1", [("name", "keeper"), ("autogenerateexpression", "1")])
          + object("RELATIONSHIPMAPPING", "r2", [("name", "animals"), ("autogenerateexpression", "1")])
          + object("RELATIONSHIPMAPPING", "r3", [("name", "badge")])
          + object("RELATIONSHIPMAPPING", "r4", [("name", "boss"), ("autogenerateexpression", "1")])
          + object(
            "RELATIONSHIPMAPPING", "r5",
            [("name", "friends"), ("autogenerateexpression", "1"), ("valueexpressiondata", base64(archived))])
          + object(
            "RELATIONSHIPMAPPING", "r6",
            [("name", "keeper"), ("sourcemappingname", "KeeperToKeeper"), ("sourcekeypath", "$source.keeper.boss")])
          + object("RELATIONSHIPMAPPING", "r7", [("name", "other"), ("sourcemappingname", "BadgeToBadge")])
          + object("RELATIONSHIPMAPPING", "r8", [("name", "none"), ("autogenerateexpression", "0")]),
        list: "a b c d"))
    let lists = result.mapping.entityMappings.map { texts($0.relationships) }
    #expect(
      lists[0] == [#"keeper = \#(manager)EntityMappingNamed:sourceInstances:", "KeeperToKeeper", $source.keeper)"#])
    #expect(
      lists[1] == [
        // Animal has a subentity: each object's own entity decides.
        #"animals = \#(manager)SourceRelationshipNamed:sourceInstances:", "animals", $source.animals)"#,
        #"badge = \#(manager)EntityMappingNamed:sourceInstances:", "BadgeToBadge", $source.badge)"#,
        "boss = -",
        #"friends = \#(manager)EntityMappingNamed:sourceInstances:", "BirdToBird", $source.animals)"#,
      ])
    #expect(
      lists[3] == [
        #"keeper = \#(manager)EntityMappingNamed:sourceInstances:", "KeeperToKeeper", $source.keeper.boss)"#,
        "none = -",
        #"other = \#(manager)EntityMappingNamed:sourceInstances:", "BadgeToBadge", $source.other)"#,
      ])
  }

  @Test func twoMappingsOfOneSourceAreFoundByTheObjects() throws {
    let result = try loaded(
      xml(
        entityMapping("a", 1, "Keeper", "Keeper", relationships: "r1")
          + entityMapping("b", 2, "Badge", "Badge") + entityMapping("c", 3, "Badge", "Fresh")
          + object("RELATIONSHIPMAPPING", "r1", [("name", "badge"), ("autogenerateexpression", "1")]), list: "a b c"))
    #expect(
      texts(result.mapping.entityMappings[0].relationships) == [
        #"badge = \#(manager)SourceRelationshipNamed:sourceInstances:", "badge", $source.badge)"#
      ])
  }

  @Test func typesFollowWhatSurvives() throws {
    func type(_ old: [Entity], _ new: [Entity]) throws -> EntityMappingType {
      let file = try sourceFile(xml(entityMapping("a", 1, "A", "A"), list: "a"))
      return try file.load(source: model("V1", old), destination: model("V2", new)).mapping.entityMappings[0].type
    }
    let a = entity("A", [attribute("x")], [toOne("r", "B")])
    let b = entity("B")
    #expect(try type([a, b], [a, b]) == .copy)
    #expect(try type([a, b], [entity("A", [attribute("x"), attribute("y")], [toOne("r", "B")]), b]) == .copy)
    for changed in [
      entity("A", [attribute("y", id: "x")], [toOne("r", "B")]),
      entity("A", [attribute("x", .integer16)], [toOne("r", "B")]),
      entity("A", [attribute("x", optional: false)], [toOne("r", "B")]),
      entity("A", [attribute("x")], [toOne("r", "A")]), entity("A", [attribute("x")], [toMany("r", "B")]),
      entity("A", parent: "B", [attribute("x")], [toOne("r", "B")]),
    ] {
      #expect(try type([a, b], [changed, b]) == .transform, "\(changed)")
    }
  }

  // MARK: Source expressions

  @Test func onlyThePlainFetchIsFollowed() throws {
    func outcome(_ archive: Archived, generated: String) throws -> LoadedMapping {
      try loaded(
        xml(
          entityMapping(
            "a", 1, "Animal", "Animal",
            [("autogenerateexpression", generated), ("sourceexpressiondata", base64(archive))]), list: "a"))
    }
    // One author left a constant there, which Core Data never used.
    #expect(try outcome(.constant("MyPolicy"), generated: "1").mapping.entityMappings[0].filter == nil)
    let filtered = try outcome(.fetch("Animal", "legs > 2"), generated: "0")
    #expect(filtered.mapping.entityMappings[0].filter?.text == "legs > 2")
    #expect(throws: HopdError.self) { try outcome(.constant("MyPolicy"), generated: "0") }
    do {
      _ = try outcome(.constant("MyPolicy"), generated: "0")
    } catch let error as HopdError {
      #expect(error.message.contains("NSConstantValueExpression"))
      #expect(error.place.entity == "Animal")
      #expect(error.hint?.contains("Auto Generate") == true)
    }
    #expect(throws: HopdError.self) { try outcome(.fetch("Bird"), generated: "0") }
  }

  // MARK: Hostile files

  @Test func problemsNameEntityAndProperty() throws {
    let file = try sourceFile(
      xml(
        entityMapping("a", 1, "Animal", "Animal", attributes: "x1 x2")
          + object("ATTRIBUTEMAPPING", "x1", [("name", "legs"), ("valueexpressiondata", "not base64!")])
          + object(
            "ATTRIBUTEMAPPING", "x2",
            [("name", "name"), ("valueexpressiondata", base64(.object(["NSBlockExpression", "NSExpression"], [])))]),
        list: "a"))
    let error = #expect(throws: HopdError.self) { try file.load(source: before, destination: after) }
    #expect(error?.code == .invalidMapping)
    #expect(error?.reasons.map(\.place.property) == ["legs", "name"])
    #expect(error?.reasons.last?.description.contains("NSBlockExpression") == true)
  }

  @Test(arguments: [
    "<model/>", "<database></database>", "<database><object type='XDDEVMAPPINGMODEL' id='a'/></database>",
    "<database><object type='XDDEVENTITYMAPPING' id='a'/><object type='XDDEVENTITYMAPPING' id='a'/></database>",
    "<database", "",
  ])
  func whatIsNoMappingModelIsRefused(text: String) {
    let error = #expect(throws: HopdError.self) { try sourceFile(Array(text.utf8)) }
    #expect(error?.code.exit == .dataError)
  }

  @Test func twoMappingModelsAreRefused() {
    let bytes = xml(
      object(
        "MAPPINGMODEL", "z3",
        [
          ("sourcemodelpath", "a.xcdatamodeld/V1.xcdatamodel"),
          ("destinationmodelpath", "a.xcdatamodeld/V2.xcdatamodel"),
        ]),
      list: "")
    let error = #expect(throws: HopdError.self) { try sourceFile(bytes) }
    #expect(error?.message.contains("2 mapping models") == true)
  }

  @Test func archivesWithoutEndAreRefusedQuickly() throws {
    // A list that contains itself as user info, made by hand: its references are circular.
    let circle = PropertyList.encodeBinary(
      .dictionary([
        "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000),
        "$top": .dictionary(["root": .uid(1)]),
        "$objects": .array([
          .string("$null"),
          .dictionary([
            "$class": .uid(2), "NS.keys": .array([.uid(3), .uid(4)]), "NS.objects": .array([.uid(1), .uid(1)]),
          ]),
          .dictionary(["$classname": .string("NSDictionary"), "$classes": .array([.string("NSDictionary")])]),
          .string("k"), .string("l"),
        ]),
      ]))
    let file = try sourceFile(
      xml(entityMapping("a", 1, "Animal", "Animal", [("userinfodata", Base64.encode(circle))]), list: "a"))
    let error = #expect(throws: HopdError.self) { try file.load(source: before, destination: after) }
    #expect(error?.message.contains("user info") == true)
  }
}
