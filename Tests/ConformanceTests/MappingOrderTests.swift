// Text mappings whose entity mappings stand in any order, and whose relationships have any names: the result is the
// same.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite struct MappingOrderTests {
  private static let rows = """
    INSERT INTO ZB(Z_PK, Z_ENT, Z_OPT, ZK) VALUES(1, 2, 1, 'x'), (2, 2, 1, 'x');
    UPDATE Z_PRIMARYKEY SET Z_MAX = 9;
    """
  private static let deduplicating = "source = 'B'\ndestination = 'B'\ndeduplicate_by = '$source.k'\n"
  private static let plain = "source = 'A'\ndestination = 'A'\n"

  private static func entity(_ name: String, _ attribute: String, _ relationships: [Relationship]) -> Entity {
    Entity(
      name: name, attributes: [Attribute(name: attribute, type: .string, isOptional: true)],
      relationships: relationships)
  }

  private static func relationship(
    _ name: String, _ destination: String, _ inverse: String, isToMany: Bool
  ) -> Relationship {
    Relationship(name: name, destinationEntityName: destination, inverseName: inverse, isToMany: isToMany)
  }

  /// A reference to an object that is left out leads to the one that stays, whichever end is copied first.
  @Test(arguments: [false, true], [[0, 1], [1, 0]])
  func referencesToDuplicatesLeadToTheOneThatStays(_ isManyToMany: Bool, _ order: [Int]) throws {
    let model = [
      Self.entity("A", "n", [Self.relationship("b", "B", "as", isToMany: isManyToMany)]),
      Self.entity("B", "k", [Self.relationship("as", "A", "b", isToMany: true)]),
    ]
    let links =
      isManyToMany
      ? "INSERT INTO ZA(Z_PK, Z_ENT, Z_OPT) VALUES(1, 1, 1), (2, 1, 1); INSERT INTO Z_1B VALUES(1, 1), (2, 2);"
      : "INSERT INTO ZA(Z_PK, Z_ENT, Z_OPT, ZB) VALUES(1, 1, 1, 1), (2, 1, 1, 2);"
    let blocks = [Self.plain, Self.deduplicating]
    let found = try migrate(model, rows: Self.rows + links, order.map { blocks[$0] })
    let one: JSON = .string("B/p1")
    for object in ["A/p1", "A/p2"] {
      #expect(found[object]?.relationships["b"] == (isManyToMany ? .array([one]) : one), "\(object), \(order)")
    }
    #expect(found["B/p1"]?.relationships["as"] == .array([.string("A/p1"), .string("A/p2")]), "\(order)")
    #expect(found["B/p2"] == nil)
  }

  /// Both ends are in the entity itself: the order of their names must not matter.
  @Test(arguments: ["akids", "zkids"], [false, true])
  func referencesInsideAnEntityLeadToTheOneThatStays(_ kids: String, _ isManyToMany: Bool) throws {
    let model = [
      Self.entity(
        "B", "k",
        [
          Self.relationship("parent", "B", kids, isToMany: isManyToMany),
          Self.relationship(kids, "B", "parent", isToMany: true),
        ])
    ]
    let links = "INSERT INTO ZB(Z_PK, Z_ENT, Z_OPT, ZK) VALUES(1, 1, 1, 'x'), (2, 1, 1, 'x'), (3, 1, 1, 'y');"
    let pair =
      isManyToMany
      ? "INSERT INTO Z_1PARENT SELECT 3, 2 WHERE 'Z_1PARENT' IN (SELECT name FROM sqlite_master);"
      : "UPDATE ZB SET ZPARENT = 2 WHERE Z_PK = 3;"
    // The table of a many-to-many inside one entity has the name of one of its ends.
    guard !isManyToMany || kids == "zkids" else { return }
    let found = try migrate(model, rows: links + pair, [Self.deduplicating])
    let one: JSON = .string("B/p1")
    #expect(found["B/p3"]?.relationships["parent"] == (isManyToMany ? .array([one]) : one), "\(found)")
    #expect(found["B/p1"]?.relationships[kids] == .array([.string("B/p3")]))
  }

  /// What a file gives for one end is not overwritten by a copy of the other end.
  @Test(arguments: [[0, 1], [1, 0]], ["'$source.old'", "'nil'"])
  func whatIsGivenWinsOverCopies(_ order: [Int], _ value: String) throws {
    let model = [
      Self.entity(
        "A", "n",
        [
          Self.relationship("bs", "B", "a", isToMany: true), Self.relationship("old", "B", "oldA", isToMany: true),
        ]),
      Self.entity(
        "B", "k",
        [
          Self.relationship("a", "A", "bs", isToMany: false), Self.relationship("oldA", "A", "old", isToMany: false),
        ]),
    ]
    let rows = """
      INSERT INTO ZA(Z_PK, Z_ENT, Z_OPT) VALUES(1, 1, 1);
      INSERT INTO ZB(Z_PK, Z_ENT, Z_OPT, ZA, ZOLDA) VALUES(1, 2, 1, 1, NULL), (2, 2, 1, NULL, 1);
      UPDATE Z_PRIMARYKEY SET Z_MAX = 9;
      """
    let blocks = [Self.plain + "relationships.bs = \(value)\n", "source = 'B'\ndestination = 'B'\n"]
    let found = try migrate(model, rows: rows, order.map { blocks[$0] })
    let wanted: [JSON] = value == "'nil'" ? [] : [.string("B/p2")]
    #expect(found["A/p1"]?.relationships["bs"] == .array(wanted), "\(order)")
    #expect(found["A/p1"]?.relationships["old"] == .array([.string("B/p2")]), "\(order)")
    #expect(found["B/p1"]?.relationships["a"] == .null, "\(order)")
  }

  /// Migrates rows of a model to the same model with one more attribute, and returns the objects by their ids.
  private func migrate(_ entities: [Entity], rows: String, _ blocks: [String]) throws -> [String: DumpedObject] {
    let path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-order-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: path.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    let before = ManagedObjectModel(name: "V1", entities: entities)
    var changed = entities
    changed[0].attributes.append(Attribute(name: "w", type: .integer16, isOptional: true))
    let after = ManagedObjectModel(name: "V2", entities: changed)
    var catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: [before, after], currentVersionName: "V2")
    ])
    let text = "[mapping]\nsource = 'V1'\ndestination = 'V2'\n" + blocks.map { "[[entity]]\n\($0)" }.joined()
    try Data(text.utf8).write(to: URL(filePath: path.appending("V1 to V2.hopmap.toml").string))
    try catalog.loadMappings([path.appending("V1 to V2.hopmap.toml")], beside: [])
    let location = StoreLocation(database: path.appending("store.sqlite"))
    try FreshStore(schema: StoreSchema(model: before, frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 1))
      .make(at: location.database, rows: 0, seed: 1)
    try Connection.ofApp(location.database).execute(rows)
    let request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(infer: false, verification: .full),
      stateDirectory: path.appending("state"), job: "01")
    _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    return Dictionary(uniqueKeysWithValues: try dump(location, model: after).map { ($0.id, $0) })
  }
}
