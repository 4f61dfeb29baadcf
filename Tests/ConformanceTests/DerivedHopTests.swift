// Derived counts and R-Trees through whole migrations: correct values, triggers that continue counting, usable indexes.

import FoundationEssentials
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@testable import ManagedObjectModel

@Suite struct DerivedHopTests {
  /// Migrates a filled store along `versions`; `preparing` runs in the store before, `inspect` after.
  private func migrate(
    _ versions: [[Entity]], preparing: (Connection, StoreSchema) throws -> Void = { _, _ in },
    inspect: (Connection, MigrationReport) throws -> Void
  ) throws {
    let models = versions.enumerated().map { ManagedObjectModel(name: "V\($0.offset + 1)", entities: $0.element) }
    let catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: models, currentVersionName: "V\(models.count)")
    ])
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-derived-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("store.sqlite"))
    let schema = StoreSchema(model: models[0], frameworkVersion: 1344)
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 9)).make(at: location.database, rows: 300, seed: 9)
    try preparing(Connection.ofApp(location.database), schema)
    let request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
      settings: MigrationSettings(verification: .full),
      stateDirectory: folder.appending("state"), job: "01")
    let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    #expect(report.result == .migrated)
    try inspect(Connection.ofApp(location.database), report)
  }

  private func count(_ name: String, _ expression: String, id: String? = nil) -> Attribute {
    Attribute(
      name: name, type: .integer64, isOptional: true, renamingIdentifier: id, derivationExpression: expression)
  }

  private func library(_ book: String, _ page: String, extra: [Entity] = [], derived: Bool = true) -> [Entity] {
    [
      Entity(
        name: book, renamingIdentifier: "Book",
        attributes: [Attribute(name: "title", type: .string, isOptional: true)]
          + (derived ? [count("\(page.lowercased())Count", "pages.@count", id: "pagesCount")] : []),
        relationships: [
          Relationship(name: "pages", destinationEntityName: page, inverseName: "book", isToMany: true),
          Relationship(name: "notes", destinationEntityName: "Note", isToMany: true),
        ]),
      Entity(
        name: "Novel", parentName: book,
        attributes: derived ? [count("noteCount", "notes.@count")] : []),
      Entity(
        name: page, renamingIdentifier: "Page",
        relationships: [Relationship(name: "book", destinationEntityName: book, inverseName: "pages")]),
      Entity(name: "Note"),
    ] + extra
  }

  /// Everything under a count is renamed and renumbered: the values are the counts, and triggers with the new names
  /// keep them up to date.
  @Test(arguments: [true, false])
  func countsFollowNamesAndNumbers(_ wasDerived: Bool) throws {
    try migrate([
      library("Book", "Page", derived: wasDerived), library("Tome", "Leaf", extra: [Entity(name: "Almanac")]),
      library("Volume", "Sheet", extra: [Entity(name: "Almanac"), Entity(name: "Zebra")]),
    ]) { (connection: Connection, report: MigrationReport) throws -> Void in
      #expect(report.hops.count == 2)
      let wrong = """
        SELECT count(*) FROM ZVOLUME v WHERE ZSHEETCOUNT IS NOT (SELECT count(*) FROM ZSHEET WHERE ZBOOK = v.Z_PK)
          OR ZNOTECOUNT IS NOT CASE WHEN Z_ENT = 5 THEN (SELECT count(*) FROM ZNOTE WHERE Z4NOTES = v.Z_PK) END
        """
      #expect(try connection.integer(wrong) == 0)
      #expect(try connection.integer("SELECT sum(ZSHEETCOUNT) > 10 AND sum(ZNOTECOUNT) > 3 FROM ZVOLUME") == 1)
      try SchemaTrigger.registerFunctions(on: connection)
      let key = try #require(try connection.integer("SELECT min(Z_PK) FROM ZVOLUME WHERE Z_ENT = 5"))
      try connection.execute(
        "INSERT INTO ZSHEET (Z_PK, Z_ENT, Z_OPT, ZBOOK) VALUES (9001, 3, 1, \(key));"
          + "INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, Z4NOTES) VALUES (9001, 2, 1, \(key)), (9002, 2, 1, \(key));"
          + "DELETE FROM ZNOTE WHERE Z_PK = 9002; DELETE FROM ZSHEET WHERE Z_PK = (SELECT min(Z_PK) FROM ZSHEET)")
      #expect(try connection.integer(wrong) == 0)
      #expect(try connection.integer("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'") == 10)
    }
  }

  /// A version between derives a value that the last one keeps as a plain value.
  @Test func aCountThatBecomesAPlainValueStays() throws {
    let pages = Relationship(name: "pages", destinationEntityName: "Page", inverseName: "book", isToMany: true)
    let page = Entity(
      name: "Page", relationships: [Relationship(name: "book", destinationEntityName: "Book", inverseName: "pages")])
    func book(_ attributes: [Attribute]) -> Entity {
      Entity(name: "Book", attributes: attributes, relationships: [pages])
    }
    try migrate([
      [book([]), page], [book([count("n", "pages.@count")]), page],
      [book([Attribute(name: "n", type: .integer64, isOptional: true)]), page],
    ]) { (connection: Connection, _: MigrationReport) throws -> Void in
      #expect(
        try connection.integer(
          "SELECT count(*) FROM ZBOOK b WHERE ZN IS NOT (SELECT count(*) FROM ZPAGE WHERE ZBOOK = b.Z_PK)") == 0)
      #expect(try connection.integer("SELECT sum(ZN) > 10 FROM ZBOOK") == 1)
      #expect(try connection.integer("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'") == 0)
    }
  }

  /// The value of a target follows new names and numbers, and another attribute or relationship as its source, whether
  /// the hop adds it or continues one that was plain.
  @Test(arguments: [nil, "book.title", "plain"]) func valuesOfTargetsFollow(_ before: String?) throws {
    func version(_ book: String, _ page: String, _ expression: String?, extra: [Entity] = []) -> [Entity] {
      let value = Attribute(
        name: "heading", type: .string, isOptional: true,
        derivationExpression: expression == "plain" ? nil : expression)
      return [
        Entity(
          name: book, renamingIdentifier: "Book",
          attributes: ["title", "other"].map { Attribute(name: $0, type: .string, isOptional: true) }),
        Entity(
          name: "Novel", parentName: book, attributes: [Attribute(name: "genre", type: .string, isOptional: true)]),
        Entity(
          name: page, renamingIdentifier: "Page", attributes: expression == nil ? [] : [value],
          relationships: [
            Relationship(name: "book", destinationEntityName: book),
            Relationship(name: "novel", destinationEntityName: "Novel"),
          ]),
        Entity(name: "Letter", parentName: page),
      ] + extra
    }
    try migrate([
      version("Book", "Page", before), version("Tome", "Leaf", "book.title", extra: [Entity(name: "Almanac")]),
      version("Volume", "Sheet", "novel.genre", extra: [Entity(name: "Almanac"), Entity(name: "Zebra")]),
    ]) { (connection: Connection, report: MigrationReport) throws -> Void in
      #expect(report.hops.count == 2)
      let wrong =
        "SELECT count(*) FROM ZSHEET s WHERE ZHEADING IS NOT (SELECT ZGENRE FROM ZVOLUME v WHERE v.Z_PK = s.ZNOVEL)"
      #expect(try connection.integer(wrong) == 0)
      #expect(try connection.integer("SELECT count(ZHEADING) > 20 FROM ZSHEET") == 1)
      try SchemaTrigger.registerFunctions(on: connection)
      try connection.execute(
        "UPDATE ZVOLUME SET ZGENRE = 'new' || Z_PK WHERE Z_PK % 2; UPDATE ZSHEET SET ZNOVEL = ZNOVEL + 1;"
          + "INSERT INTO ZSHEET (Z_PK, Z_ENT, Z_OPT, ZNOVEL) VALUES (9001, 3, 1, 9002), (9002, 2, 1, 1);"
          + "INSERT INTO ZVOLUME (Z_PK, Z_ENT, Z_OPT, ZGENRE) VALUES (9002, 5, 1, 'late')")
      #expect(try connection.integer(wrong) == 0)
      #expect(try connection.text("SELECT ZHEADING FROM ZSHEET WHERE Z_PK = 9001") == "late")
      #expect(try connection.integer("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'") == 4)
    }
  }

  @Test func anRTreeIsRebuiltUnderItsNewName() throws {
    func place(_ name: String, _ extra: [Attribute] = []) -> Entity {
      Entity(
        name: name, renamingIdentifier: "Place",
        attributes: extra + ["lat", "lon"].map { Attribute(name: $0, type: .double, isOptional: true) },
        fetchIndexes: [
          FetchIndex(
            name: "where", elements: ["lat", "lon"].map { FetchIndex.Element(propertyName: $0, kind: .rTree) })
        ])
    }
    let added = Attribute(name: "n", type: .integer16, isOptional: true)
    try migrate(
      [[place("Place")], [place("Site", [added])]],
      preparing: { (connection: Connection, schema: StoreSchema) throws -> Void in
        for rTree in schema.rTreeIndexes {
          try connection.execute(rTree.createStatement)
          try connection.execute(rTree.fillStatement(in: "main"))
        }
        try connection.execute("UPDATE ZPLACE SET ZLAT = Z_PK, ZLON = -Z_PK WHERE Z_PK % 3 = 0")
      },
      inspect: { (connection: Connection, _: MigrationReport) throws -> Void in
        let found = try connection.integer(
          "SELECT count(*) FROM Z_Site_where WHERE ZLAT_MIN >= 9 AND ZLON_MAX <= -9")
        let wanted = try connection.integer("SELECT count(*) FROM ZSITE WHERE ZLAT >= 9 AND ZLON <= -9")
        #expect(found == wanted)
        #expect((wanted ?? 0) > 50)
        #expect(try connection.integer("SELECT count(*) FROM sqlite_master WHERE name = 'Z_Place_where'") == 0)
      })
  }
}
