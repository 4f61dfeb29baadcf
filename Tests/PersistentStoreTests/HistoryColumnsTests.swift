// The bits of ZCOLUMNS and the values that deleted objects leave (docs/formats/history-and-cloudkit.md).

import ManagedObjectModel
import Testing

@testable import PersistentStore

@Suite struct HistoryColumnsTests {
  private static func attribute(_ name: String, preserved: Bool = false) -> Attribute {
    Attribute(name: name, type: .string, isOptional: true, preservesAfterDeletion: preserved)
  }

  private static func relationship(
    _ name: String, _ destination: String, _ inverse: String, many: Bool = false, ordered: Bool = false
  ) -> Relationship {
    Relationship(
      name: name, destinationEntityName: destination, inverseName: inverse, isToMany: many, isOrdered: ordered)
  }

  /// A part belongs to ordered lists of two owners, and to a box that has subentities.
  private let schema = StoreSchema(
    model: ManagedObjectModel(
      name: "M",
      entities: [
        Entity(
          name: "Owner",
          relationships: [
            relationship("imported", "Part", "importSession", many: true, ordered: true),
            relationship("fed", "Part", "cloudFeedAssetsEntry", many: true, ordered: true),
          ]),
        Entity(name: "Box", relationships: [relationship("parts", "Part", "box", many: true)]),
        Entity(name: "Crate", parentName: "Box"),
        Entity(
          name: "Part",
          attributes: [
            attribute("adjustmentsState"), attribute("adjustmentTimestamp"), attribute("z", preserved: true),
          ],
          relationships: [
            relationship("importSession", "Owner", "imported"),
            relationship("cloudFeedAssetsEntry", "Owner", "fed"), relationship("box", "Box", "parts"),
          ]),
        Entity(
          name: "Wheel", parentName: "Part", attributes: [attribute("a", preserved: true), attribute("b")]),
      ]), frameworkVersion: 1344)

  @Test func groupsComeOneAfterTheOtherAndOrderKeysAsTheirColumns() throws {
    let columns = try #require(HistoryColumns(of: "Wheel", in: schema))
    #expect(columns.doubt == nil)
    #expect(
      columns.bits.map { "\($0.group) \($0.property)" } == [
        "toOne box", "toOne cloudFeedAssetsEntry", "toOne importSession", "discriminator box",
        // The columns of Photos are in this order.
        "orderKey importSession", "orderKey cloudFeedAssetsEntry", "attribute adjustmentTimestamp",
        "attribute adjustmentsState", "attribute z", "attribute a", "attribute b",
      ])
    #expect(columns.byteCount == 2)
  }

  @Test func bitsGoByName() {
    typealias Bit = HistoryColumns.Bit
    func setsEach(_ bit: Bit) -> [HistoryColumns.Group] {
      HistoryColumns.Group.allCases.filter { bit.sets(Bit(group: $0, property: "x")) }
    }
    #expect(setsEach(Bit(group: .attribute, property: "x")) == [.attribute])
    #expect(setsEach(Bit(group: .toOne, property: "x")) == [.toOne, .toMany, .manyToMany])
    #expect(setsEach(Bit(group: .discriminator, property: "x")) == [.toOne, .discriminator, .toMany, .manyToMany])
    // The to-one of an order key is named too, also if the relationship has no order any more.
    #expect(setsEach(Bit(group: .orderKey, property: "x")) == [.toOne, .orderKey, .toMany, .manyToMany])
    #expect(setsEach(Bit(group: .toMany, property: "x")) == [.toOne, .toMany, .manyToMany])
    #expect(setsEach(Bit(group: .attribute, property: "y")) == [])
    let city = Bit(group: .attribute, property: "place", element: "city")
    #expect(city.sets(city) && !city.sets(Bit(group: .attribute, property: "place", element: "street")))
  }

  @Test func deletedObjectsLeaveInheritedValuesInAlphabeticalOrderToo() {
    #expect(HistoryLayout.tombstoneAttributes(of: "Wheel", in: schema.model) == ["a", "z"])
    #expect(HistoryLayout.tombstoneAttributes(of: "Part", in: schema.model) == ["z"])
    #expect(HistoryLayout.tombstoneAttributes(of: "Nothing", in: schema.model) == [])
  }
}
