// Offsets of keys: every object of every mapping has a key of its own, and a mapping that needs no offset keeps its
// keys.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import PersistentStore
import SystemPackage
import Testing

@testable import MappingModel
@testable import MigrationEngine
@testable import MigrationPlanning

/// Hops of small models, without a store.
struct SmallHop {
  static let uid = Attribute(name: "uid", type: .integer64, isOptional: true)

  static func model(_ name: String, _ entities: [Entity]) -> ManagedObjectModel {
    ManagedObjectModel(name: name, entities: entities)
  }

  static func hop(
    _ source: [Entity], _ destination: [Entity], _ mappings: [ExplicitEntityMapping]
  ) -> Hop {
    let (before, after) = (model("V1", source), model("V2", destination))
    let mapped = MappedHop(mappings: [
      ExplicitMapping(
        name: "V1_to_V2", path: "/V1_to_V2.cdm", sourceVersion: "V1", destinationVersion: "V2",
        entityMappings: mappings)
    ])
    return Hop(
      index: 0, source: before, destination: after, sourceSchema: StoreSchema(model: before, frameworkVersion: 1344),
      destinationSchema: StoreSchema(model: after, frameworkVersion: 1344),
      mapping: mapped.nameTrail(source: before, destination: after), mapped: mapped, entities: [])
  }
}

@Suite(.blocking) struct AssociationLayoutTests {
  private typealias Span = AssociationLayout.KeySpan

  /// Three source entities in two tables, up to four mappings in any combination into one table: no two objects may
  /// have the same key, whatever keys the sources have.
  @Test func noTwoObjectsHaveOneKey() throws {
    let source = [
      Entity(name: "A", attributes: [SmallHop.uid]), Entity(name: "A1", parentName: "A"),
      Entity(name: "B", attributes: [SmallHop.uid]),
    ]
    let destination = [Entity(name: "D", attributes: [SmallHop.uid]), Entity(name: "D1", parentName: "D")]
    let choices = ["A", "A1", "B"].flatMap { from in ["D", "D1"].map { (from, $0) } }
    var tried = 0
    for spans in [[1, 5, 3], [-2, 5, 0], [1, 0, 4]] {
      let low = Int64(spans[0])
      let ranges = ["ZA": Span(low: low, high: Int64(spans[1])), "ZB": Span(low: low, high: Int64(spans[2]))]
      for code in 0..<(choices.count * choices.count * choices.count) {
        let picked = [code % 6, code / 6 % 6, code / 36].map { choices[$0] }
        let mappings = picked.enumerated().map { index, pair in
          ExplicitEntityMapping(name: "M\(index)", type: .transform, source: pair.0, destination: pair.1)
        }
        let layout = try AssociationLayout(hop: SmallHop.hop(source, destination, mappings), spans: ranges)
        var keys: Set<Int64> = []
        var count = 0
        for associationRange in layout.ranges {
          guard let range = ranges[associationRange.sourceTable], range.low <= range.high else { continue }
          // The entities of a table take turns in its rows.
          for key in range.low...range.high
          where associationRange.sourceTable == "ZB" || (key % 2 == 0) == (associationRange.sourceEntity == "A") {
            keys.insert(key + associationRange.offset)
            count += 1
            #expect(key + associationRange.offset <= layout.reservedKeys["ZD"] ?? 0, "\(picked) \(spans)")
          }
        }
        #expect(keys.count == count, "\(picked) \(spans)")
        #expect(layout.ranges.first?.offset == 0)
        tried += 1
      }
    }
    #expect(tried == 648)
  }

  @Test func keysThatDoNotFitAreRefused() throws {
    let entities = [Entity(name: "A", attributes: [SmallHop.uid])]
    let mappings = ["M0", "M1"].map {
      ExplicitEntityMapping(name: $0, type: .transform, source: "A", destination: "A")
    }
    let hop = SmallHop.hop(entities, entities, mappings)
    let error = #expect(throws: HopdError.self) {
      _ = try AssociationLayout(hop: hop, spans: ["ZA": Span(low: 1, high: Int64.max - 1)])
    }
    #expect(error?.code == .keysExhausted)
    #expect(error?.place.entity == "M1")
    // The least possible key, in the first table that is mapped and in the second.
    let two = SmallHop.hop(
      entities + [Entity(name: "B", attributes: [SmallHop.uid])], entities,
      ["A", "B"].map { ExplicitEntityMapping(name: $0, type: .transform, source: $0, destination: "A") })
    for table in ["ZA", "ZB"] {
      let error = #expect(throws: HopdError.self) {
        _ = try AssociationLayout(hop: two, spans: [table: Span(low: Int64.min, high: 5)])
      }
      #expect(error?.code == .keysExhausted)
      #expect(error?.place.entity == String(table.last ?? "-"))
    }
  }

  @Test func abstractDestinationsAreRefused() {
    let hop = SmallHop.hop(
      [Entity(name: "A", attributes: [SmallHop.uid])],
      [Entity(name: "A", isAbstract: true, attributes: [SmallHop.uid])],
      [ExplicitEntityMapping(name: "AToA", type: .transform, source: "A", destination: "A")])
    let error = #expect(throws: HopdError.self) { _ = try AssociationLayout(hop: hop, spans: [:]) }
    #expect(error?.code == .mappingUnsupported)
  }
}
