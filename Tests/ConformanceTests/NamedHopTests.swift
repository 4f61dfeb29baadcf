// Single hops that were once wrong, or that random worlds seldom contain; each compared with the object-by-object
// oracle.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MappingModel
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite struct NamedHopTests {
  /// Migrates a filled store of `before` to `after`, compares it with the oracle, and passes the result to `inspect`.
  private func hop(
    _ before: [Entity], _ after: [Entity], rows: Int64 = 60, spoiling: String = "",
    inspect: (Connection) throws -> Void = { _ in }
  ) throws {
    let versions = [ManagedObjectModel(name: "V1", entities: before), ManagedObjectModel(name: "V2", entities: after)]
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: "V2")
    ])
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-hop-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("store.sqlite"))
    try FreshStore(
      schema: StoreSchema(model: versions[0], frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 7)
    ).make(at: location.database, rows: rows, seed: 7)
    if !spoiling.isEmpty { try Connection.ofApp(location.database).execute(spoiling) }
    let objects = try dump(location, model: versions[0])
    let mapping = try MappingInference.infer(from: versions[0], to: versions[1])
    let expected = ObjectOracle(source: versions[0], destination: versions[1], mapping: mapping).migrate(objects)
    let request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(verification: .full),
      stateDirectory: folder.appending("state"), job: "01")
    _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    let found = try dump(location, model: versions[1])
    #expect(found.count == expected.count)
    for (object, wanted) in zip(found, expected) where object != wanted { Issue.record("\(object) is not \(wanted)") }
    try inspect(Connection.ofApp(location.database, .readOnly))
  }

  private func entity(_ name: String, _ parent: String? = nil, _ relationships: [Relationship] = []) -> Entity {
    Entity(
      name: name, parentName: parent, attributes: [Attribute(name: "label" + name, type: .string, isOptional: true)],
      relationships: relationships)
  }

  private let tags = Relationship(name: "tags", destinationEntityName: "Tag", isToMany: true)

  /// A subentity declares inherited properties again: its rows have its own defaults, and their pairs stay in the
  /// ancestor's table and column.
  @Test func propertiesThatASubentityDeclaresAgain() throws {
    let labels = Relationship(name: "labels", destinationEntityName: "Tag", inverseName: "bases", isToMany: true)
    let bases = Relationship(name: "bases", destinationEntityName: "Base", inverseName: "labels", isToMany: true)
    func versions(_ base: [Attribute], _ child: [Attribute]) -> [Entity] {
      var entities = [
        entity("Base", nil, [labels, tags]), entity("Child", "Base", [labels, tags]), entity("Tag", nil, [bases]),
      ]
      entities[0].attributes += base
      entities[1].attributes += child
      return entities
    }
    func number(_ name: String, _ standard: Int64? = nil, isOptional: Bool = true) -> Attribute {
      Attribute(
        name: name, type: .integer16, isOptional: isOptional, defaultValue: standard.map(AttributeDefault.integer))
    }
    try hop(
      versions([number("z")], []),
      versions([number("more", 1), number("z")], [number("more", 2), number("z", 9, isOptional: false)]),
      spoiling: "UPDATE ZBASE SET ZZ = NULL"
    ) { (connection: Connection) throws -> Void in
      #expect(try connection.integer("SELECT sum(ZMORE = Z_ENT) = count(*) FROM ZBASE") == 1)
      #expect(try connection.integer("SELECT count(ZZ) FROM ZBASE WHERE Z_ENT = 1") == 0)
      #expect(try connection.integer("SELECT sum(ZZ = 9) = count(*) FROM ZBASE WHERE Z_ENT = 2") == 1)
      let joined = try connection.integer("SELECT count(*) FROM Z_1LABELS") ?? 0
      let owned = try connection.integer("SELECT count(Z1TAGS) FROM ZTAG") ?? 0
      #expect(joined > 0 && owned > 0)
    }
  }

  @Test func aToManyWithoutInverseMovesUpWithItsPairs() throws {
    try hop(
      [entity("Base"), entity("Alpha", "Base"), entity("Child", "Base", [tags]), entity("Tag")],
      [entity("Base", nil, [tags]), entity("Alpha", "Base"), entity("Child", "Base"), entity("Tag")]
    ) { (connection: Connection) throws -> Void in
      let kept = try connection.integer("SELECT count(Z1TAGS) FROM ZTAG") ?? 0
      #expect(kept > 0)
    }
  }

  @Test func aToManyWithoutInverseMovesDownWithThePairsOfWhoKeepsIt() throws {
    try hop(
      [entity("Base", nil, [tags]), entity("Alpha", "Base"), entity("Child", "Base"), entity("Tag")],
      [entity("Base"), entity("Alpha", "Base"), entity("Child", "Base", [tags]), entity("Tag")]
    ) { (connection: Connection) throws -> Void in
      // Keys of owners that no longer have the relationship would be references outside of any pairs.
      let strangers = """
        SELECT count(*) FROM ZTAG t JOIN ZBASE b ON b.Z_PK = t.Z3TAGS
        WHERE b.Z_ENT <> (SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = 'Child')
        """
      #expect(try connection.integer(strangers) == 0)
    }
  }

  @Test func aToManyWithoutInverseMovesDownToTwo() throws {
    try hop(
      [entity("Base", nil, [tags]), entity("Alpha", "Base"), entity("Child", "Base"), entity("Tag")],
      [entity("Base"), entity("Alpha", "Base", [tags]), entity("Child", "Base", [tags]), entity("Tag")])
  }

  /// The old inverse continues alone, and the relationship gets a new one: both keep the pairs.
  @Test func aNewInverseTakesThePairsWhileTheOldOneKeepsThem() throws {
    let works = { (inverse: String?) in
      Relationship(name: "works", destinationEntityName: "Work", inverseName: inverse, isToMany: true)
    }
    let maker = { (inverse: String?) in
      Relationship(name: "maker", destinationEntityName: "Maker", inverseName: inverse)
    }
    let makers = Relationship(name: "makers", destinationEntityName: "Maker", inverseName: "works", isToMany: true)
    // For either end that names the join table.
    for (first, second) in [("Maker", "Work"), ("Zaker", "Work")] {
      func renamed(_ relationship: Relationship) -> Relationship {
        var relationship = relationship
        if relationship.destinationEntityName == "Maker" { relationship.destinationEntityName = first }
        return relationship
      }
      try hop(
        [entity(first, nil, [works("maker")]), entity(second, nil, [renamed(maker("works"))])],
        [
          entity(first, nil, [works("makers")]),
          entity(second, nil, [renamed(maker(nil)), renamed(makers)]),
        ]
      ) { (connection: Connection) throws -> Void in
        let kept = try connection.integer("SELECT count(ZMAKER) FROM ZWORK") ?? 0
        let join = first == "Maker" ? "Z_1WORKS" : "Z_1MAKERS"
        #expect(kept > 0)
        #expect(try connection.integer("SELECT count(*) FROM \(join)") == kept)
      }
    }
  }

  /// Two relationships that become one do not fit into one column: refused before anything is written.
  @Test func twoToManysWithoutInverseDoNotBecomeOne() throws {
    #expect(throws: (any Error).self) {
      try hop(
        [entity("Base"), entity("Alpha", "Base", [tags]), entity("Child", "Base", [tags]), entity("Tag")],
        [entity("Base", nil, [tags]), entity("Alpha", "Base"), entity("Child", "Base"), entity("Tag")])
    }
  }

  /// One to one becomes one to ordered many, stored on the other side: every member gets a position in the order.
  @Test func pairsThatChangeSidesAreNumbered() throws {
    try hop(
      [
        entity("X", nil, [Relationship(name: "fav", destinationEntityName: "Z", inverseName: "x")]),
        entity("Z", nil, [Relationship(name: "x", destinationEntityName: "X", inverseName: "fav")]),
      ],
      [
        entity(
          "X", nil,
          [
            Relationship(
              name: "favs", destinationEntityName: "Z", inverseName: "owner", isToMany: true, isOrdered: true,
              renamingIdentifier: "fav")
          ]),
        entity("Z", nil, [Relationship(name: "owner", destinationEntityName: "X", inverseName: "favs")]),
      ]
    ) { (connection: Connection) throws -> Void in
      let kept = try connection.integer("SELECT count(ZOWNER) FROM ZZ") ?? 0
      #expect(kept > 0)
      #expect(try connection.integer("SELECT count(*) FROM ZZ WHERE ZOWNER NOT NULL AND Z_FOK_OWNER IS NULL") == 0)
    }
  }

  /// A default is written into sibling rows as in Core Data, but not if that would break a uniqueness constraint.
  @Test func aUniqueDefaultStaysOutOfSiblingRows() throws {
    let code = Attribute(name: "code", type: .string, defaultValue: .string("z"))
    let child = Entity(
      name: "Child", parentName: "Base",
      attributes: [Attribute(name: "labelChild", type: .string, isOptional: true), code],
      uniquenessConstraints: [["code"]])
    try hop(
      [entity("Base"), entity("Child", "Base")], [entity("Base"), child], rows: 20,
      spoiling: """
        DELETE FROM ZBASE WHERE Z_ENT = 2 AND Z_PK > (SELECT min(Z_PK) FROM ZBASE WHERE Z_ENT = 2)
        """
    ) { (connection: Connection) throws -> Void in
      #expect(try connection.integer("SELECT count(ZCODE) FROM ZBASE") == 1)
    }
  }

  /// Siblings lose the relationship: keys left in them would make them objects of the other end.
  @Test func aToOneMovesDownWithTheKeysOfWhoKeepsIt() throws {
    func owner(_ inverse: String?) -> [Relationship] {
      [Relationship(name: "owner", destinationEntityName: "Owner", inverseName: inverse)]
    }
    let things = Relationship(name: "things", destinationEntityName: "Base", inverseName: "owner", isToMany: true)
    let children = Relationship(name: "children", destinationEntityName: "Child", inverseName: "owner", isToMany: true)
    let strangers =
      "SELECT count(*) FROM ZBASE WHERE ZOWNER IS NOT NULL AND Z_ENT <> "
      + "(SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = 'Child')"
    for (before, after) in [("things", "children"), (nil, nil)] as [(String?, String?)] {
      try hop(
        [
          entity("Base", nil, owner(before)), entity("Alpha", "Base"), entity("Child", "Base"),
          entity("Owner", nil, before == nil ? [] : [things]),
        ],
        [
          entity("Base"), entity("Alpha", "Base"), entity("Child", "Base", owner(after)),
          entity("Owner", nil, after == nil ? [] : [children]),
        ]
      ) { (connection: Connection) throws -> Void in
        #expect(try connection.integer(strangers) == 0)
        #expect(try connection.integer("SELECT count(ZOWNER) FROM ZBASE") ?? 0 > 0)
      }
    }
  }

  /// Values of siblings in the column of an attribute that they lose do not count for its uniqueness.
  @Test func aUniqueAttributeMovesDownWithoutItsSiblings() throws {
    let code = Attribute(name: "code", type: .string, isOptional: true)
    func base(_ attributes: [Attribute]) -> Entity { Entity(name: "Base", attributes: attributes) }
    var child = entity("Child", "Base")
    child.attributes.append(code)
    child.uniquenessConstraints = [["code"]]
    try hop(
      [base([code]), entity("Alpha", "Base"), entity("Child", "Base")],
      [base([]), entity("Alpha", "Base"), child],
      spoiling: "UPDATE ZBASE SET ZCODE = CASE Z_ENT WHEN 3 THEN 'c' || Z_PK ELSE 'c1' END"
    ) { (connection: Connection) throws -> Void in
      #expect(try connection.integer("SELECT count(*) FROM ZBASE WHERE ZCODE IS NOT NULL AND Z_ENT <> 3") == 0)
      #expect(try connection.integer("SELECT count(ZCODE) FROM ZBASE") ?? 0 > 0)
    }
  }

  /// References to objects of a removed entity are cleared, with their positions in the order.
  @Test func referencesToAnEntityThatGoesAreCleared() throws {
    let v = Relationship(name: "v", destinationEntityName: "V", inverseName: "ps")
    let ps = Relationship(name: "ps", destinationEntityName: "P", inverseName: "v", isToMany: true, isOrdered: true)
    try hop(
      [entity("P", nil, [v]), entity("V", nil, [ps]), entity("Truck", "V")],
      [entity("P", nil, [v]), entity("V", nil, [ps])]
    ) { (connection: Connection) throws -> Void in
      #expect(try connection.integer("SELECT count(*) FROM ZP WHERE ZV IS NULL AND Z_FOK_V NOT NULL") == 0)
    }
  }

  /// A run that is stopped during verification does not build the result again.
  @Test func stoppedWhileVerifyingItGoesOnThere() throws {
    let before = ManagedObjectModel(name: "V1", entities: [entity("Base"), entity("Tag", nil)])
    var base = entity("Base")
    base.attributes.append(Attribute(name: "more", type: .integer32, isOptional: true, defaultValue: .integer(3)))
    let after = ManagedObjectModel(name: "V2", entities: [base, entity("Tag", nil)])
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: [before, after], currentVersionName: "V2")
    ])
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-hop-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("store.sqlite"))
    try FreshStore(
      schema: StoreSchema(model: before, frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 7)
    ).make(at: location.database, rows: 100_000, seed: 7)
    let request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      stateDirectory: folder.appending("state"), job: "01")
    let stop = StopSignal()
    do {
      _ = try MigrationPipeline().run(request, stop: stop) { event in
        if case .verifying = event { stop.stop() }
      }
      Issue.record("it was not stopped")
    } catch {
      #expect(error.error.code == .interrupted)
      #expect(error.stage == .verify)
    }
    var chunks = 0
    let report = try MigrationPipeline().run(request, stop: StopSignal()) { event in
      if case .progress = event { chunks += 1 }
    }
    #expect(report.result == .migrated)
    #expect(report.wasResumed)
    #expect(chunks == 0)
    #expect(report.job == "01")
    let sum = try Connection.ofApp(location.database, .readOnly).integer("SELECT sum(ZMORE) / 3 FROM ZBASE")
    #expect(sum == 50_000)
  }

  // MARK: Join tables

  private func toMany(_ name: String, _ destination: String, _ inverse: String?, isOrdered: Bool = false)
    -> Relationship
  {
    Relationship(
      name: name, destinationEntityName: destination, inverseName: inverse, isToMany: true, isOrdered: isOrdered)
  }

  private func tables(_ connection: Connection) throws(SQLiteError) -> [String] {
    try connection.rows(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z_[0-9]*' ORDER BY name"
    ) { $0.text(at: 0) ?? "" }
  }

  private func columns(of table: String, _ connection: Connection) throws(SQLiteError) -> [String] {
    try connection.rows("SELECT name FROM pragma_table_info('\(table)')") { $0.text(at: 0) ?? "" }
  }

  /// The table is then named by the entity that has subentities, and its pairs and their order stay.
  @Test func anEntityGetsItsFirstSubentity() throws {
    let before = [
      entity("A", nil, [toMany("bs", "B", "as", isOrdered: true)]), entity("B", nil, [toMany("as", "A", "bs")]),
    ]
    try hop(before, before + [entity("C", "B")]) { (connection: Connection) throws -> Void in
      #expect(try tables(connection) == ["Z_2AS"])
      #expect(try columns(of: "Z_2AS", connection) == ["Z_2BS", "Z_1AS", "Z_FOK_2BS"])
      #expect(try connection.integer("SELECT count(*) > 20 FROM Z_2AS") == 1)
    }
    // And back.
    try hop(before + [entity("C", "B")], before) { (connection: Connection) throws -> Void in
      #expect(try tables(connection) == ["Z_1BS"])
    }
  }

  /// Columns of one name that the store numbers the other way round stay so, whatever numbers the entities get.
  @Test func columnsKeepTheNumbersOfTheStore() throws {
    let before = [
      entity("Asset", nil, [toMany("memories", "Memory", "assets"), toMany("suggestions", "Suggestion", "assets")]),
      entity("Memory", nil, [toMany("assets", "Asset", "memories")]),
      entity("Suggestion", nil, [toMany("assets", "Asset", "suggestions")]),
    ]
    let exchange =
      "ALTER TABLE Z_1MEMORIES RENAME COLUMN Z_1ASSETS TO x; ALTER TABLE Z_1MEMORIES RENAME COLUMN x TO Z_1ASSETS1; "
      + "ALTER TABLE Z_1SUGGESTIONS RENAME COLUMN Z_1ASSETS1 TO x; "
      + "ALTER TABLE Z_1SUGGESTIONS RENAME COLUMN x TO Z_1ASSETS"
    var after = before + [entity("Aardvark")]
    after[0].relationships.append(toMany("albums", "Aardvark", "assets"))
    after[3].relationships.append(toMany("assets", "Asset", "albums"))
    for (spoiling, wanted) in [
      (exchange, ["Z_2ASSETS1", "Z_2ASSETS", "Z_2ASSETS2"]), ("", ["Z_2ASSETS1", "Z_2ASSETS2", "Z_2ASSETS"]),
    ] {
      try hop(before, after, spoiling: spoiling) { (connection: Connection) throws -> Void in
        var found: [String] = []
        for table in ["Z_2MEMORIES", "Z_2SUGGESTIONS", "Z_1ASSETS"] {
          found += try columns(of: table, connection).filter { $0.hasPrefix("Z_2ASSETS") }
        }
        #expect(found == wanted)
      }
    }
  }

  /// Rows of a to-many that is its own inverse stay as they are, one for a pair or two.
  @Test func pairsOfAToManyThatIsItsOwnInverse() throws {
    let friends = [entity("Person", nil, [toMany("friends", "Person", "friends")])]
    var more = [entity("Person", nil, [toMany("friends", "Person", "friends")]), entity("Animal")]
    more[0].attributes.append(Attribute(name: "age", type: .integer16, isOptional: true))
    for (spoiling, back) in [("", 1), ("DELETE FROM Z_1FRIENDS WHERE Z_1FRIENDS > REFLEXIVE", 0)] {
      try hop(friends, more, spoiling: spoiling) { (connection: Connection) throws -> Void in
        #expect(try tables(connection) == ["Z_2FRIENDS"])
        #expect(try columns(of: "Z_2FRIENDS", connection) == ["Z_2FRIENDS", "REFLEXIVE"])
        #expect(
          try connection.integer("SELECT count(*) > 20 FROM Z_2FRIENDS WHERE Z_2FRIENDS > REFLEXIVE") == Int64(back))
        #expect(try connection.integer("SELECT count(*) > 20 FROM Z_2FRIENDS WHERE Z_2FRIENDS < REFLEXIVE") == 1)
      }
    }
  }

  /// A relationship that is its own inverse becomes two: every pair is there from both sides.
  @Test func aToManyIsNoLongerItsOwnInverse() throws {
    let one = [entity("Person", nil, [toMany("friends", "Person", "friends")])]
    let two = [
      entity("Person", nil, [toMany("friends", "Person", "friendOf"), toMany("friendOf", "Person", "friends")])
    ]
    let half = "DELETE FROM Z_1FRIENDS WHERE Z_1FRIENDS > REFLEXIVE"
    for spoiling in ["", half] {
      try migrated(one, two, spoiling: spoiling) { (connection: Connection, table: String) throws -> Void in
        #expect(try connection.integer("SELECT count(*) > 40 FROM \(table)") == 1)
      }
    }
    // Two relationships with different pairs cannot be one: the rows forbid it.
    #expect(throws: MigrationFailure.self) {
      try migrated(two, one, spoiling: "") { (_: Connection, _: String) throws -> Void in }
    }
  }

  /// Migrates a filled store; every pair of the result is there from both sides.
  private func migrated(
    _ before: [Entity], _ after: [Entity], spoiling: String, inspect: (Connection, String) throws -> Void
  ) throws {
    let versions = [ManagedObjectModel(name: "V1", entities: before), ManagedObjectModel(name: "V2", entities: after)]
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: "V2")
    ])
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-hop-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("store.sqlite"))
    try FreshStore(
      schema: StoreSchema(model: versions[0], frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 7)
    ).make(at: location.database, rows: 60, seed: 7)
    if !spoiling.isEmpty { try Connection.ofApp(location.database).execute(spoiling) }
    let request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(verification: .full),
      stateDirectory: folder.appending("state"), job: "01")
    _ = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    let connection = try Connection.ofApp(location.database, .readOnly)
    let table = try #require(try tables(connection).first)
    let names = try columns(of: table, connection)
    #expect(
      try connection.integer(
        "SELECT count(*) FROM \(table) AS a WHERE NOT EXISTS (SELECT 1 FROM \(table) AS b WHERE b.\(names[0]) = "
          + "a.\(names[1]) AND b.\(names[1]) = a.\(names[0]))") == 0)
    try inspect(connection, table)
  }
}
