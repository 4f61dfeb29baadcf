// Changes that cannot be inferred: each rule with its place, and all of them at once.

import Diagnostics
import ManagedObjectModel
import MappingModel
import Testing

@Suite struct InferenceRefusalTests {
  private func expect(
    _ source: [Entity], _ destination: [Entity], _ place: String, _ words: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let found = reasons(source, destination)
    #expect(
      found.contains { $0.place == place && $0.message.contains(words) }, "\(found)", sourceLocation: sourceLocation)
  }

  /// Expects that the models allow the change and the rows decide.
  private func expectAsked(
    _ source: [Entity], _ destination: [Entity], _ place: String, _ words: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let found = try conditions(source, destination)
    #expect(
      found.contains { $0.place == place && $0.message.contains(words) }, "\(found)", sourceLocation: sourceLocation)
  }

  @Test func toManyToToOne() throws {
    try expectAsked(
      [entity("A", [], [toMany("bs", "B")]), entity("B")], [entity("A", [], [toOne("bs", "B")]), entity("B")], "A.bs",
      "room for one target")
  }

  @Test func anInverseWithRoomForOneOwner() throws {
    // Any number of A may point to one B; the new inverse holds one.
    try expectAsked(
      [entity("A", [], [toOne("b", "B")]), entity("B")],
      [entity("A", [], [toOne("b", "B", inverse: "a")]), entity("B", [], [toOne("a", "A", inverse: "b")])], "A.b",
      "several owners")
    // Without an inverse, a to-many's column in the target holds one owner.
    try expectAsked(
      [entity("A", [], [toOne("b", "B")]), entity("B")], [entity("A", [], [toMany("b", "B")]), entity("B")], "A.b",
      "several owners")
  }

  /// No layout is known for a to-many whose inverse is transient: it continues only without pairs, and begins empty if
  /// the inverse is stored later.
  @Test func aToManyWhoseInverseIsTransient() throws {
    for stored in [toMany("as", "A", inverse: "bs"), toOne("as", "A", inverse: "bs")] {
      var transient = stored
      transient.isTransient = true
      let owner = entity("A", [], [toMany("bs", "B", inverse: "as")])
      let (before, after) = ([owner, entity("B", [], [stored])], [owner, entity("B", [], [transient])])
      try expectAsked(before, after, "A.bs", "its inverse B.as is transient")
      let hop = try inferred(before, after)
      #expect(hop.conditions.allSatisfy { $0.hint.contains("--rename A.bs=") })
      #expect(hop.mapping(toDestination: "A")?.droppedRelationships == ["bs"])
      #expect(hop.mapping(toDestination: "B")?.droppedRelationships == ["as"])
      let back = try inferred(after, before)
      #expect(back.conditions.isEmpty)
      #expect(back.entityMappings.flatMap(\.relationships).allSatisfy { $0.source == nil })
      #expect(back.entityMappings.flatMap(\.droppedRelationships).isEmpty)
      #expect(try inferred(after, after).entityMappings.allSatisfy { $0.kind == .copy })
    }
  }

  /// The pairs are not lost if a to-one keeps them.
  @Test func aTransientInverseOfAToOneAsksForNothing() throws {
    var transient = toMany("as", "A", inverse: "b")
    let before = [entity("A", [], [toOne("b", "B", inverse: "as")]), entity("B", [], [transient])]
    transient.isTransient = true
    let after = [entity("A", [], [toOne("b", "B", inverse: "as")]), entity("B", [], [transient])]
    let hop = try inferred(before, after)
    #expect(hop.conditions.isEmpty && hop.entityMappings.allSatisfy { $0.droppedRelationships.isEmpty })
    // The stored end gives its pairs to the other one.
    let back = try inferred(after, before).mapping(toDestination: "B")?.relationships.first?.source
    #expect(back?.relationship == "b" && back?.isInverted == true)
  }

  @Test func mergedHierarchies() {
    let apart = [entity("A"), entity("B")]
    expect(apart, [entity("P", abstract: true), entity("A", parent: "P"), entity("B", parent: "P")], "P", "merged")
    expect(apart, [entity("A"), entity("B", parent: "A")], "A", "moves into another hierarchy")
    expect(
      [entity("P"), entity("A", parent: "P"), entity("Q"), entity("C", parent: "Q")],
      [entity("P"), entity("Q"), entity("C", parent: "Q"), entity("A", parent: "Q")], "Q", "A below P")
  }

  @Test func destinationsThatDoNotContinue() throws {
    let source = [entity("T"), entity("U"), entity("O", [], [toOne("it", "T")])]
    try expectAsked(
      source, [entity("T"), entity("U"), entity("O", [], [toOne("it", "U")])], "O.it", "changes from T to U")
    // Its objects are dropped, and their references with them: no condition is left.
    #expect(try conditions(source, [entity("U"), entity("O", [], [toOne("it", "U")])]).isEmpty)
    try expectAsked(
      [entity("T"), entity("S", parent: "T"), entity("O", [], [toOne("it", "T")])],
      [entity("T"), entity("S", parent: "T"), entity("O", [], [toOne("it", "S")])], "O.it",
      "objects of T are not below")
    try expectAsked(
      [entity("T"), entity("S", parent: "T"), entity("O", [], [toOne("it", "T")])],
      [entity("T"), entity("S"), entity("O", [], [toOne("it", "T")])], "O.it",
      "in the new version, objects of S are not objects of its destination, T")
  }

  @Test func endsThatWantDifferentPairs() throws {
    // Two pairs of relationships exchange an end.
    try expectAsked(
      [
        entity("A", [], [toOne("x", "B", inverse: "xs"), toOne("y", "B", inverse: "ys")]),
        entity("B", [], [toMany("xs", "A", inverse: "x"), toMany("ys", "A", inverse: "y")]),
      ],
      [
        entity("A", [], [toOne("x", "B", inverse: "ys"), toOne("y", "B", inverse: "xs")]),
        entity("B", [], [toMany("xs", "A", inverse: "y"), toMany("ys", "A", inverse: "x")]),
      ], "A.x", "different pairs")
  }

  /// One end gets a new inverse while its old inverse continues: each keeps its own pairs, and the new inverse gets
  /// them inverted.
  @Test func aRelationshipGetsANewInverseWhileTheOldOneGoesOn() throws {
    let before = [
      entity("A", [], [toOne("x", "B", inverse: "xs")]), entity("B", [], [toMany("xs", "A", inverse: "x")]),
    ]
    let after = [
      entity("A", [], [toOne("x", "B"), toMany("others", "B", inverse: "xs")]),
      entity("B", [], [toMany("xs", "A", inverse: "others")]),
    ]
    #expect(try conditions(before, after).isEmpty)
    let mapping = try inferred(before, after)
    let pairs = mapping.mapping(toDestination: "A")?.relationships
    #expect(pairs?.first { $0.destination == "x" }?.source?.relationship == "x")
    let others = pairs?.first { $0.destination == "others" }?.source
    #expect(others?.entity == "B" && others?.relationship == "xs" && others?.isInverted == true)
  }

  @Test func identifiersThatContradictNames() throws {
    // A becomes B, and a new A appears.
    try expectAsked(
      [entity("A")], [entity("B", id: "A"), entity("A", id: "New")], "A", "say that they are not the same")
    // A swap.
    try expectAsked(
      [entity("E", [attribute("a"), attribute("b")])],
      [entity("E", [attribute("a", id: "b"), attribute("b", id: "a")])], "E.b", "say that they are not the same")
    // An identifier that was forgotten in the next version.
    try expectAsked(
      [entity("E", [attribute("b", id: "a")])], [entity("E", [attribute("b")])], "E.b", "it continues nothing")
    expect(
      [entity("A"), entity("B")], [entity("C", id: "A"), entity("D", id: "A")], "C", "several entities: C, D")
    expect(
      [entity("E", [attribute("a"), attribute("b", id: "a")])], [entity("E", [attribute("a")])], "E.a",
      "several attributes: a, b")
    expect(
      [entity("E", [], [toOne("a", "E"), toOne("b", "E", id: "a")])], [entity("E", [], [toOne("a", "E")])], "E.a",
      "several relationships: a, b")
  }

  @Test func aDecidedNameIsNotAskedAbout() throws {
    let (before, after) = ([entity("E", [attribute("b", id: "a")])], [entity("E", [attribute("b")])])
    func source(_ rules: RenameRules) throws -> String? {
      let mapping = try MappingInference.infer(from: model("V1", before), to: model("V2", after), renames: rules)
      #expect(mapping.conditions.isEmpty == (rules != RenameRules()))
      return mapping.entityMappings.first?.attributes.first?.source
    }
    #expect(try source(RenameRules()) == nil)
    #expect(try source(RenameRules(namesCount: true)) == "b")
    #expect(try source(RenameRules(renames: ["E.b": "b"])) == "b")
    #expect(try source(RenameRules(renames: ["E.b": ""])) == nil)
    // A swap by identifiers, or none by names.
    let (one, two) = (
      [entity("E", [attribute("a"), attribute("b")])],
      [entity("E", [attribute("a", id: "b"), attribute("b", id: "a")])]
    )
    #expect(try conditions(one, two, renames: RenameRules(renames: ["E.a": "b", "E.b": "a"])).isEmpty)
    #expect(try conditions(one, two, renames: RenameRules(namesCount: true)).isEmpty)
    // Entities.
    #expect(
      try conditions([entity("A", id: "X")], [entity("A")], renames: RenameRules(renames: ["A": "A"])).isEmpty)
    // A name that the destination lacks belongs to another hop.
    #expect(try !conditions(before, after, renames: RenameRules(renames: ["E.b": "other"])).isEmpty)
  }

  @Test func theTextsOfRenames() {
    #expect(RenameRules.parse("E.a=b").map { [$0.old, $0.new] } == ["E.a", "b"])
    #expect(RenameRules.parse("A=B").map { [$0.old, $0.new] } == ["A", "B"])
    #expect(RenameRules.parse("E.a=").map { [$0.old, $0.new] } == ["E.a", ""])
    for text in ["", "E.a", "E.a.b=c", ".a=b", "E.=b", "=b", "E.a=F.b"] {
      #expect(RenameRules.parse(text) == nil, "\(text)")
    }
  }

  @Test func valuesThatCannotBeMade() {
    // Planning checks whether derived values can be made, because it knows the layout; here they are added, removed and
    // changed freely.
    let derived = entity("E", [attribute("n", .integer16, derivation: "items.@count")])
    #expect(reasons([entity("E")], [derived]).isEmpty)
    #expect(reasons([derived], [entity("E")]).isEmpty)
    #expect(reasons([entity("E", [attribute("n", .integer64)])], [derived]).isEmpty)
    for (before, after) in [(false, true), (true, false)] {
      expect(
        [entity("E", [attribute("d", .transformable, external: before)])],
        [entity("E", [attribute("d", .transformable, external: after)])], "E.d",
        "external storage is switched \(after ? "on" : "off") for the type Transformable")
      // A binary value is the same wherever its bytes are stored.
      #expect(
        reasons(
          [entity("E", [attribute("d", .binary, external: before)])],
          [entity("E", [attribute("d", .binary, external: after)])]
        ).isEmpty)
    }
    for type in [AttributeType.composite, .undefined, .objectID] {
      expect([entity("E")], [entity("E", [attribute("x", type)])], "E.x", "unknown")
      #expect(reasons([entity("E")], [entity("E", [attribute("x", type, transient: true)])]).isEmpty)
    }
    // A removed entity removes its derived attributes too.
    #expect(
      reasons([entity("E"), entity("Gone", [attribute("n", .integer16, derivation: "now()")])], [entity("E")]).isEmpty)
  }

  @Test func aDefaultThatOnlyTheAppCanStore() {
    let cover = AttributeDefault.archived(className: "App.Cover")
    let optional = attribute("c", .transformable, value: cover)
    let required = attribute("c", .transformable, optional: false, value: cover)
    expect([entity("E")], [entity("E", [optional])], "E.c", "App.Cover")
    expect([entity("E", [optional])], [entity("E", [required])], "E.c", "App.Cover")
    // If every row has its own value, the default is never written.
    #expect(reasons([entity("E", [optional])], [entity("E", [optional])]).isEmpty)
    #expect(reasons([entity("E", [required])], [entity("E", [required])]).isEmpty)
    #expect(reasons([entity("F")], [entity("F"), entity("E", [required])]).isEmpty)
  }

  @Test func anAttributeBecomesARelationship() throws {
    let (before, after) = ([entity("E", [attribute("x")])], [entity("E", [], [toOne("x", "E")])])
    let there = try inferred(before, after).entityMappings.first
    #expect(there?.droppedAttributes == ["x"] && there?.relationships.first?.source == nil)
    let back = try inferred(after, before).entityMappings.first
    #expect(back?.droppedRelationships == ["x"] && back?.attributes.first?.source == nil)
  }

  @Test func allReasonsAreReportedAtOnceAndEachOnce() {
    let source = [
      entity("Base", [attribute("a", .integer16), attribute("b"), attribute("c", .transformable)]),
      entity("Left", parent: "Base"), entity("Right", parent: "Base"),
      entity("Other", [], [toMany("lefts", "Left")]), entity("Alone"),
    ]
    let destination = [
      entity("Base", [attribute("a", .string), attribute("b", .date), attribute("c", .transformable, external: true)]),
      entity("Left", parent: "Base"), entity("Right", parent: "Base"),
      entity("Other", [], [toOne("lefts", "Right")]), entity("Alone", parent: "Base"),
    ]
    let found = reasons(source, destination)
    let places = found.map(\.place).sorted()
    // The inherited attributes are reported once, not once per subentity.
    #expect(places == ["Base", "Base.a", "Base.b", "Base.c"])
  }

  @Test func theErrorNamesTheHopAndWhatToDo() throws {
    let error = #expect(throws: HopdError.self) {
      try inferred([entity("E", [attribute("x", .string)])], [entity("E", [attribute("x", .date)])])
    }
    #expect(error?.code == .notInferable)
    #expect(error?.code.exit == .dataError)
    #expect(error?.place.hop == "V1 → V2")
    #expect(error?.hint != nil)
    #expect(error?.reasons.allSatisfy { $0.hint != nil } == true)
  }
}
