// Persistent history is carried: the content of every change, joined by names, is the same before and after, in every
// kind of run of a chain.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import SeededRandom
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite struct HistoryMigrationTests {
  private static let count = getenv("HOPD_SEEDS").flatMap { Int(String(cString: $0)) } ?? 6

  // MARK: Models

  private static func attribute(_ name: String, id: String? = nil, preserved: Bool = false) -> Attribute {
    Attribute(
      name: name, type: .string, isOptional: true, renamingIdentifier: id, preservesAfterDeletion: preserved)
  }

  private static func relationship(_ name: String, _ destination: String, _ inverse: String, many: Bool = false)
    -> Relationship
  {
    Relationship(name: name, destinationEntityName: destination, inverseName: inverse, isToMany: many)
  }

  private static func model(_ name: String, _ entities: [Entity]) -> ManagedObjectModel {
    ManagedObjectModel(name: name, entities: entities)
  }

  /// Book becomes Volume, title becomes name, year is removed, abstract is added, and an added entity renumbers all.
  private static func library(_ version: Int, removes: Bool = false) -> ManagedObjectModel {
    let isLast = version == 3
    let (book, title) = isLast ? ("Volume", "name") : ("Book", "title")
    var attributes = [attribute("isbn", preserved: true), attribute(title, id: "title")]
    if !isLast { attributes.append(attribute("year", preserved: true)) }
    if version > 1 { attributes.append(attribute("abstract", preserved: true)) }
    var entities = [
      Entity(
        name: "Author", attributes: [attribute("name")],
        relationships: [relationship("books", book, "author", many: true)]),
      Entity(
        name: book, renamingIdentifier: "Book", attributes: attributes,
        relationships: [
          relationship("author", "Author", "books"), relationship("chapters", "Chapter", "book", many: true),
        ]),
      Entity(
        name: "Chapter", attributes: [attribute("text")], relationships: [relationship("book", book, "chapters")]),
    ]
    if version > 1 { entities.append(Entity(name: "Atlas", attributes: [attribute("scale")])) }
    if !(removes && isLast) { entities.append(Entity(name: "Shift", attributes: [attribute("start")])) }
    return model("V\(version)", entities)
  }

  // MARK: Stores

  private func store(
    _ environment: Workshop, _ model: ManagedObjectModel, rows: Int64 = 30, seed: UInt64 = 1, framework: Int64 = 1344,
    sql: [String]
  ) throws -> StoreLocation {
    let location = StoreLocation(database: environment.folder.appending("\(UUID().uuidString).sqlite"))
    var schema = StoreSchema(model: model, frameworkVersion: framework)
    schema.history = HistoryLayout.made(
      byFramework: framework, tombstones: HistoryLayout.tombstoneCount(of: model))
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: seed)).make(
      at: location.database, rows: rows, seed: seed)
    try Connection.ofApp(location.database).execute(sql.joined(separator: "; "))
    return location
  }

  private static func change(
    _ key: Int, _ type: Int, _ entity: Int, _ object: Int, _ transaction: Int, columns: String = "NULL",
    tombstones: String = "NULL, NULL"
  ) -> String {
    "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS, ZTOMBSTONE0, "
      + "ZTOMBSTONE1) VALUES (\(key), 16001, \(type), \(entity), \(object), \(transaction), \(columns), \(tombstones))"
  }

  /// Transactions 1 to 4 were purged; 7 is the highest number in use.
  private static let libraryHistory =
    [
      "INSERT INTO ATRANSACTIONSTRING (Z_PK, Z_ENT, ZNAME) VALUES (2, 16003, 'app'), (5, 16003, 'com.example')",
      "INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZBUNDLEIDTS, ZPROCESSIDTS, ZTIMESTAMP) "
        + "VALUES (5, 16002, 5, 2, 1.5), (6, 16002, 5, 2, 2.5)",
      "UPDATE Z_PRIMARYKEY SET Z_MAX = 40 WHERE Z_ENT = 16001", "UPDATE Z_PRIMARYKEY SET Z_MAX = 7 WHERE Z_ENT = 16002",
      "UPDATE Z_PRIMARYKEY SET Z_MAX = 6 WHERE Z_ENT = 16003",
      change(21, 0, 1, 3, 5), change(22, 1, 2, 4, 5, columns: "X'20'"), change(23, 1, 2, 4, 6, columns: "X'90'"),
      change(24, 1, 2, 5, 6, columns: "X'48'"), change(25, 1, 3, 2, 6, columns: "X'C0'"),
      change(26, 2, 2, 99, 6, tombstones: "X'01', X'02'"),
    ]

  private static func lines(_ location: StoreLocation, _ sql: String) throws -> [String] {
    try StoreReader.withUnchangedStore(at: location) { reader in
      try reader.connection.rows(sql) { row in
        (0..<row.columnCount).map { row.value(at: $0).literal }.joined(separator: " ")
      }
    }
  }

  private static let changes =
    "SELECT c.Z_PK, Z_NAME, ZCHANGETYPE, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS, ZTOMBSTONE0, ZTOMBSTONE1 "
    + "FROM ACHANGE AS c "
    + "LEFT JOIN Z_PRIMARYKEY AS p ON p.Z_ENT = ZENTITY ORDER BY c.Z_PK"

  // MARK: Kinds of runs

  /// One kind of run of a chain.
  private struct Way: CustomStringConvertible {
    var chunk: Int64 = 50_000
    var alters = true
    var interrupts = false
    var output = false
    var mode: ReplacementMode?
    var description: String {
      "chunks of \(chunk), altered \(alters), interrupted \(interrupts), "
        + "copy \(output), \(mode.map { "\($0)" } ?? "any replacement")"
    }

    static let all: [Way] = [
      Way(), Way(chunk: 1),
      Way(chunk: 2, interrupts: true), Way(alters: false), Way(alters: false, interrupts: true), Way(output: true),
      Way(mode: .inPlace), Way(mode: .rename),
    ]
  }

  private static func catalog(_ versions: [ManagedObjectModel]) -> ModelCatalog {
    ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: versions.last?.name)
    ])
  }

  /// Migrates a copy of a store along a chain; returns the result.
  private func migrate(
    _ original: StoreLocation, _ versions: [ManagedObjectModel], _ environment: Workshop, _ way: Way,
    rule: HistoryRule = .migrate
  ) throws -> (StoreLocation, MigrationReport) {
    try migrate(original, Self.catalog(versions), environment, way, rule: rule)
  }

  /// Migrates a copy of a store with a catalog, which remembers what earlier stores had it compute.
  private func migrate(
    _ original: StoreLocation, _ catalog: ModelCatalog, _ environment: Workshop, _ way: Way,
    rule: HistoryRule = .migrate
  ) throws -> (StoreLocation, MigrationReport) {
    let location = StoreLocation(database: environment.folder.appending("\(UUID().uuidString).sqlite"))
    try FileManager.default.copyItem(atPath: original.database.string, toPath: location.database.string)
    var request = environment.request(location, catalog, output: way.output)
    request.history = rule
    request.replacement = way.mode
    request.engine.chunkRowsMax = way.chunk
    request.engine.altering = way.alters ? .wherePossible : .never
    let report = try environment.run(request, interrupts: way.interrupts)
    #expect(report.checks.contains { $0.name == "history" && $0.passed }, "\(way)")
    return (StoreLocation(database: request.output ?? location.database), report)
  }

  private static func author(_ model: ManagedObjectModel) -> String {
    "com.apple.coredata.schemamigrator: lightweight migration from model with digest { \(model.versionHashesDigest) }"
  }

  // MARK: Tests

  @Test func renumberingRenamingAddingAndRemovingKeepWhatEveryChangeSays() throws {
    let environment = try Workshop()
    let versions = (1...3).map { Self.library($0) }
    let original = try store(environment, versions[0], sql: Self.libraryHistory)
    for way in Way.all {
      let (result, report) = try migrate(original, versions, environment, way)
      #expect(report.clearedHistory.isEmpty, "\(way)")
      // author, abstract, isbn, name, chapters: five bits; before: author, isbn, title, year, chapters. The title,
      // which is renamed, and the year, which is removed, lose their bits.
      #expect(
        try Self.lines(result, Self.changes) == [
          "21 'Author' 0 3 5 NULL NULL NULL", "22 'Volume' 1 4 5 X'00' NULL NULL", "23 'Volume' 1 4 6 X'80' NULL NULL",
          "24 'Volume' 1 5 6 X'28' NULL NULL", "25 'Chapter' 1 2 6 X'c0' NULL NULL",
          "26 'Volume' 2 99 6 NULL NULL X'01'",
        ],
        "\(way)")
      #expect(
        try Self.lines(result, "SELECT Z_PK, Z_ENT, Z_OPT, ZAUTHORTS, ZBUNDLEIDTS, ZPROCESSIDTS FROM ATRANSACTION") == [
          "5 16002 NULL NULL 5 2", "6 16002 NULL NULL 5 2", "8 16002 NULL 7 8 8",
        ], "\(way)")
      #expect(try Self.lines(result, "SELECT ZTIMESTAMP > 800000000 FROM ATRANSACTION WHERE Z_PK = 8") == ["1"])
      #expect(
        try Self.lines(result, "SELECT Z_PK, ZNAME FROM ATRANSACTIONSTRING ORDER BY Z_PK") == [
          "2 'app'", "5 'com.example'", "7 '\(Self.author(versions[2]))'", "8 'hopd'",
        ], "\(way)")
      #expect(
        try Self.lines(result, "SELECT Z_ENT, Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT > 16000") == [
          "16001 40", "16002 8", "16003 8",
        ], "\(way)")
    }
  }

  /// Stores of one catalog share the facts that follow from its models, but not the texts of their own tables.
  @Test func storesOfOneCatalogKeepTheirOwnTablesOfHistory() throws {
    let environment = try Workshop()
    let versions = (1...3).map { Self.library($0) }
    let catalog = Self.catalog(versions)
    let stores = try [
      [], ["DROP INDEX ACHANGE_ZTRANSACTIONID_INDEX"],
      ["DROP INDEX ACHANGE_ZTRANSACTIONID_INDEX", "CREATE UNIQUE INDEX Z_OWN ON ATRANSACTION (ZTIMESTAMP)"],
    ].map { try store(environment, versions[0], sql: Self.libraryHistory + $0) }
    let objects = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid"
    var texts: Set<[String]> = []
    for _ in 1...2 {
      for original in stores {
        let (wanted, _) = try migrate(original, versions, environment, Way())
        let (result, _) = try migrate(original, catalog, environment, Way())
        for sql in [objects, Self.changes, "SELECT * FROM ATRANSACTIONSTRING", "SELECT * FROM Z_PRIMARYKEY"] {
          #expect(try Self.lines(result, sql) == Self.lines(wanted, sql))
        }
        texts.insert(try Self.lines(result, objects))
      }
    }
    #expect(texts.count == stores.count)
  }

  /// Only the changes of the entity itself go, whichever transactions they are in.
  @Test func anEntityThatGoesTakesItsOwnChangesAlong() throws {
    let environment = try Workshop()
    let versions = (1...3).map { Self.library($0, removes: true) }
    let original = try store(
      environment, versions[0],
      sql: Self.libraryHistory + [Self.change(27, 0, 4, 1, 5), Self.change(28, 1, 4, 1, 6, columns: "X'80'")])
    for way in Way.all {
      let (result, report) = try migrate(original, versions, environment, way)
      #expect(try Self.lines(result, "SELECT Z_PK FROM ACHANGE") == (21...26).map(String.init), "\(way)")
      #expect(try Self.lines(result, "SELECT Z_PK FROM ATRANSACTION") == ["5", "6", "8"], "\(way)")
      #expect(report.clearedHistory.map { "\($0.table) \($0.rows)" } == ["ACHANGE 2"], "\(way)")
      let warning = try #require(report.warnings.first { $0.code == .historyCleared && $0.place.entity == "Shift" })
      #expect(warning.message.hasPrefix("2 changes of this entity"))
    }
  }

  /// An order key names its to-one too, once its change is written for another list of properties.
  @Test func orderKeysNameTheirRelationship() throws {
    let environment = try Workshop()
    func model(_ name: String, _ attributes: [String], ordered: Bool = true, shop: [String] = []) -> ManagedObjectModel
    {
      var chapters = Self.relationship("chapters", "Chapter", "book", many: true)
      chapters.isOrdered = ordered
      return Self.model(
        name,
        [
          Entity(name: "Book", attributes: [Self.attribute("title")], relationships: [chapters]),
          Entity(
            name: "Chapter", attributes: attributes.map { Self.attribute($0) },
            relationships: [Self.relationship("book", "Book", "chapters")]),
          Entity(name: "Shop", attributes: shop.map { Self.attribute($0) }),
        ])
    }
    let first = model("V1", ["text"])
    // book, its order key, text: only the order, a new owner, the owner alone, the text.
    let original = try store(
      environment, first,
      sql: ["INSERT INTO ATRANSACTION (Z_PK, Z_ENT) VALUES (1, 16002)"]
        + ["X'40'", "X'C0'", "X'80'", "X'20'"].enumerated().map { index, value in
          "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS) "
            + "VALUES (\(index + 1), 16001, 1, 2, 1, 1, \(value))"
        })
    for (second, values) in [
      // Another entity changes: not one byte does.
      (model("V2", ["text"], shop: ["name"]), ["X'40'", "X'c0'", "X'80'", "X'20'"]),
      (model("V2", ["note", "text"]), ["X'c0'", "X'c0'", "X'80'", "X'10'"]),
      (model("V2", ["text"], ordered: false), ["X'80'", "X'80'", "X'80'", "X'40'"]),
    ] {
      for way in [Way(), Way(alters: false)] {
        let (result, _) = try migrate(original, [first, second], environment, way)
        #expect(try Self.lines(result, "SELECT ZCOLUMNS FROM ACHANGE ORDER BY Z_PK") == values, "\(way)")
      }
    }
  }

  /// A value of a deleted object follows its attribute; one whose column the entity does not use any more stays there.
  @Test func valuesOfDeletedObjectsStayWhereNobodyElsePutsAny() throws {
    let environment = try Workshop()
    func model(_ name: String, _ preserved: [String]) -> ManagedObjectModel {
      Self.model(
        name,
        [
          Entity(
            name: "Book", attributes: ["a", "b", "c"].map { Self.attribute($0, preserved: preserved.contains($0)) })
        ])
    }
    let first = model("V1", ["b", "c"])
    let original = try store(
      environment, first,
      sql: [
        "INSERT INTO ATRANSACTION (Z_PK, Z_ENT) VALUES (1, 16002)",
        Self.change(1, 2, 1, 9, 1, tombstones: "X'0B', X'0C'"),
      ])
    for (preserved, values, lost) in [
      (["b"], "X'0b' X'0c'", 0), (["a"], "NULL X'0c'", 1), (["a", "b"], "NULL X'0b'", 1), ([], "X'0b' X'0c'", 0),
    ] as [([String], String, Int)] {
      for way in [Way(), Way(alters: false)] {
        // Preservation alone is no new version.
        var second = model("V2", preserved)
        second = Self.model("V2", second.entities + [Entity(name: "Other", attributes: [Self.attribute("x")])])
        let (result, report) = try migrate(original, [first, second], environment, way)
        #expect(try Self.lines(result, "SELECT ZTOMBSTONE0, ZTOMBSTONE1 FROM ACHANGE") == [values], "\(preserved)")
        #expect(report.warnings.count { $0.code == .historyCleared } == lost, "\(preserved), \(way)")
      }
    }
  }

  /// A second chain continues after the first one's mark, whatever digest that has, and an app's transactions between
  /// them keep their positions.
  @Test func everyJourneyHasItsOwnMark() throws {
    let environment = try Workshop()
    let versions = (1...3).map { Self.library($0) }
    let original = try store(environment, versions[0], sql: Self.libraryHistory)
    let (middle, _) = try migrate(original, Array(versions.prefix(2)), environment, Way())
    try Connection.ofApp(middle.database).execute(
      "INSERT INTO ATRANSACTION (Z_PK, Z_ENT) VALUES (9, 16002); UPDATE Z_PRIMARYKEY SET Z_MAX = 9 "
        + "WHERE Z_ENT = 16002; "
        + "UPDATE ATRANSACTIONSTRING SET ZNAME = 'migration from { older }' WHERE ZNAME LIKE '%schemamigrator%'; "
        + "PRAGMA wal_checkpoint(TRUNCATE)")
    let (result, _) = try migrate(middle, Array(versions.suffix(2)), environment, Way())
    #expect(
      try Self.lines(
        result,
        "SELECT t.Z_PK, ZNAME FROM ATRANSACTION AS t LEFT JOIN ATRANSACTIONSTRING AS s ON s.Z_PK = ZAUTHORTS ORDER BY 1"
      )
        == [
          "5 NULL", "6 NULL", "8 'migration from { older }'", "9 NULL", "10 '\(Self.author(versions[2]))'",
        ])
  }

  /// A chain that only adds attributes alters a copy; its history is changed in place.
  @Test func anAlteredCopyHasTheSameHistory() throws {
    let environment = try Workshop()
    func model(_ name: String, _ attributes: [String]) -> ManagedObjectModel {
      Self.model(
        name,
        [
          Entity(
            name: "Book", attributes: attributes.map { Self.attribute($0, preserved: $0 == "isbn" || $0 == "edition") },
            relationships: [Self.relationship("chapters", "Chapter", "book", many: true)]),
          Entity(
            name: "Chapter",
            attributes: [
              Self.attribute("text"), Self.attribute("title", preserved: true), Self.attribute("x", preserved: true),
            ],
            relationships: [Self.relationship("book", "Book", "chapters")]),
        ])
    }
    let versions = [
      model("V1", ["isbn", "title"]), model("V2", ["isbn", "subtitle", "title"]),
      model("V3", ["edition", "isbn", "subtitle", "title"]),
    ]
    let original = try store(
      environment, versions[0], rows: 300,
      sql: [
        "INSERT INTO ATRANSACTION (Z_PK, Z_ENT) VALUES (1, 16002)",
        Self.change(1, 1, 1, 1, 1, columns: "X'40'"), Self.change(2, 1, 1, 2, 1, columns: "X'A0'"),
        Self.change(3, 1, 2, 2, 1, columns: "X'C0'"), Self.change(4, 2, 1, 2, 1, tombstones: "X'AA', NULL"),
      ])
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: "V3")
    ])
    let decisions = try StoreReader.withUnchangedStore(at: original) { reader in
      let found = try StoreIdentifier.identify(reader: reader, location: original, catalog: catalog)
      return try AlterCompiler.decide(
        try MigrationPlanner.plan(store: try #require(found.identified), catalog: catalog, reader: reader))
    }
    guard decisions.allSatisfy({ $0.program != nil }) else {
      Issue.record("no copy is altered: \(decisions)")
      return
    }
    for way in Way.all {
      let (result, _) = try migrate(original, versions, environment, way)
      #expect(
        try Self.lines(result, Self.changes) == [
          "1 'Book' 1 1 1 X'10' NULL NULL", "2 'Book' 1 2 1 X'48' NULL NULL", "3 'Chapter' 1 2 1 X'c0' NULL NULL",
          "4 'Book' 2 2 1 NULL NULL X'aa'",
        ], "\(way)")
      #expect(try Self.lines(result, "SELECT count(*), max(Z_PK) FROM ATRANSACTION") == ["2 2"], "\(way)")
    }
  }

  /// Which of two to-manys a bit means is not known: then both are named.
  @Test func undecidedBitsNameEveryToMany() throws {
    let environment = try Workshop()
    func model(_ name: String, _ attributes: [String]) -> ManagedObjectModel {
      Self.model(
        name,
        [
          Entity(
            name: "Block", attributes: attributes.map { Self.attribute($0) },
            relationships: [
              Self.relationship("categories", "Item", "category", many: true),
              Self.relationship("items", "Item", "block", many: true),
            ]),
          Entity(
            name: "Item",
            relationships: [
              Self.relationship("block", "Block", "items"), Self.relationship("category", "Block", "categories"),
            ]),
        ])
    }
    let versions = [model("V1", ["b"]), model("V2", ["a", "b"])]
    let original = try store(
      environment, versions[0],
      sql: [
        "INSERT INTO ATRANSACTION (Z_PK, Z_ENT) VALUES (1, 16002)",
        "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS) VALUES "
          + "(1, 16001, 1, 1, 1, 1, X'80'), (2, 16001, 1, 1, 1, 1, X'40'), (3, 16001, 1, 1, 1, 1, X'20'), "
          + "(4, 16001, 1, 1, 1, 1, X'4080'), (5, 16001, 1, 2, 1, 1, X'40')",
      ])
    let (result, report) = try migrate(original, versions, environment, Way())
    #expect(
      try Self.lines(result, "SELECT ZCOLUMNS FROM ACHANGE ORDER BY Z_PK") == [
        "X'40'", "X'30'", "X'30'", "X'f0'", "X'40'",
      ])
    #expect(report.warnings.contains { $0.code == .historyWidened && $0.place.entity == "Block" })
  }

  @Test func whatCannotBeFollowedIsRefused() throws {
    let environment = try Workshop()
    let versions = (1...3).map { Self.library($0) }
    for (sql, what) in [
      (Self.change(90, 1, 9, 1, 6), "entity number 9"), (Self.change(90, 1, 2, 1, 6, columns: "'text'"), "by number"),
      ("INSERT INTO ACHANGE (Z_PK, Z_ENT) VALUES (90, 16001)", "by number"),
    ] {
      let original = try store(environment, versions[0], sql: Self.libraryHistory + [sql])
      let error = #expect(throws: HopdError.self) { try self.migrate(original, versions, environment, Way()) }
      #expect(error?.code == .historyNotUnderstood && error?.message.contains(what) == true, "\(sql)")
      #expect(error?.hint?.contains("clear") == true)
      // The operator may drop them.
      let (result, _) = try migrate(original, versions, environment, Way(), rule: .clear)
      #expect(try Self.lines(result, "SELECT count(*) FROM ACHANGE") == ["0"])
    }
  }

  /// Random chains with random changes: every kind of run leaves the same history, and the verifier, which joins it
  /// with the source's by names, agrees with each.
  @Test func everyWayOfRandomChainsLeavesTheSameHistory() throws {
    var migrated = 0
    for seed in 1...UInt64(Self.count * 2) {
      var world = RandomModels(seed: seed)
      var versions = [world.model("V1")]
      for number in 2...4 {
        world.evolve()
        versions.append(world.model("V\(number)"))
      }
      let framework: Int64 = [851, 1044, 1344][Int(seed % 3)]
      let schema = StoreSchema(model: versions[0], frameworkVersion: framework)
      guard Set(versions.map(\.versionHashes)).count == versions.count, schema.unsupported.isEmpty,
        zip(versions, versions.dropFirst()).allSatisfy({ (try? MappingInference.infer(from: $0, to: $1)) != nil })
      else { continue }
      let environment = try Workshop()
      let original = try store(
        environment, versions[0], seed: seed, framework: framework,
        sql: Self.randomHistory(schema, framework: framework, seed: seed))
      var first: [String]?
      for way in [
        Way(), Way(chunk: 3, interrupts: true), Way(alters: false),
      ] {
        do {
          let (result, _) = try migrate(original, versions, environment, way)
          let found = try HistoryLayout.Table.allCases.prefix(framework < 1044 ? 2 : 3).flatMap { table in
            try Self.lines(
              result,
              "SELECT * FROM \(table.rawValue)"
            ).map { line in table == .transaction ? String(line.prefix(8)) : line }
          }
          #expect(first == nil || first == found, "seed \(seed), \(way)")
          first = found
        } catch let error as HopdError {
          #expect(
            ![HopdError.Code.internalError, .verificationFailed].contains(error.code),
            "seed \(seed), \(way): \(error) \(error.reasons)")
          #expect(first == nil, "seed \(seed), \(way): \(error)")
        }
      }
      if first != nil { migrated += 1 }
    }
    print("\(migrated) random chains with history")
    #expect(migrated * 4 > Self.count)
  }

  private static func randomHistory(_ schema: StoreSchema, framework: Int64, seed: UInt64) -> [String] {
    var dice = Dice(seed: seed)
    var sql: [String] = []
    var key = 0
    for transaction in 3...9 {
      sql.append("INSERT INTO ATRANSACTION (Z_PK, Z_ENT) VALUES (\(transaction), 16002)")
      for (entity, number) in schema.numbers.sorted(by: { $0.key < $1.key })
      where schema.model.entity(named: entity)?.isAbstract == false && dice.chance(50) {
        guard let columns = HistoryColumns(of: entity, in: schema) else { continue }
        key += 1
        let type = Int.random(in: 0...2, using: &dice)
        let bits = columns.bits.indices.filter { _ in dice.chance(30) }
        let value = columns.value(settingPositions: bits).map { byte in
          (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
        sql.append(
          "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS) "
            + "VALUES (\(key), 16001, \(type), \(number), \(key), \(transaction), "
            + "\(type == 1 ? "X'\(value)'" : "NULL"))")
      }
    }
    return sql + ["UPDATE Z_PRIMARYKEY SET Z_MAX = 12 WHERE Z_ENT = 16002"]
  }
}
