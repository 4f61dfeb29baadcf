// Corners of the layout that ordinary models do not reach.

import BlockingTests
import Diagnostics
import Testing

@testable import ManagedObjectModel
@testable import PersistentStore

@Suite(.blocking) struct LayoutCornerTests {
  private func schema(_ entities: [Entity], observed: ObservedLayout = ObservedLayout()) -> StoreSchema {
    StoreSchema(
      model: ManagedObjectModel(name: "V1", entities: entities), frameworkVersion: 1344, observed: observed)
  }

  private func text(_ name: String) -> Attribute { Attribute(name: name, type: .string, isOptional: true) }

  private func columns(_ schema: StoreSchema, of entity: String) -> [String] {
    (schema.table(of: entity)?.columns ?? []).map(\.name)
  }

  /// Later entities get the numbers, and a number that a name already has is not used twice.
  @Test func columnNamesThatClashOverInheritance() {
    let schema = schema([
      Entity(name: "Message", attributes: [text("sender"), text("pk"), text("_pk")]),
      Entity(name: "Text", parentName: "Message", attributes: [text("body"), text("text1")]),
      Entity(name: "Voice", parentName: "Message", attributes: [text("Body"), text("text"), text("TEXT")]),
    ])
    #expect(schema.unsupported.isEmpty)
    #expect(schema.column(ofAttribute: "_pk", in: "Message") == "Z_PK1")
    #expect(schema.column(ofAttribute: "body", in: "Text") == "ZBODY")
    #expect(schema.column(ofAttribute: "Body", in: "Voice") == "ZBODY1")
    #expect(schema.column(ofAttribute: "text1", in: "Text") == "ZTEXT1")
    #expect(schema.column(ofAttribute: "TEXT", in: "Voice") == "ZTEXT")
    #expect(schema.column(ofAttribute: "text", in: "Voice") == "ZTEXT2")
    #expect(Set(columns(schema, of: "Message")).count == columns(schema, of: "Message").count)
  }

  @Test func entitiesThatDifferOnlyInCaseShareNoTable() {
    let schema = schema([Entity(name: "Note"), Entity(name: "NOTE")])
    #expect(schema.unsupported.map(\.code) == [.layoutUnsupported])
    #expect(schema.numbers == ["NOTE": 1, "Note": 2])
    // Below one root they share a table anyway.
    let below = self.schema([
      Entity(name: "A"), Entity(name: "Note", parentName: "A"), Entity(name: "NOTE", parentName: "A"),
    ])
    #expect(below.unsupported.isEmpty)
  }

  @Test(arguments: ["_PRIMARYKEY", "_metadata", "_ModelCache"])
  func anEntityCannotHaveATableOfCoreDatas(_ name: String) {
    let schema = schema([Entity(name: "A"), Entity(name: name)])
    #expect(schema.unsupported.map(\.code) == [.layoutUnsupported])
    #expect(schema.unsupported.first?.place.entity == name)
    // Below another entity it has no table of its own.
    #expect(self.schema([Entity(name: "A"), Entity(name: name, parentName: "A")]).unsupported.isEmpty)
  }

  @Test func everyToOneHasItsOwnDiscriminator() {
    let schema = schema([
      Entity(
        name: "Owner",
        relationships: [
          Relationship(name: "pet", destinationEntityName: "Animal"),
          Relationship(name: "car", destinationEntityName: "Vehicle"),
          Relationship(name: "stone", destinationEntityName: "Stone"),
        ]),
      Entity(name: "Animal"), Entity(name: "Cat", parentName: "Animal"), Entity(name: "Stone"),
      Entity(name: "Vehicle"), Entity(name: "Bike", parentName: "Vehicle"),
    ])
    #expect(
      columns(schema, of: "Owner") == [
        "Z_PK", "Z_ENT", "Z_OPT", "ZCAR", "Z5_CAR", "ZPET", "Z1_PET", "ZSTONE",
      ])
  }

  @Test func orderedInBothDirections() {
    let schema = schema([
      Entity(
        name: "A",
        relationships: [
          Relationship(name: "bs", destinationEntityName: "B", inverseName: "a", isToMany: true, isOrdered: true),
          Relationship(name: "b", destinationEntityName: "B", inverseName: "as"),
        ]),
      Entity(
        name: "B",
        relationships: [
          Relationship(name: "as", destinationEntityName: "A", inverseName: "b", isToMany: true, isOrdered: true),
          Relationship(name: "a", destinationEntityName: "A", inverseName: "bs"),
        ]),
    ])
    #expect(columns(schema, of: "A") == ["Z_PK", "Z_ENT", "Z_OPT", "ZB", "Z_FOK_B"])
    #expect(columns(schema, of: "B") == ["Z_PK", "Z_ENT", "Z_OPT", "ZA", "Z_FOK_A"])
    #expect(
      schema.storage(ofRelationship: "bs", in: "A")
        == .members(ToOneColumns(table: "ZB", key: "ZA", orderKey: "Z_FOK_A")))
    #expect(
      schema.storage(ofRelationship: "as", in: "B")
        == .members(ToOneColumns(table: "ZA", key: "ZB", orderKey: "Z_FOK_B")))
  }

  @Test func wideEntitiesKeepTheirOrder() {
    let names = (0..<64).map { "a\($0 < 10 ? "0" : "")\($0)" }
    let schema = schema([Entity(name: "Wide", attributes: names.shuffled().map(text))])
    #expect(columns(schema, of: "Wide").dropFirst(3) == names.map { "Z" + $0.uppercased() }[...])
  }

  @Test func aRedeclaredAttributeSharesTheColumn() {
    let schema = schema([
      Entity(name: "A", attributes: [text("x")]),
      Entity(name: "B", parentName: "A", attributes: [text("x"), text("y")]),
    ])
    #expect(schema.unsupported.isEmpty)
    #expect(columns(schema, of: "B") == ["Z_PK", "Z_ENT", "Z_OPT", "ZX", "ZY"])
    #expect(schema.column(ofAttribute: "x", in: "B") == "ZX")
    // With a derivation on one of the two it is undefined which of them maintains the column.
    var derived = text("x")
    derived.derivationExpression = "now()"
    let mixed = self.schema([
      Entity(name: "A", attributes: [text("x")]), Entity(name: "B", parentName: "A", attributes: [derived]),
    ])
    #expect(mixed.unsupported.map(\.code) == [.layoutUnsupported])
  }

  @Test func aRedeclaredToManySharesTheTableOrTheColumn() throws {
    func toMany(_ name: String, _ destination: String, _ inverse: String?) -> Relationship {
      Relationship(name: name, destinationEntityName: destination, inverseName: inverse, isToMany: true)
    }
    let own = [toMany("marks", "Tag", nil), toMany("tags", "Tag", "owners")]
    let schema = schema([
      Entity(name: "P", relationships: own), Entity(name: "Q", parentName: "P", relationships: own),
      Entity(name: "R", parentName: "Q", relationships: own),
      Entity(name: "Tag", relationships: [toMany("owners", "P", "tags")]),
    ])
    #expect(schema.unsupported.isEmpty)
    #expect(schema.joinTables.map(\.name) == ["Z_1TAGS"])
    #expect(columns(schema, of: "Tag") == ["Z_PK", "Z_ENT", "Z_OPT", "Z1MARKS"])
    for name in ["marks", "tags"] {
      let storage = schema.storage(ofRelationship: name, in: "P")
      #expect(storage != nil && storage == schema.storage(ofRelationship: name, in: "R"))
      #expect(schema.storingEntity(ofRelationship: name, in: "R") == "P")
    }
    guard case .join(let ends)? = schema.storage(ofRelationship: "owners", in: "Tag") else {
      Issue.record("no join table")
      return
    }
    #expect(ends.table == "Z_1TAGS" && !ends.isOwner)
    // Their hidden key belongs to the topmost one.
    var orders = KeyOrders(model: schema.model, numbers: schema.numbers)
    let order = orders.order(of: try #require(schema.model.entity(named: "Tag")))
    #expect(order.doubt == .hiddenKey(entity: "P", relationship: "marks"))
  }

  /// A property may have the name of one of Core Data's own columns; two columns of one name are never made.
  @Test func columnsOfOneNameAreRefused() {
    let schema = schema([
      Entity(
        name: "A", attributes: [Attribute(name: "_FOK_b", type: .integer16)],
        relationships: [Relationship(name: "b", destinationEntityName: "B", inverseName: "as")]),
      Entity(
        name: "B",
        relationships: [
          Relationship(name: "as", destinationEntityName: "A", inverseName: "b", isToMany: true, isOrdered: true)
        ]),
    ])
    #expect(schema.unsupported.map(\.code) == [.layoutUnsupported])
    #expect(schema.unsupported.first?.message.contains("Z_FOK_B") == true)
  }

  /// ß becomes SS, ı the I of another property, é may be two characters: Core Data's choice is unknown.
  @Test(arguments: ["größe", "straße", "ıd", "cafe\u{301}", "名前"])
  func namesOutsideASCIIAreRefusedUntilAStoreShowsThem(_ name: String) {
    let entities = [
      Entity(
        name: "A", attributes: [text(name)],
        relationships: [Relationship(name: "r" + name, destinationEntityName: "B", isToMany: true)]),
      Entity(name: "E" + name), Entity(name: "B"),
    ]
    let refused = schema(entities).unsupported
    #expect(refused.allSatisfy { $0.code == .layoutUnsupported && $0.hint != nil })
    #expect(
      Set(refused.map { "\($0.place.entity ?? "").\($0.place.property ?? "")" })
        == ["A.\(name)", "A.r\(name)", "E\(name)."])
    let known = schema(entities, observed: ObservedLayout(provenNames: [name, "r" + name, "E" + name]))
    #expect(known.unsupported.isEmpty)
    #expect(schema(entities, observed: ObservedLayout(provenNames: [name, "r" + name])).unsupported.count == 1)
  }

  @Test func longNamesAreRemarkedUpon() {
    let (seen, longer) = (String(repeating: "a", count: 64), String(repeating: "a", count: 65))
    #expect(schema([Entity(name: "A", attributes: [text(seen)])]).unsupported.isEmpty)
    let remarks = schema([Entity(name: "A", attributes: [text(longer)])]).unsupported
    #expect(remarks.map(\.code) == [.nameLengthUnproven])
    #expect(remarks.first?.place.property == longer)
  }

  @Test func rTreesAreMadeOnlyWhereAStoreShowsThem() {
    func place(_ elements: [FetchIndex.Element]) -> [Entity] {
      [
        Entity(
          name: "Place",
          attributes: [Attribute(name: "lat", type: .double), Attribute(name: "lon", type: .double)],
          fetchIndexes: [FetchIndex(name: "byLocation", elements: elements)])
      ]
    }
    let both = ["lat", "lon"].map { FetchIndex.Element(propertyName: $0, kind: .rTree) }
    let unseen = schema(place(both))
    #expect(unseen.rTrees.isEmpty && unseen.unsupported.map(\.code) == [.indexLeftOut])
    let shown = schema(place(both), observed: ObservedLayout(hasRTrees: true))
    #expect(shown.unsupported.isEmpty)
    #expect(
      shown.rTrees.map(\.createStatement) == [
        "CREATE VIRTUAL TABLE Z_Place_byLocation USING RTREE (Z_PK INTEGER PRIMARY KEY, ZLAT_MIN, ZLAT_MAX, ZLON_MIN, "
          + "ZLON_MAX)"
      ])
    #expect(shown.createStatements.filter { $0.hasPrefix("CREATE VIRTUAL") }.count == 1)
    let mixed = both + [FetchIndex.Element(propertyName: "lat")]
    #expect(schema(place(mixed), observed: ObservedLayout(hasRTrees: true)).rTrees.isEmpty)
  }
}
