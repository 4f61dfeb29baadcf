// Required to-ones, bounds and lengths of later versions against the rows of a store.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SystemPackage
import Testing

@Suite struct RequiredRelationshipTests {
  private func toOne(_ name: String, inverse: String?, optional: Bool = true) -> Relationship {
    Relationship(name: name, destinationEntityName: "B", inverseName: inverse, isOptional: optional)
  }

  private func toMany(_ name: String, to entity: String = "A", inverse: String) -> Relationship {
    Relationship(name: name, destinationEntityName: entity, inverseName: inverse, isToMany: true)
  }

  private func world(_ owner: [Relationship], _ target: [Relationship]) -> [Entity] {
    [Entity(name: "A", relationships: owner), Entity(name: "B", relationships: target)]
  }

  private func plan(_ versions: [[Entity]], _ sql: String) throws -> Result<MigrationPlan, any Error> {
    let catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld",
        versions: versions.enumerated().map { ManagedObjectModel(name: "V\($0.offset + 1)", entities: $0.element) },
        currentVersionName: "V\(versions.count)")
    ])
    let store = try SmallStore(try catalog.model("V1"), sql)
    return Result { try store.plan(catalog) }
  }

  /// All forms of the pair before the hop; A.b is required afterwards. One A has a B, the other has one or none.
  @Test func requiredToOnesOverASmallWorld() throws {
    for existed in [true, false] {
      for wasOptional in [true, false] where existed || wasOptional {
        for isOptional in [true, false] {
          for hasGap in [true, false] {
            let before =
              existed
              ? world([toOne("b", inverse: "a", optional: wasOptional)], [toMany("a", inverse: "b")]) : world([], [])
            let after = world([toOne("b", inverse: "a", optional: isOptional)], [toMany("a", inverse: "b")])
            let column = existed ? ", ZB" : ""
            let outcome = try plan(
              [before, after],
              "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);"
                + "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT\(column)) VALUES (1, 1, 1\(existed ? ", 1" : "")),"
                + " (7, 1, 1\(existed ? hasGap ? ", NULL" : ", 1" : ""))")
            let mustFail = !isOptional && (existed ? wasOptional && hasGap : true)
            switch outcome {
            case .success: #expect(!mustFail, "\(existed) \(wasOptional) \(isOptional) \(hasGap)")
            case .failure(let error):
              let error = try #require(error as? HopdError)
              #expect(mustFail, "\(existed) \(wasOptional) \(isOptional) \(hasGap): \(error)")
              #expect(error.code == .missingRequiredValue)
              #expect(error.place.entity == "A" && error.place.property == "b" && error.place.hop == "V1 → V2")
              #expect(error.place.row == (existed ? 7 : 1))
              #expect(error.message.contains(existed ? "1 row has no object" : "2 rows have no object"))
            }
          }
        }
      }
    }
  }

  /// Pairs in a join table, and pairs whose column moves to the other end.
  @Test func requiredToOnesOfOtherForms() throws {
    let join = world([toMany("b", to: "B", inverse: "a")], [toMany("a", inverse: "b")])
    let one = world([toOne("b", inverse: "a", optional: false)], [toMany("a", inverse: "b")])
    let rows =
      "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);"
      + "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);INSERT INTO Z_1B VALUES (1, 1)"
    guard case .failure(let error) = try plan([join, one], rows) else {
      Issue.record("an A without a B was taken along")
      return
    }
    #expect((error as? HopdError)?.code == .missingRequiredValue && (error as? HopdError)?.place.row == 2)
    #expect(throws: Never.self) { try plan([join, one], rows + ", (2, 1)").get() }
  }

  private func attribute(
    _ type: AttributeType, minimum: String? = nil, maximum: String? = nil
  ) -> Attribute {
    Attribute(name: "x", type: type, isOptional: true, minimum: minimum, maximum: maximum)
  }

  @Test func narrowerBoundsAreRemarked() throws {
    let cases: [(before: Attribute, after: Attribute, value: String, isBroken: Bool)] = [
      (attribute(.string), attribute(.string, maximum: "3"), "'abcd'", true),
      (attribute(.string), attribute(.string, maximum: "3"), "'abc'", false),
      // UTF-16 units, as NSString counts: two scalars, four units.
      (attribute(.string), attribute(.string, maximum: "3"), "'😀😀'", true),
      (attribute(.string), attribute(.string, minimum: "2"), "'a'", true),
      (attribute(.string, maximum: "3"), attribute(.string, maximum: "3"), "'abcd'", false),
      (attribute(.string, maximum: "5"), attribute(.string, maximum: "3"), "'abcd'", true),
      (attribute(.integer16), attribute(.integer16, minimum: "0"), "-1", true),
      (attribute(.integer16, minimum: "-5"), attribute(.integer16, minimum: "-9"), "-7", false),
      (attribute(.double), attribute(.double, maximum: "0.5"), "0.75", true),
      // Values of a Float are rounded, and so are its bounds: 0.1 may be its own maximum, the next number may not.
      (attribute(.float), attribute(.float, maximum: "0.1"), "\(Double(Float(0.1)))", false),
      (attribute(.float), attribute(.float, maximum: "0.1"), "\(Double(Float(0.1).nextUp))", true),
      (attribute(.float), attribute(.float, minimum: "0.7"), "\(Double(Float(0.7)))", false),
      (attribute(.float), attribute(.float, minimum: "0.7"), "\(Double(Float(0.7).nextDown))", true),
      (attribute(.float), attribute(.float, maximum: "0.7"), "0.7", false),
      (attribute(.float), attribute(.float, maximum: "1e39"), "1e40", true),
      (attribute(.double, maximum: "0.7"), attribute(.float, maximum: "0.7"), "0.7", false),
      (attribute(.decimal), attribute(.decimal, maximum: "10"), "10", false),
      (attribute(.date), attribute(.date, maximum: "100"), "101.0", true),
      (attribute(.date), attribute(.date, maximum: "100"), "NULL", false),
    ]
    // Bounds are not in a version's hash: without another change there is no hop.
    let more = Attribute(name: "more", type: .boolean, isOptional: true)
    for (number, known) in cases.enumerated() {
      let outcome = try plan(
        [[Entity(name: "A", attributes: [known.before])], [Entity(name: "A", attributes: [known.after, more])]],
        "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (4, 1, 1, \(known.value))")
      let warnings = try outcome.get().warnings.filter { $0.code == .valuesOutOfBounds }
      #expect(warnings.count == (known.isBroken ? 1 : 0), "case \(number)")
      for warning in warnings {
        #expect(warning.place.entity == "A" && warning.place.property == "x" && warning.place.row == 4)
        #expect(!warning.description.contains("abcd"))
      }
    }
  }
}
