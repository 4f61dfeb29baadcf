// What mapping models drop: properties by entity, inherited ones included, and entities with all their objects.

import BlockingTests
import Diagnostics
import Expressions
import ManagedObjectModel
import PersistentStore
import SystemPackage
import Testing

@testable import MappingModel
@testable import MigrationPlanning

@Suite(.blocking) struct MappedDropTests {
  private static let before = [
    entity("Vehicle", abstract: true, [attribute("maker"), attribute("year")]),
    entity("Car", parent: "Vehicle", [attribute("color")]), entity("Bike", parent: "Vehicle", [attribute("gears")]),
    entity("Gone"), entity("Removed"),
  ]
  private static let after = [
    entity("Vehicle", abstract: true, [attribute("maker"), attribute("year")]),
    entity("Car", parent: "Vehicle", [attribute("color")]), entity("Bike", parent: "Vehicle", [attribute("gears")]),
  ]
  private static let rows =
    "INSERT INTO ZVEHICLE (Z_PK, Z_ENT, Z_OPT, ZMAKER, ZYEAR, ZCOLOR) VALUES (1, 5, 1, 'a', 'b', 'c'), "
    + "(2, 5, 1, 'a', NULL, 'c'), (3, 4, 1, 'a', 'b', NULL);"
    + "INSERT INTO ZGONE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);"
    + "INSERT INTO ZREMOVED (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);"
    + "UPDATE Z_PRIMARYKEY SET Z_MAX = 3"

  private struct OneHop: MappingSource, HopMappings {
    let hop: MappedHop
    var isEmpty: Bool { false }
    func hops(among versions: [CatalogedVersion]) -> any HopMappings { self }
    func hop(
      from source: CatalogedVersion, to destination: CatalogedVersion
    ) throws(HopdError) -> (hop: MappedHop, warnings: [HopdError])? { (hop, []) }
    func nearMisses(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError] { [] }
  }

  private static func copy(
    _ name: String, _ attributes: [String], grouping: SourceGrouping = .each
  ) -> ExplicitEntityMapping {
    ExplicitEntityMapping(
      name: name, type: .transform, source: name, destination: name,
      attributes: attributes.map {
        ExplicitPropertyMapping(name: $0, value: .expression(.keyPath(.variable("source"), [.key($0)])))
      }, grouping: grouping)
  }

  /// Returns "entity.property count" of each drop of a plan; without mappings the hop is inferred.
  private func drops(_ mappings: [ExplicitEntityMapping]) throws -> [String] {
    var catalog = ModelCatalog(bundles: [bundle([Self.before, Self.after], name: "M")])
    if !mappings.isEmpty {
      catalog.mappings = OneHop(
        hop: MappedHop(mappings: [
          ExplicitMapping(
            name: "Map", path: "/Map.cdm", sourceVersion: "V1", destinationVersion: "V2", entityMappings: mappings)
        ]))
    }
    let small = try SmallStore(ManagedObjectModel(name: "V1", entities: Self.before), Self.rows)
    let plan = try StoreReader.withUnchangedStore(at: small.location) { reader in
      let found = try StoreIdentifier.identify(reader: reader, location: small.location, catalog: catalog)
      return try MigrationPlanner.plan(
        store: try #require(found.identified), catalog: catalog, rules: PlanningRules(), reader: reader)
    }
    return plan.drops.map { "\($0.entity)\($0.property.map { ".\($0)" } ?? "") \($0.nonNull)" }.sorted()
  }

  @Test func aPropertyThatAnotherEntityKeepsIsADropOfTheOne() throws {
    let all = Self.copy("Bike", ["gears", "maker", "year"])
    #expect(try drops([Self.copy("Car", ["color"]), all]) == ["Car.maker 2", "Car.year 1", "Gone 2", "Removed 1"])
    // An entity whose objects are merged drops what its expressions leave out too.
    let merged = Self.copy("Car", ["color"], grouping: .deduplicate(by: [.constant(.string("a"))], keep: .lowest))
    #expect(try drops([merged, all]) == ["Car.maker 2", "Car.year 1", "Gone 2", "Removed 1"])
  }

  @Test func objectsWithoutADestinationAreDrops() throws {
    let kept = [Self.copy("Car", ["color", "maker", "year"]), Self.copy("Bike", ["gears", "maker", "year"])]
    let removed = ExplicitEntityMapping(name: "R", type: .remove, source: "Removed", destination: nil)
    #expect(try drops(kept + [removed]) == ["Gone 2", "Removed 1"])
    #expect(try drops([]) == ["Gone 2", "Removed 1"])
  }
}
