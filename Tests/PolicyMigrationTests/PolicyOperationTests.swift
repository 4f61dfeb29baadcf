// Each change and each request of a policy, over one world that has every kind of attribute and relationship.

import BlockingTests
import Expressions
import ManagedObjectModel
import MigrationPolicy
import PersistentStore
import PropertyLists
import Testing

@testable import MappingModel
@testable import MigrationEngine
@testable import PolicyMigration

/// A world whose objects a policy inserts in `begin`.
enum EveryKind {
  static let attributes = [
    attribute("int16", .integer16), attribute("int32", .integer32), attribute("int64", .integer64),
    attribute("flag", .boolean), attribute("double", .double), attribute("float", .float),
    attribute("decimal", .decimal), attribute("string"), attribute("date", .date), attribute("data", .binary),
    attribute("photo", .binary, external: true), attribute("uuid", .uuid), attribute("uri", .uri),
    attribute("archive", .transformable),
  ]
  static let relationships = [
    toOne("parent", "Node", inverse: "children"), toMany("children", "Node", inverse: "parent", ordered: true),
    toOne("partner", "Node", inverse: "partner"), toOne("home", "Home", inverse: "node"),
    toMany("tags", "Tag", inverse: "nodes", ordered: true), toMany("loose", "Tag"), toOne("single", "Tag"),
  ]
  static let model = [
    entity("Node", attributes, relationships), entity("Leaf", parent: "Node", [attribute("extra")]),
    entity("Home", [attribute("name")], [toOne("node", "Node", inverse: "home")]),
    entity(
      "Tag", [attribute("name", value: .string("none"))], [toMany("nodes", "Node", inverse: "tags", ordered: true)]),
    entity("Base", abstract: true, [attribute("a")]), entity("Concrete", parent: "Base"),
  ]

  static var copies: [String: ExpressionNode] {
    Dictionary(uniqueKeysWithValues: attributes.map { ($0.name, source($0.name)) })
  }

  /// Makes a mapping of the nodes with a policy, and one of the tags without.
  static func world(_ rows: String = "", options: EngineOptions = EngineOptions()) throws -> PolicyWorld {
    let world = try PolicyWorld(
      from: model, to: model,
      [
        [
          mapping("Tags", "Tag", "Tag", type: .copy, ["name": source("name")]),
          mapping("Nodes", "Node", "Node", policy: "P", copies),
        ]
      ], rows)
    world.options = options
    return world
  }

  /// Runs a policy whose `begin` does all the work.
  static func begin(
    _ rows: String = "", _ body: @escaping (Pen) throws -> Void
  ) throws -> PolicyWorld {
    let world = try world(rows)
    try world.run(
      ClosurePolicies([
        "P": { call, pen in
          guard case .begin = call else { return nil }
          try body(pen)
          return .done([])
        }
      ]))
    return world
  }
}

@Suite(.blocking) struct PolicyOperationTests {
  @Test func defaultCreationByAPolicyLosesNothing() throws {
    let world = try EveryKind.world(
      """
      INSERT INTO ZNODE (Z_PK, Z_ENT, Z_OPT, ZINT16, ZINT32, ZINT64, ZFLAG, ZDOUBLE, ZFLOAT, ZDECIMAL, \
      ZSTRING, ZDATE, ZDATA,
        ZPHOTO, ZUUID, ZURI, ZARCHIVE) VALUES
        (3, 4, 9, -32768, -2147483648, -9223372036854775808, 1, 0.1, 0.5, 12345.678, \
        'ä' || char(0) || 'b', 700000000.25, X'0102',
         X'01FFD8', X'000102030405060708090A0B0C0D0E0F', 'x:y', X'62'),
        (5, 4, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (6, 4, 1, 0, 0, 0, 0, 1e300, -0.0, 10, '', 12, X'', \
        X'0237363245314230302D303030302D343030302D383030302D30303030303030303030303100', NULL, '', X'');
      """)
    try world.externalFile("762E1B00-0000-4000-8000-000000000001", [1, 2, 3, 4])
    var seen: [PolicyValue] = []
    try world.run(
      ClosurePolicies([
        "P": { call, _ in
          if case .createDestinationInstances(let all) = call { seen = all.map { $0.source.values["photo"] ?? .null } }
          return nil
        }
      ]))
    // The policy sees the content; the staged store still refers to the file.
    #expect(seen == [.data([0xff, 0xd8]), .null, .data([1, 2, 3, 4])])
    let columns = EveryKind.attributes.map { "Z" + $0.name.uppercased() }.joined(separator: ", ")
    let types = EveryKind.attributes.map { "typeof(Z\($0.name.uppercased()))" }.joined(separator: ", ")
    for query in [columns, types] {
      let sql = "SELECT Z_PK, \(query) FROM ZNODE ORDER BY 1"
      #expect(try world.rows(sql) == world.sourceRows(sql))
    }
    #expect(try world.rows("SELECT Z_OPT FROM ZNODE") == [["1"], ["1"], ["1"]])
  }

  @Test func defaultsFillWhatIsNotNamedAndStandardKeysAreKept() throws {
    let world = try EveryKind.begin(
      "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (40, 6, 1, NULL), (2, 6, 1, 'b')"
    ) { pen in
      _ = try pen.insert("Tag")
      _ = try pen.insert("Tag", ["name": .null])
      _ = try pen.insert("Tag", ["name": .string("c")])
    }
    #expect(
      try world.rows("SELECT Z_PK, ZNAME FROM ZTAG ORDER BY 1") == [
        ["2", "b"], ["40", "–"], ["41", "none"], ["42", "–"], ["43", "c"],
      ])
  }

  @Test func keysOfPoliciesNeverMeetThoseOfOtherMappings() throws {
    let world = try PolicyWorld(
      from: [
        entity("Item", [attribute("name")], [toOne("order", "Order", inverse: "items")]),
        entity("Order", [attribute("name")], [toMany("items", "Item", inverse: "order")]),
      ], to: [entity("Line", [attribute("name")])],
      [
        [
          mapping("OrdersByPolicy", "Order", "Line", policy: "P", ["name": source("name")]),
          ExplicitEntityMapping(
            name: "Lines", type: .custom, source: "Order", destination: "Line",
            attributes: [
              ExplicitPropertyMapping(
                name: "name", value: .expression(.keyPath(.variable("each"), [.key("name")])))
            ], grouping: .expand(source("items"), entity: "Item")),
          mapping("Orders", "Order", "Line", type: .copy, ["name": source("name")]),
        ]
      ],
      "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 2, 1, 'o1'), (4, 2, 1, 'o4');"
        + "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZORDER, ZNAME) VALUES (1, 1, 1, 1, 'a'), (2, 1, 1, 1, 'b'), "
        + "(3, 1, 1, 4, 'c')"
    )
    var keys: [Int64] = []
    try world.run(
      ClosurePolicies([
        "P": { call, pen in
          switch call {
          case .begin, .endInstanceCreation, .end:
            keys.append(try pen.insert("Line", ["name": .string("p")]).key)
            return .done([])
          default: return nil
          }
        }
      ]))
    #expect(
      try world.rows("SELECT ZNAME, count(*) FROM ZLINE GROUP BY 1 ORDER BY 1") == [
        ["a", "1"], ["b", "1"], ["c", "1"], ["o1", "2"], ["o4", "2"], ["p", "3"],
      ])
    #expect(keys == keys.sorted())
    #expect(try world.rows("SELECT max(Z_PK) FROM ZLINE") == [[String(try #require(keys.last))]])
  }

  // MARK: Relationships: both ends agree after each kind of change

  @Test func toOnesAndOrderedToManysFollowEachOther() throws {
    let world = try EveryKind.begin { pen in
      let (a, b) = (try pen.insert("Node", ["string": .string("a")]), try pen.insert("Leaf", ["string": .string("b")]))
      // References in one batch may precede the insertion of their objects.
      let c = try pen.insert("Node", ["parent": .object(a), "string": .string("c")])
      let d = try pen.insert("Node", ["parent": .object(a), "string": .string("d")])
      let e = try pen.insert("Leaf", ["parent": .object(a), "string": .string("e")])
      let parent = PolicyObjectID(side: .destination, entity: "Leaf", key: e.key + 2)
      _ = try pen.insert("Node", ["parent": .object(parent), "string": .string("f")])
      _ = try pen.insert("Leaf", ["string": .string("g")])
      #expect(try pen.children(a) == [c, d, e])
      pen.set(a, ["children": .objects([e, c])])
      #expect(try pen.children(a) == [e, c])
      pen.operations.append(.add(a, relationship: "children", [d, e, b]))
      #expect(try pen.children(a) == [e, c, d, b])
      pen.operations.append(.remove(a, relationship: "children", [c, a]))
      #expect(try pen.children(a) == [e, d, b])
      pen.set(d, ["parent": .object(b)])
      #expect(try pen.children(a) == [e, b])
      #expect(try pen.children(b) == [d])
      // Setting the same object keeps its position.
      pen.set(e, ["parent": .object(a)])
      #expect(try pen.children(a) == [e, b])
      pen.set(b, ["parent": .null])
      #expect(try pen.children(a) == [e])
    }
    #expect(
      try world.rows(
        "SELECT n.ZSTRING, p.ZSTRING, p.Z_ENT IS n.Z\(try #require(world.destination.number(of: "Node")))_PARENT"
          + " FROM ZNODE n LEFT JOIN ZNODE p ON p.Z_PK = n.ZPARENT ORDER BY 1") == [
          ["a", "–", "1"], ["b", "–", "1"], ["c", "–", "1"], ["d", "b", "1"], ["e", "a", "1"], ["f", "g", "1"],
          ["g", "–", "1"],
        ])
  }

  @Test func oneToOnesAreNeverSharedAlsoByAnObjectWithItself() throws {
    let world = try EveryKind.begin { pen in
      let nodes = try (0..<4).map { try pen.insert("Node", ["string": .string("n\($0)")]) }
      let homes = try (0..<3).map { try pen.insert("Home", ["name": .string("h\($0)")]) }
      pen.set(nodes[0], ["home": .object(homes[0])])
      pen.set(nodes[1], ["home": .object(homes[1])])
      pen.set(homes[0], ["node": .object(nodes[1])])
      // n1 has left h1, and h0 has left n0.
      _ = try pen.insert("Home", ["name": .string("h3"), "node": .object(nodes[1])])
      pen.set(nodes[2], ["home": .object(homes[2])])
      pen.set(nodes[2], ["home": .null])
      // Partners are the inverse of each other.
      pen.set(nodes[0], ["partner": .object(nodes[1])])
      pen.set(nodes[2], ["partner": .object(nodes[1])])
      pen.set(nodes[3], ["partner": .object(nodes[3])])
    }
    #expect(
      try world.rows(
        "SELECT n.ZSTRING, h.ZNAME, h.ZNODE IS n.Z_PK, p.ZSTRING FROM ZNODE n LEFT JOIN ZHOME h ON h.Z_PK = n.ZHOME"
          + " LEFT JOIN ZNODE p ON p.Z_PK = n.ZPARTNER ORDER BY 1") == [
          ["n0", "–", "0", "–"], ["n1", "h3", "1", "n2"], ["n2", "–", "0", "n1"], ["n3", "–", "0", "n3"],
        ])
    #expect(try world.rows("SELECT count(ZNODE) FROM ZHOME") == [["1"]])
  }

  @Test func manyToManysKeepPairsOnceAndInOrderAtBothEnds() throws {
    let world = try EveryKind.begin { pen in
      let nodes = try (0..<2).map { try pen.insert("Node", ["string": .string("n\($0)")]) }
      let tags = try ["a", "b", "c"].map { try pen.insert("Tag", ["name": .string($0)]) }
      pen.set(nodes[0], ["tags": .objects([tags[2], tags[0], tags[2]])])
      pen.operations.append(.add(nodes[0], relationship: "tags", [tags[1], tags[0]]))
      pen.operations.append(.add(tags[0], relationship: "nodes", [nodes[1], nodes[0]]))
      #expect(try pen.members(nodes[0], "tags") == [tags[2], tags[0], tags[1]])
      #expect(try pen.members(tags[0], "nodes") == [nodes[0], nodes[1]])
      pen.set(tags[0], ["nodes": .objects([nodes[1], nodes[0]])])
      #expect(try pen.members(tags[0], "nodes") == [nodes[1], nodes[0]])
      pen.operations.append(.remove(nodes[0], relationship: "tags", [tags[2]]))
      #expect(try pen.members(nodes[0], "tags") == [tags[1], tags[0]])
      #expect(try pen.members(tags[2], "nodes").isEmpty)
      // Without an inverse: a target can have only one owner.
      pen.set(nodes[0], ["loose": .objects([tags[0], tags[1]]), "single": .object(tags[2])])
      pen.operations.append(.add(nodes[1], relationship: "loose", [tags[1]]))
      #expect(try pen.members(nodes[0], "loose") == [tags[0]])
      #expect(try pen.members(nodes[1], "loose") == [tags[1]])
      pen.operations.append(.remove(nodes[0], relationship: "loose", [tags[1], tags[0]]))
      #expect(try pen.members(nodes[0], "loose").isEmpty)
      #expect(try pen.members(nodes[1], "loose") == [tags[1]])
    }
    let pairs = try world.pairs("Node", "tags")
    #expect(
      try world.rows(
        "SELECT n.ZSTRING, t.ZNAME FROM \(pairs.table) p JOIN ZNODE n ON n.Z_PK = p.\(pairs.owner)"
          + " JOIN ZTAG t ON t.Z_PK = p.\(pairs.target) ORDER BY 1, p.\(pairs.order)") == [
          ["n0", "b"], ["n0", "a"], ["n1", "a"],
        ])
  }

  @Test func deletingTakesReferencesAndAssociationsAlong() throws {
    let world = try EveryKind.world(
      "INSERT INTO ZNODE (Z_PK, Z_ENT, Z_OPT, ZSTRING) VALUES (1, 4, 1, 'a'), (2, 4, 1, 'b'), (3, 4, 1, 'c');"
        + "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 6, 1, 't')")
    let tag = PolicyObjectID(side: .destination, entity: "Tag", key: 1)
    func node(_ key: Int64) -> PolicyObjectID { PolicyObjectID(side: .destination, entity: "Node", key: key) }
    var visited: [PolicyObjectID] = []
    try world.run(
      ClosurePolicies([
        "P": { call, pen in
          switch call {
          case .createRelationships(let ids): visited += ids
          case .endInstanceCreation:
            let home = try pen.insert("Home")
            pen.set(
              node(2),
              [
                "parent": .object(node(1)), "partner": .object(node(3)), "home": .object(home), "tags": .objects([tag]),
                "loose": .objects([tag]),
              ])
            pen.set(node(3), ["parent": .object(node(2)), "single": .object(tag)])
            pen.operations.append(.delete(node(2)))
            #expect(try pen.ids(.destinationInstances(mapping: "Nodes", sources: nil)).map(\.key) == [1, 3])
            #expect(try pen.ids(.sourceInstances(mapping: "Nodes", destinations: nil)).map(\.key) == [1, 3])
            #expect(
              try pen.objects(.fetch(side: .destination, entity: "Node", predicate: nil, limit: nil)).map(\.id) == [
                node(1), node(3),
              ])
            return .done([])
          default: break
          }
          return nil
        }
      ]))
    #expect(visited == [node(1), node(3)])
    #expect(
      try world.rows("SELECT Z_PK, ZPARENT, ZPARTNER, ZSINGLE FROM ZNODE ORDER BY 1") == [
        ["1", "–", "–", "–"], ["3", "–", "–", "1"],
      ])
    #expect(try world.rows("SELECT ZNODE FROM ZHOME") == [["–"]])
    #expect(try world.rows("SELECT count(*) FROM \(try world.pairs("Node", "tags").table)") == [["0"]])
  }

  // MARK: Requests

  @Test func questionsAreAnsweredFromBothSidesAsTheyAre() throws {
    let world = try EveryKind.world(
      "INSERT INTO ZNODE (Z_PK, Z_ENT, Z_OPT, ZSTRING, ZINT16, ZPARENT, Z4_PARENT, Z_FOK_PARENT) "
        + "VALUES (1, 4, 1, 'a', 5, NULL, NULL, NULL),"
        + " (2, 4, 1, 'b', 6, 1, 4, 4096), (3, 5, 1, 'c', NULL, 1, 4, 2048);"
        + "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (7, 6, 1, 't'), (8, 6, 1, 'u')")
    func at(_ side: PolicyObjectID.Side, _ entity: String, _ key: Int64) -> PolicyObjectID {
      PolicyObjectID(side: side, entity: entity, key: key)
    }
    try world.run(
      ClosurePolicies([
        "P": { call, pen in
          guard case .endInstanceCreation = call else { return nil }
          // Values; to-ones with their concrete entity; to-manys in order if they are named.
          let children = try pen.objects(.values([at(.source, "Node", 1)], properties: ["children", "int16"]))
          #expect(
            children.first?.values == [
              "children": .objects([at(.source, "Leaf", 3), at(.source, "Node", 2)]), "int16": .integer(5),
            ])
          let all = try pen.objects(.values([at(.source, "Leaf", 3)], properties: []))
          #expect(all.first?.values["parent"] == .object(at(.source, "Node", 1)))
          #expect(all.first?.values.count == EveryKind.attributes.count + 1 + 4)
          #expect(all.first?.values["children"] == nil)
          // The objects of an entity and its subentities.
          func fetched(_ side: PolicyObjectID.Side, _ entity: String, _ predicate: String?, _ limit: Int? = nil) throws
            -> [PolicyObjectID]
          {
            try pen.objects(.fetch(side: side, entity: entity, predicate: predicate, limit: limit)).map(\.id)
          }
          #expect(
            try fetched(.source, "Node", nil) == [
              at(.source, "Node", 1), at(.source, "Node", 2), at(.source, "Leaf", 3),
            ])
          #expect(try fetched(.source, "Leaf", nil) == [at(.source, "Leaf", 3)])
          #expect(
            try fetched(.source, "Node", "int16 > 5 OR int16 == nil") == [
              at(.source, "Node", 2), at(.source, "Leaf", 3),
            ])
          #expect(try fetched(.source, "Node", "parent.string == 'a'", 1) == [at(.source, "Node", 2)])
          #expect(try fetched(.source, "Node", nil, 0).isEmpty)
          // The mapping does not include leaves; tags are found by arithmetic.
          #expect(try fetched(.destination, "Node", nil) == [at(.destination, "Node", 1), at(.destination, "Node", 2)])
          #expect(
            try pen.ids(
              .destinationInstances(
                mapping: "Tags", sources: [at(.source, "Tag", 8), at(.source, "Tag", 9), at(.source, "Tag", 7)]))
              == [at(.destination, "Tag", 8), at(.destination, "Tag", 7)])
          #expect(
            try pen.ids(.sourceInstances(mapping: "Tags", destinations: [at(.destination, "Tag", 7)])) == [
              at(.source, "Tag", 7)
            ])
          #expect(try pen.ids(.destinationInstances(mapping: "Tags", sources: nil)).count == 2)
          #expect(
            try pen.ids(
              .destinationInstances(mapping: "Nodes", sources: [at(.source, "Node", 2), at(.source, "Leaf", 3)])) == [
                at(.destination, "Node", 2)
              ])
          // An object may be made of several, and several of one.
          pen.operations += [
            .associate(source: at(.source, "Leaf", 3), destination: at(.destination, "Node", 2)),
            .associate(source: at(.source, "Leaf", 3), destination: at(.destination, "Node", 1)),
            .associate(source: at(.source, "Leaf", 3), destination: at(.destination, "Node", 2)),
          ]
          #expect(
            try pen.ids(.destinationInstances(mapping: "Nodes", sources: [at(.source, "Leaf", 3)])).map(\.key) == [
              2, 1,
            ])
          #expect(
            try pen.ids(.sourceInstances(mapping: "Nodes", destinations: [at(.destination, "Node", 2)])) == [
              at(.source, "Node", 2), at(.source, "Leaf", 3),
            ])
          // Lookup tables: keys of different types are different keys, and tables are separate.
          for (index, key) in PolicyPieceTests.values.enumerated() {
            #expect(try pen.ask(.lookup(table: "t", key: key)) == .value(.null))
            #expect(try pen.ask(.remember(table: "t", key: key, .integer(Int64(index)))) == .done)
          }
          for (index, key) in PolicyPieceTests.values.enumerated() {
            #expect(try pen.ask(.lookup(table: "t", key: key)) == .value(.integer(Int64(index))))
            #expect(try pen.ask(.lookup(table: "u", key: key)) == .value(.null))
          }
          #expect(try pen.ask(.remember(table: "t", key: .null, .string("new"))) == .done)
          #expect(try pen.ask(.lookup(table: "t", key: .null)) == .value(.string("new")))
          #expect(try pen.ask(.log("made \(3) objects")) == .done)
          // A request that cannot be answered is refused, and the hop continues.
          let refused: [PolicyRequest] = [
            .fetch(side: .source, entity: "Nobody", predicate: nil, limit: nil),
            .fetch(side: .source, entity: "Node", predicate: "nothing == 1", limit: nil),
            .fetch(side: .source, entity: "Node", predicate: "int16 ==", limit: nil),
            .values([at(.source, "Node", 99)], properties: []), .values([at(.source, "Node", 3)], properties: []),
            .values([at(.source, "Node", 1)], properties: ["nothing"]),
            .destinationInstances(mapping: "Nothing", sources: nil),
            .destinationInstances(mapping: "Tags", sources: [at(.destination, "Tag", 7)]),
          ]
          for request in refused {
            guard case .refused(let reason) = try pen.ask(request) else {
              Issue.record("\(request) was answered")
              continue
            }
            #expect(!reason.isEmpty)
          }
          return .done([])
        }
      ]))
    #expect(world.notes.contains(.policyOutput(policy: "P", mapping: "Nodes", line: "made 3 objects")))
  }

  @Test func answersAreBounded() throws {
    let world = try EveryKind.world(
      "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 3000)"
        + " INSERT INTO ZNODE (Z_PK, Z_ENT, Z_OPT, ZDATA) SELECT v, 4, 1, zeroblob(2000) FROM n;"
        + "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 20000)"
        + " INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) SELECT v, 6, 1 FROM n;",
      options: EngineOptions(memoryLimit: 4 << 20))
    var largest = 0
    try world.run(
      ClosurePolicies([
        "P": { call, pen in
          switch call {
          case .createDestinationInstances(let all): largest = max(largest, all.count)
          case .begin:
            for request in [
              PolicyRequest.fetch(side: .source, entity: "Node", predicate: nil, limit: nil),
              .destinationInstances(mapping: "Tags", sources: nil),
            ] {
              guard case .refused = try pen.ask(request) else {
                Issue.record("answered \(request)")
                continue
              }
            }
            #expect(try pen.objects(.fetch(side: .source, entity: "Node", predicate: nil, limit: 100)).count == 100)
          default: break
          }
          return nil
        }
      ]))
    // Source and standard object share the value: 2,000 bytes each, within 256 KiB.
    #expect(largest > 40 && largest < 140)
    #expect(try world.rows("SELECT count(*), sum(length(ZDATA)) FROM ZNODE") == [["3000", "6000000"]])
  }

  // MARK: Methods of the policy in expressions

  @Test func methodsGiveAttributesAndRelationships() throws {
    let model = [
      entity(
        "Item", [attribute("a"), attribute("n", .integer32), attribute("x", .date)],
        [toOne("next", "Item", inverse: "previous"), toOne("previous", "Item", inverse: "next"), toMany("all", "Item")])
    ]
    let world = try PolicyWorld(
      from: model, to: model,
      [
        [
          mapping(
            "Items", "Item", "Item", policy: "P",
            [
              "a": .policyMethod(selector: "text:with:", [source("a"), .constant(.integer(3))]),
              "n": .policyMethod(selector: "number:", [source("next", "n")]), "x": source("x"),
            ],
            ["next": .policyMethod(selector: "next:all:", [.variable("source"), source("all")])])
        ]
      ],
      "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZA, ZN, ZNEXT, Z1ALL) VALUES (1, 1, 1, 'a', 10, 2, NULL), "
        + "(2, 1, 1, NULL, 20, NULL, 1), (3, 1, 1, 'c', 30, 2, 1)"
    )
    var asked: [String: [[PolicyValue]]] = [:]
    try world.run(
      ClosurePolicies([
        "P": { call, _ in
          guard case .method(let selector, let arguments) = call else { return nil }
          asked[selector, default: []] += arguments
          switch selector {
          case "text:with:": return .results(arguments.map { $0[0] == .null ? .string("none") : $0[0] })
          case "number:": return .results(arguments.map { $0[0] })
          default:
            return .results(
              arguments.map { arguments in
                guard case .objects(let ids) = arguments[1], let last = ids.last else { return .null }
                return .object(PolicyObjectID(side: .destination, entity: "Item", key: last.key))
              })
          }
        }
      ]))
    let ids = (1...3).map { PolicyObjectID(side: .source, entity: "Item", key: $0) }
    #expect(asked["text:with:"] == [[.string("a"), .integer(3)], [.null, .integer(3)], [.string("c"), .integer(3)]])
    #expect(asked["number:"] == [[.integer(20)], [.null], [.integer(20)]])
    #expect(
      asked["next:all:"] == [
        [.object(ids[0]), .objects([ids[1], ids[2]])], [.object(ids[1]), .objects([])],
        [.object(ids[2]), .objects([])],
      ])
    #expect(
      try world.rows("SELECT Z_PK, ZA, ZN, ZNEXT, ZPREVIOUS FROM ZITEM ORDER BY 1") == [
        ["1", "a", "20", "3", "–"], ["2", "none", "–", "–", "–"], ["3", "c", "20", "–", "1"],
      ])
  }
}

extension Pen {
  func members(_ id: PolicyObjectID, _ relationship: String) throws -> [PolicyObjectID] {
    guard case .objects(let ids)? = try objects(.values([id], properties: [relationship])).first?.values[relationship]
    else {
      throw PolicyFailure("no list")
    }
    return ids
  }

  func children(_ id: PolicyObjectID) throws -> [PolicyObjectID] { try members(id, "children") }
}
