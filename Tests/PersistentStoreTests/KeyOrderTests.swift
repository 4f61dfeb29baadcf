// Core Data's key tables, and the names that follow from them: known answers of docs/formats/join-table-names.md.

import Diagnostics
import ManagedObjectModel
import Testing

@testable import PersistentStore

@Suite struct KeyOrderTests {
  private static func toMany(
    _ name: String, _ destination: String, inverse: String?, ordered: Bool = false, transient: Bool = false
  ) -> Relationship {
    Relationship(
      name: name, destinationEntityName: destination, inverseName: inverse, isTransient: transient, isToMany: true,
      isOrdered: ordered)
  }

  private static func toOne(_ name: String, _ destination: String, inverse: String? = nil) -> Relationship {
    Relationship(name: name, destinationEntityName: destination, inverseName: inverse)
  }

  private static func texts(_ names: [String]) -> [Attribute] {
    names.map { Attribute(name: $0, type: .string, isOptional: true) }
  }

  private func schema(
    _ entities: [Entity], _ framework: Int64 = 1344, naming: Set<String> = []
  ) -> StoreSchema {
    StoreSchema(
      model: ManagedObjectModel(name: "V1", entities: entities), frameworkVersion: framework,
      naming: JoinTableNaming(naming))
  }

  private func order(of entity: String, in schema: StoreSchema) throws -> KeyOrder {
    var orders = KeyOrders(model: schema.model, numbers: schema.numbers)
    return orders.order(of: try #require(schema.model.entity(named: entity)))
  }

  // MARK: Hashes and tables

  @Test(
    arguments: [
      ("_ent", 0x7a62_d14a, 0xd3f0_46d1, 0x7a62_d14a), ("_pk", 0x1eb2_fa25, 0x98fd_b1e5, 0x1eb2_fa25),
      ("_opt", 0x7b0e_4816, 0x7596_b865, 0x7b0e_4816), ("name", 0x7c1e_34f5, 0x47ef_0c94, 0x7c1e_34f5),
      ("blockedBy", 0x9be7_f698, 0x2265_ce42, 0x9be7_f698), ("blocking", 0x964d_0251, 0x6ffd_464f, 0x964d_0251),
      ("serverSideUpdateTaskContinuationToken", 0xfb34_9693, 0x8ef2_78cf, 0x212c_9451),
    ] as [(String, UInt32, UInt32, UInt32)])
  func hashes(_ text: String, _ long: UInt32, _ scrambled: UInt32, _ short: UInt32) {
    let name = KeyName(text)
    #expect(name.longHash == long)
    #expect(name.scrambled == scrambled)
    #expect(name.shortHash == short)
  }

  /// Only parts of long names are hashed, but their whole length counts.
  @Test func longNamesAreHashedInParts() {
    func name(_ count: Int, _ changed: Int?) -> KeyName {
      var letters = [Character](repeating: "a", count: count)
      if let changed { letters[changed] = "b" }
      return KeyName(String(letters))
    }
    for count in [23, 24, 95, 96, 97, 100, 200] {
      let plain = name(count, nil)
      for place in 0..<count {
        let other = name(count, place)
        let inLong =
          count <= 96 || place < 32 || (count / 2 - 16..<count / 2 + 16).contains(place) || place >= count - 32
        let inShort = count < 24 || place < 8 || place >= count - 16
        #expect((other.longHash != plain.longHash) == inLong, "\(place) of \(count)")
        #expect((other.shortHash != plain.shortHash) == inShort, "\(place) of \(count)")
      }
    }
    #expect(name(100, nil).longHash != name(101, nil).longHash)
  }

  @Test func tablesGrowAsTheyFill() {
    let names = (0..<3000).map { KeyName("key\($0)") }
    var table = GrowingKeyTable()
    var sizes: [Int: Int] = [:]
    for name in names {
      table.insert(name)
      table.insert(name)
      sizes[table.count] = table.layout.count
    }
    #expect(table.count == 3000 && Set(table.names) == Set(names))
    #expect([1, 3, 4, 6, 7, 12, 13, 24, 25].map { sizes[$0] } == [4, 4, 8, 8, 16, 16, 32, 32, 64])
    #expect(SizedKeyTable.order(table.names).map(Set.init) == Set(names))
    #expect(SizedKeyTable.order((0..<3572).map { KeyName("key\($0)") }) == nil)
  }

  // MARK: Stores that Apple's software made

  /// EasyLife 1.5.0: table L bucket by bucket, the order, and the table of the store.
  private static var easyLife: [Entity] {
    [
      Entity(
        name: "Project", attributes: Self.texts(["name"]),
        relationships: [Self.toMany("items", "TodoItem", inverse: "project")]),
      Entity(
        name: "TodoItem", attributes: Self.texts(["date", "done", "name", "notes", "repeats"]),
        relationships: [
          Self.toOne("project", "Project", inverse: "items"), Self.toMany("blockedBy", "TodoItem", inverse: "blocking"),
          Self.toMany("blocking", "TodoItem", inverse: "blockedBy"),
        ]),
    ]
  }

  @Test func easyLife() throws {
    let schema = schema(Self.easyLife, 849)
    let keys = "_ent _pk _opt".split(separator: " ").map { KeyName(String($0)) }
    var table = GrowingKeyTable(keys)
    for name in GrowingKeyTable(["date", "done", "name", "notes", "repeats"].map(KeyName.init)).names {
      table.insert(name)
    }
    for name in GrowingKeyTable(["blockedBy", "blocking", "project"].map(KeyName.init)).names {
      if name.text == "project" { table.insert(KeyName("_ZPROJECT")) }
      table.insert(name)
    }
    #expect(
      table.layout.map { $0 ?? "–" }.joined(separator: " ")
        == "project _ent blockedBy blocking name _pk _opt done – notes – repeats – – date _ZPROJECT")
    let order = try order(of: "TodoItem", in: schema)
    #expect(
      order.keys.joined(separator: " ")
        == "blocking _ent blockedBy _pk _opt _ZPROJECT notes project name done repeats date")
    #expect(order.doubt == nil)
    #expect(
      schema.joinTables.map(\.createStatement) == [
        "CREATE TABLE Z_2BLOCKING ( Z_2BLOCKEDBY INTEGER, Z_2BLOCKING INTEGER, "
          + "PRIMARY KEY (Z_2BLOCKEDBY, Z_2BLOCKING) )"
      ])
    #expect(schema.selfJoinTables.map(\.computed) == ["blocking"])
    #expect(schema.uncertainJoinTables.isEmpty && schema.unsupported.isEmpty)
  }

  /// DuckDuckGo's bookmarks of two versions; 15 and 16 keys, the order key among them.
  @Test(arguments: [(1333, [], 15), (1251, ["lastChildrenPayloadReceivedFromSync"], 16)] as [(Int64, [String], Int)])
  func bookmarks(_ framework: Int64, _ more: [String], _ keys: Int) throws {
    let schema = schema(
      [
        Entity(
          name: "BookmarkEntity",
          attributes: Self.texts(["isFolder", "isPendingDeletion", "modifiedAt", "title", "url", "uuid"] + more),
          relationships: [
            Self.toMany("children", "BookmarkEntity", inverse: "parent", ordered: true),
            Self.toMany("favoriteFolders", "BookmarkEntity", inverse: "favorites"),
            Self.toMany("favorites", "BookmarkEntity", inverse: "favoriteFolders", ordered: true),
            Self.toOne("parent", "BookmarkEntity", inverse: "children"),
          ])
      ], framework)
    let order = try order(of: "BookmarkEntity", in: schema)
    #expect(order.keys.count == keys)
    #expect(order.keys.contains("_Z_FOK_PARENT"))
    #expect(schema.joinTables.map(\.name) == ["Z_1FAVORITES"])
  }

  // MARK: What counts, and what does not

  /// Names of the app that no store has shown: each variation is compared with the rule computed by hand.
  @Test func whatHasAKey() throws {
    let entities = [
      Entity(
        name: "Base", attributes: Self.texts(["a"]),
        relationships: [Self.toOne("leader", "Other", inverse: "followers")]),
      Entity(
        name: "Node", parentName: "Base",
        attributes: Self.texts(["a", "b"]) + [Attribute(name: "t", type: .string, isTransient: true)],
        relationships: [
          Self.toMany("next", "Node", inverse: "previous"), Self.toMany("previous", "Node", inverse: "next"),
          Self.toMany("gone", "Node", inverse: nil, transient: true), Self.toOne("other", "Base"),
        ], fetchedProperties: [FetchedProperty(name: "fetched")]),
      Entity(
        name: "Other", relationships: [Self.toMany("followers", "Base", inverse: "leader", ordered: true)]),
    ]
    let schema = schema(entities)
    let order = try order(of: "Node", in: schema)
    #expect(
      Set(order.keys) == [
        "_ent", "_pk", "_opt", "a", "_ZLEADER", "leader", "b", "next", "previous", "_ZOTHER", "_Z1_OTHER", "other",
        "_Z_FOK_LEADER",
      ])
    #expect(order.doubt == nil)
    #expect(order.orderKeys == ["leader"])
  }

  /// An unrelated property can reverse the name of a table: therefore the name must be computed.
  @Test func anUnrelatedAttributeTurnsTheName() {
    func name(_ extra: [String]) -> String? {
      schema([
        Entity(
          name: "N", attributes: Self.texts(extra),
          relationships: [Self.toMany("to", "N", inverse: "from"), Self.toMany("from", "N", inverse: "to")])
      ]).joinTables.first?.name
    }
    let names = (0..<40).map { count in name((0..<count).map { "a\($0)" }) }
    #expect(Set(names) == ["Z_1TO", "Z_1FROM"])
  }

  /// A model that would take an hour with a slow algorithm takes moments.
  @Test func wideModelsAreOrderedQuickly() throws {
    let wide = (0..<1500).map { "attribute\($0)" }
    let schema = schema([
      Entity(
        name: "N", attributes: Self.texts(wide),
        relationships: [Self.toMany("to", "N", inverse: "from"), Self.toMany("from", "N", inverse: "to")])
    ])
    #expect(schema.uncertainJoinTables.isEmpty && schema.joinTables.count == 1)
    let more = self.schema([
      Entity(
        name: "N",
        relationships: (0..<1900).map { Self.toMany("r\($0)", "N", inverse: "i\($0)") }
          + (0..<1900).map { Self.toMany("i\($0)", "N", inverse: "r\($0)") })
    ])
    #expect(more.joinTables.count == 1900)
    #expect(more.uncertainJoinTables.first?.doubt == .tooManyKeys(count: 3803))
  }

  // MARK: Order keys

  /// Z_FOK columns are in the order of the to-ones by key, entity by entity.
  @Test func orderKeysStandInTheOrderOfKeys() throws {
    let names = ["alpha", "beta", "gamma", "delta", "epsilon"]
    let schema = schema([
      Entity(name: "Item", relationships: names.map { Self.toOne($0, "Owner", inverse: "\($0)s") }),
      Entity(
        name: "Owner", relationships: names.map { Self.toMany("\($0)s", "Item", inverse: $0, ordered: true) }),
      Entity(name: "Part", parentName: "Item", relationships: [Self.toOne("zeta", "Whole", inverse: "zetas")]),
      Entity(
        name: "Whole", parentName: "Owner",
        relationships: [Self.toMany("zetas", "Part", inverse: "zeta", ordered: true)]),
    ])
    let order = try order(of: "Item", in: schema)
    let columns = (schema.table(of: "Item")?.columns ?? []).map(\.name).filter { $0.hasPrefix("Z_FOK_") }
    #expect(columns == order.orderKeys.map { "Z_FOK_\($0.uppercased())" } + ["Z_FOK_ZETA"])
    #expect(order.orderKeys.sorted() == names.sorted() && order.orderKeys != names.sorted())
    #expect(order.orderKeys == order.keys.filter(names.contains))
  }

  // MARK: What is not covered

  @Test func hiddenKeysAndOtherLettersLeaveADoubt() throws {
    let pair = [Self.toMany("to", "N", inverse: "from"), Self.toMany("from", "N", inverse: "to")]
    let pointed = schema([
      Entity(name: "Base"), Entity(name: "N", parentName: "Base", relationships: pair),
      Entity(name: "O", relationships: [Self.toMany("bases", "Base", inverse: nil)]),
    ])
    #expect(pointed.uncertainJoinTables.map(\.doubt) == [.hiddenKey(entity: "O", relationship: "bases")])
    let letters = StoreSchema(
      model: ManagedObjectModel(
        name: "V1", entities: [Entity(name: "N", attributes: Self.texts(["größe"]), relationships: pair)]),
      frameworkVersion: 1344)
    #expect(letters.uncertainJoinTables.map(\.doubt) == [.lettersOutsideASCII(name: "größe")])
    // In other entities of the model neither matters.
    let elsewhere = schema([
      Entity(name: "N", relationships: pair), Entity(name: "Ö"),
      Entity(name: "O", relationships: [Self.toMany("ps", "P", inverse: nil)]), Entity(name: "P"),
    ])
    #expect(elsewhere.uncertainJoinTables.isEmpty)
    // A given name is certain.
    let given = schema(
      [
        Entity(name: "N", relationships: pair),
        Entity(name: "O", relationships: [Self.toMany("ns", "N", inverse: nil)]),
      ], naming: ["N.to"])
    #expect(given.uncertainJoinTables.isEmpty && given.contradictedJoinTables.isEmpty)
    #expect(given.joinTables.map(\.name) == ["Z_1TO"])
  }

  @Test func whatIsGivenAgainstTheRuleIsFollowedAndSeen() throws {
    let schema = schema(Self.easyLife, naming: ["TodoItem.blockedBy"])
    #expect(schema.joinTables.map(\.name) == ["Z_2BLOCKEDBY"])
    #expect(schema.contradictedJoinTables.map(\.computed) == ["blocking"])
    #expect(self.schema(Self.easyLife, naming: ["TodoItem.blocking"]).contradictedJoinTables.isEmpty)
  }
}
