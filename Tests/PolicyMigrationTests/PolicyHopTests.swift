// The policies of real projects, as closures over small stores of the same kind: the result must be that of Core Data
// for such mappings. Expected results are those that the projects' own tests assert, row by row.

import BlockingTests
import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPolicy
import PersistentStore
import PropertyLists
import Testing

@testable import MigrationEngine
@testable import PolicyMigration

@Suite(.blocking) struct PolicyHopTests {
  // MARK: Books, authors, files: lookup tables shared by mappings, several objects per source object, user info

  static let books1 = [
    entity(
      "Book", [attribute("title"), attribute("authorName"), attribute("fileURL", .transformable)],
      [toOne("user", "User", inverse: "books")]),
    entity("User", [attribute("userId", .integer64)], [toMany("books", "Book", inverse: "user")]),
  ]
  static let books2 = [
    entity(
      "Book", [attribute("title"), attribute("fileURL", .transformable)],
      [toMany("authors", "Author", inverse: "books"), toMany("users", "User", inverse: "books")]),
    entity("Author", [attribute("name")], [toMany("books", "Book", inverse: "authors")]),
    entity("User", [attribute("userId", .integer64)], [toMany("books", "Book", inverse: "users")]),
  ]

  /// "Create a book by hand, copy the attributes that both have but never a nil, find or make the author of that name."
  static func bookPolicy(_ call: PolicyCall, _ pen: Pen) throws -> PolicyReply? {
    guard case .createDestinationInstances(let instances) = call else { return nil }
    #expect(pen.introduction.userInfo["modelVersion"] == .string("2"))
    let known = try #require(pen.introduction.destinationEntities.first { $0.name == "Book" }).properties
    for instance in instances {
      let copied = instance.source.values.filter {
        $0.value != .null && known[$0.key]?.destination == nil && known[$0.key] != nil
      }
      let book = try pen.insert("Book", copied)
      let name = try #require(instance.source.values["authorName"])
      var author = try pen.remembered("authors", name)
      if author == nil {
        let made = try pen.insert("Author", ["name": name])
        try pen.remember("authors", name, made)
        author = made
      }
      pen.operations.append(.add(book, relationship: "authors", [try #require(author)]))
      pen.associate(instance, book)
    }
    return .done([])
  }

  static func booksWorld(_ rows: String = "") throws -> PolicyWorld {
    try PolicyWorld(
      from: books1, to: books2,
      [
        [
          mapping(
            "BookToBook", "Book", "Book", policy: "BookPolicy", userInfo: ["modelVersion": .string("2")],
            ["title": .constant(.string("the mapping's own value is not asked for"))]),
          mapping(
            "UserToUser", "User", "User", type: .transform, ["userId": source("userId")],
            ["books": made(by: "BookToBook", of: "books")]),
        ]
      ],
      rows.isEmpty
        ? """
        INSERT INTO ZUSER (Z_PK, Z_ENT, Z_OPT, ZUSERID) VALUES (1, 2, 1, 1), (2, 2, 1, 1), (3, 2, 1, 1);
        INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZUSER, ZTITLE, ZAUTHORNAME, ZFILEURL) VALUES
          (11, 1, 4, 3, 'The Trial', 'Franz Kafka', X'01'), (12, 1, 1, 3, 'Cosmos', 'Witold Gombrowicz', X'02'),
          (15, 1, 1, 3, 'Metamorphosis', 'Franz Kafka', X'03'), (16, 1, 1, 3, NULL, 'Thomas Bernhard', NULL);
        """ : rows)
  }

  @Test func authorsBecomeAnEntityAndEachNameIsOneObject() throws {
    let world = try Self.booksWorld()
    let before = try world.sourceBytes()
    let policies = ClosurePolicies(["BookPolicy": Self.bookPolicy])
    try world.run(policies)
    let (authors, users) = (try world.pairs("Book", "authors"), try world.pairs("Book", "users"))
    #expect(
      try world.rows(
        "SELECT b.ZTITLE, a.ZNAME, b.ZFILEURL, b.Z_OPT, u.ZUSERID, u.Z_PK FROM ZBOOK b"
          + " LEFT JOIN \(authors.table) p ON p.\(authors.owner) = b.Z_PK "
          + "LEFT JOIN ZAUTHOR a ON a.Z_PK = p.\(authors.target)"
          + " LEFT JOIN \(users.table) q ON q.\(users.owner) = b.Z_PK LEFT JOIN ZUSER u ON u.Z_PK = q.\(users.target)"
          + " ORDER BY b.Z_PK") == [
          ["The Trial", "Franz Kafka", "x01", "1", "1", "3"], ["Cosmos", "Witold Gombrowicz", "x02", "1", "1", "3"],
          ["Metamorphosis", "Franz Kafka", "x03", "1", "1", "3"], ["–", "Thomas Bernhard", "–", "1", "1", "3"],
        ])
    #expect(try world.rows("SELECT count(*) FROM ZAUTHOR") == [["3"]])
    // The policy makes the objects itself, so their keys are above those of the source.
    #expect(try world.rows("SELECT min(Z_PK) FROM ZBOOK") == [["17"]])
    #expect(
      try world.rows("SELECT Z_NAME, Z_MAX FROM Z_PRIMARYKEY ORDER BY Z_NAME") == [
        ["Author", "3"], ["Book", "20"], ["User", "3"],
      ])
    #expect(try world.rows("SELECT name FROM sqlite_master WHERE name LIKE 'HOPD%'").isEmpty)
    #expect(try world.sourceBytes() == before)
    #expect(policies.opened == 1 && policies.closed == 1)
    let names = policies.calls.map(\.title)
    #expect(
      names == [
        "begin", "createDestinationInstances", "endInstanceCreation", "createRelationships", "endRelationshipCreation",
        "performCustomValidation", "end",
      ])
  }

  // MARK: Countries and continents: default creation, then a to-one to an object made once per code

  @Test func defaultCreationAndAnObjectPerCode() throws {
    let world = try PolicyWorld(
      from: [entity("Country", [attribute("code", .integer64), attribute("isoContinent", .integer64)])],
      to: [
        entity(
          "Continent", [attribute("code", .integer64), attribute("moods", .integer64, value: .integer(7))],
          [toMany("countries", "Country", inverse: "continent")]),
        entity("Country", [attribute("code", .integer64)], [toOne("continent", "Continent", inverse: "countries")]),
      ],
      [
        [
          mapping(
            "CountryToCountry", "Country", "Country", policy: "Migrations.Country5ToCountry6Policy",
            ["code": source("code")])
        ]
      ],
      """
      INSERT INTO ZCOUNTRY (Z_PK, Z_ENT, Z_OPT, ZCODE, ZISOCONTINENT) VALUES
        (4, 1, 1, 704, 10005), (7, 1, 1, 710, 10004), (9, 1, 2, 231, 10004), (12, 1, 1, 999, NULL);
      """)
    try world.run(
      ClosurePolicies([
        "Migrations.Country5ToCountry6Policy": { call, pen in
          guard case .createDestinationInstances(let instances) = call else { return nil }
          for instance in instances {
            let country = pen.standard(instance)
            guard let code = instance.source.values["isoContinent"], code != .null else { continue }
            guard case .integer(let number) = code else { throw PolicyFailure("no number") }
            let found = try pen.objects(
              .fetch(side: .destination, entity: "Continent", predicate: "code == \(number)", limit: 1))
            let continent = try found.first?.id ?? pen.insert("Continent", ["code": code])
            pen.set(country, ["continent": .object(continent)])
          }
          return .done([])
        }
      ]))
    // Default creation keeps the key of the source.
    #expect(
      try world.rows(
        "SELECT c.Z_PK, c.ZCODE, n.ZCODE, n.ZMOODS FROM ZCOUNTRY c LEFT JOIN ZCONTINENT n ON n.Z_PK = c.ZCONTINENT "
          + "ORDER BY 1"
      )
        == [
          ["4", "704", "10005", "7"], ["7", "710", "10004", "7"], ["9", "231", "10004", "7"], ["12", "999", "–", "–"],
        ])
    #expect(try world.rows("SELECT count(*) FROM ZCONTINENT") == [["2"]])
  }

  // MARK: Values that change their type, and the objects that exist when a policy sends a request

  @Test func aPolicyConvertsWhatTheMappingLeavesAsItIs() throws {
    func world() throws -> PolicyWorld {
      try PolicyWorld(
        from: [entity("Book", [attribute("number", .integer32)])], to: [entity("Book", [attribute("number")])],
        [[mapping("BookToBook", "Book", "Book", policy: "NumberPolicy", ["number": source("number")])]],
        "INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZNUMBER) VALUES (1, 1, 1, 41), (2, 1, 1, NULL), (3, 1, 1, 43)")
    }
    let converted = try world()
    try converted.run(
      ClosurePolicies([
        "NumberPolicy": { call, pen in
          guard case .createDestinationInstances(let instances) = call else { return nil }
          for instance in instances {
            var values = instance.standard.values
            if case .integer(let number)? = values["number"] { values["number"] = .string("no. \(number)") }
            pen.operations.append(.insert(PolicyObject(id: instance.standard.id, values: values)))
            pen.associate(instance, instance.standard.id)
          }
          return .done([])
        }
      ]))
    #expect(try converted.rows("SELECT Z_PK, ZNUMBER FROM ZBOOK") == [["1", "no. 41"], ["2", "–"], ["3", "no. 43"]])
    // If the value remains, the error names the row.
    let left = try world()
    let error = policyError { try left.run(ClosurePolicies(["NumberPolicy": { _, _ in nil }])) }
    #expect(error?.place.property == "number" && error?.place.row == 1, "\(String(describing: error))")
  }

  /// Mappings after a policy make their objects after it, even those that could be made together with earlier ones.
  @Test func aPolicySeesWhatTheMappingsBeforeItHaveMade() throws {
    let kinds = [
      entity("Leaf", abstract: false, [attribute("name")]), entity("Oak", parent: "Leaf"),
      entity("Birch", parent: "Leaf"), entity("Gardener", [attribute("name")]),
    ]
    let world = try PolicyWorld(
      from: kinds, to: kinds,
      [
        [
          mapping("Oaks", "Oak", "Oak", type: .transform, ["name": source("name")]),
          mapping("Gardeners", "Gardener", "Gardener", policy: "CountPolicy"),
          mapping("Birches", "Birch", "Birch", type: .transform, ["name": source("name")]),
        ]
      ],
      """
      INSERT INTO ZLEAF (Z_PK, Z_ENT, Z_OPT, ZNAME)
        SELECT 1, Z_ENT, 1, 'a' FROM Z_PRIMARYKEY WHERE Z_NAME = 'Oak' UNION ALL
        SELECT 2, Z_ENT, 1, 'b' FROM Z_PRIMARYKEY WHERE Z_NAME = 'Birch';
      INSERT INTO ZGARDENER (Z_PK, Z_ENT, Z_OPT) SELECT 1, Z_ENT, 1 FROM Z_PRIMARYKEY WHERE Z_NAME = 'Gardener';
      """)
    try world.run(
      ClosurePolicies([
        "CountPolicy": { call, pen in
          guard case .createDestinationInstances(let instances) = call else { return nil }
          let oaks = try pen.objects(.fetch(side: .destination, entity: "Oak", predicate: nil, limit: 10)).count
          let birches = try pen.objects(.fetch(side: .destination, entity: "Birch", predicate: nil, limit: 10)).count
          for instance in instances { pen.set(pen.standard(instance), ["name": .string("\(oaks) \(birches)")]) }
          return .done([])
        }
      ]))
    #expect(try world.rows("SELECT ZNAME FROM ZGARDENER") == [["1 0"]])
    #expect(try world.rows("SELECT count(*) FROM ZLEAF") == [["2"]])
  }

  // MARK: Cars and makers: one policy for three mappings of one hierarchy, a to-many that is added to, previous owners

  static let cars1 = [
    entity("Car", [attribute("maker")], [toOne("owner", "Person", inverse: "cars")]),
    entity("SportCar", parent: "Car"), entity("LuxuryCar", parent: "SportCar", [attribute("isLimited", .boolean)]),
    entity("Person", [attribute("name")], [toMany("cars", "Car", inverse: "owner")]),
  ]
  static let cars2 = [
    entity(
      "Car", [attribute("number", .integer32, value: .integer(5))],
      [
        toOne("owner", "Person", inverse: "cars"), toOne("createdBy", "Maker", inverse: "cars"),
        toMany("previousOwners", "Person", inverse: "previousCars"),
      ]), entity("SportCar", parent: "Car"),
    entity("LuxuryCar", parent: "SportCar", [attribute("isLimited", .boolean)]),
    entity("Maker", [attribute("name")], [toMany("cars", "Car", inverse: "createdBy")]),
    entity(
      "Person", [attribute("name")],
      [toMany("cars", "Car", inverse: "owner"), toMany("previousCars", "Car", inverse: "previousOwners")]),
  ]

  static func makerPolicy(_ call: PolicyCall, _ pen: Pen) throws -> PolicyReply? {
    guard case .createDestinationInstances(let instances) = call else { return nil }
    for instance in instances {
      let car = pen.standard(instance)
      guard let name = instance.source.values["maker"], name != .null else { continue }
      var maker = try pen.remembered("makers", name)
      if maker == nil {
        let made = try pen.insert("Maker", ["name": name])
        try pen.remember("makers", name, made)
        maker = made
      }
      pen.operations.append(.add(try #require(maker), relationship: "cars", [car]))
    }
    return .done([])
  }

  @Test func carsOfThreeEntitiesShareTheirMakers() throws {
    func cars(_ name: String, _ attributes: [String: ExpressionNode] = [:]) -> ExplicitEntityMapping {
      mapping(
        "\(name)To\(name)", name, name, policy: "REPLACE_AT_RUNTIME.V2to3MakerPolicy", attributes,
        ["owner": made(by: "PersonToPerson", of: "owner"), "previousOwners": made(by: "PersonToPerson", of: "owner")])
    }
    let rows =
      "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 20)"
      + " INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT v, 4, 1, 'P' || v FROM n;"
      + "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 125)"
      + " INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZMAKER, ZOWNER, ZISLIMITED) SELECT v,"
      + " CASE WHEN v % 25 = 7 THEN 2 WHEN v % 25 = 8 THEN 3 ELSE 1 END, 3,"
      + " CASE WHEN v <= 103 THEN 'FIAT' ELSE 'M' || (v % 9) END, CASE WHEN v % 18 = 0 THEN NULL ELSE v % 20 + 1 END,"
      + " CASE WHEN v % 25 = 8 THEN v % 2 END FROM n;"
    let world = try PolicyWorld(
      from: Self.cars1, to: Self.cars2,
      [
        [
          cars("Car"), cars("SportCar"), cars("LuxuryCar", ["isLimited": source("isLimited")]),
          mapping(
            "PersonToPerson", "Person", "Person", type: .copy, ["name": source("name")],
            ["cars": .destinationInstances(.sourceRelationship("cars"), source("cars"))]),
        ]
      ], rows)
    let policies = ClosurePolicies(["REPLACE_AT_RUNTIME.V2to3MakerPolicy": Self.makerPolicy])
    try world.run(policies)
    #expect(policies.opened == 3 && policies.closed == 3)
    #expect(
      try world.rows("SELECT Z_ENT, count(*), count(ZCREATEDBY), count(ZOWNER), min(ZNUMBER) FROM ZCAR GROUP BY 1") == [
        ["1", "115", "115", "110", "5"], ["2", "5", "5", "5", "5"], ["3", "5", "5", "4", "5"],
      ])
    #expect(
      try world.rows(
        "SELECT m.ZNAME, count(*) FROM ZCAR c JOIN ZMAKER m ON m.Z_PK = c.ZCREATEDBY GROUP BY 1 ORDER BY 2 DESC LIMIT 1"
      )
        == [["FIAT", "103"]])
    #expect(try world.rows("SELECT count(*), count(DISTINCT ZNAME) FROM ZMAKER") == [["10", "10"]])
    #expect(
      try world.rows("SELECT Z_PK, ZISLIMITED FROM ZCAR WHERE Z_ENT = 3 ORDER BY 1").map { $0[1] } == [
        "0", "1", "0", "1", "0",
      ])
    // Each car keeps its owner, and has exactly that person as its one previous owner.
    let owners = try world.rows("SELECT Z_PK, ZOWNER FROM ZCAR WHERE ZOWNER IS NOT NULL ORDER BY 1")
    #expect(owners.count == 119)
    for pair in owners { #expect(try #require(Int(pair[1])) == (try #require(Int(pair[0]))) % 20 + 1) }
    let previous = try world.pairs("Car", "previousOwners")
    #expect(
      try world.rows("SELECT \(previous.owner), \(previous.target) FROM \(previous.table) ORDER BY 1") == owners)
  }

  // MARK: Posts and sections: one object in addition to each default one, linked both ways

  @Test(arguments: [true, false]) func aSectionPerPost(_ isToMany: Bool) throws {
    let world = try PolicyWorld(
      from: [entity("Post", [attribute("content"), attribute("postID")])],
      to: [
        entity(
          "Post", [attribute("postID")],
          [isToMany ? toMany("sections", "Section", inverse: "post") : toOne("sections", "Section", inverse: "post")]),
        entity(
          "Section", [attribute("title"), attribute("body"), attribute("index", .integer32)],
          [toOne("post", "Post", inverse: "sections")]),
      ],
      [[mapping("PostToPost", "Post", "Post", policy: "P", ["postID": source("postID")])]],
      "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 1001)"
        + " INSERT INTO ZPOST (Z_PK, Z_ENT, Z_OPT, ZCONTENT, ZPOSTID) SELECT v * 2, 1, 1,"
        + " CASE WHEN v % 7 THEN 'Text ' || v || char(10, 65279) || 'ü' END, 'id' || v FROM n;")
    let staged = try world.run(
      ClosurePolicies([
        "P": { call, pen in
          guard case .createDestinationInstances(let instances) = call else { return nil }
          for instance in instances {
            let post = pen.standard(instance)
            var values: [String: PolicyValue] = ["index": .integer(0), "post": .object(post)]
            if case .string(let text)? = instance.source.values["content"] {
              values["body"] = .string(text)
              values["title"] = .string(text.prefix(4) + "...")
            }
            let section = try pen.insert("Section", values)
            pen.set(post, ["sections": isToMany ? .objects([section]) : .object(section)])
          }
          return .done([])
        }
      ]))
    #expect(staged.rows == 2002)
    #expect(
      try world.rows(
        "SELECT count(*), count(DISTINCT s.ZPOST), sum(p.ZPOSTID = 'id' || (p.Z_PK / 2)), count(s.ZBODY), sum(s.ZINDEX)"
          + " FROM ZSECTION s JOIN ZPOST p ON p.Z_PK = s.ZPOST") == [["1001", "1001", "1001", "858", "0"]])
    #expect(
      try world.rows(
        "SELECT s.ZTITLE, s.ZBODY = 'Text 3' || char(10, 65279) || 'ü' FROM ZSECTION s JOIN ZPOST p ON p.Z_PK = s.ZPOST"
          + " WHERE p.ZPOSTID = 'id3'") == [["Text...", "1"]])
    if !isToMany {
      #expect(
        try world.rows("SELECT count(*) FROM ZPOST p JOIN ZSECTION s ON s.Z_PK = p.ZSECTIONS AND s.ZPOST = p.Z_PK")
          == [["1001"]])
    }
  }
}

extension PolicyCall {
  /// The hook's name.
  var title: String {
    switch self {
    case .begin: "begin"
    case .method(let selector, _): "method \(selector)"
    case .createDestinationInstances: "createDestinationInstances"
    case .endInstanceCreation: "endInstanceCreation"
    case .createRelationships: "createRelationships"
    case .endRelationshipCreation: "endRelationshipCreation"
    case .performCustomValidation: "performCustomValidation"
    case .end: "end"
    case .willMigrate: "willMigrate"
    case .didMigrate: "didMigrate"
    }
  }
}
