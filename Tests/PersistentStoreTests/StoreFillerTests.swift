import Diagnostics
import ManagedObjectModel
import SQLite
import SystemPackage
import Testing

@testable import PersistentStore

struct StoreFillerTests {
  @Test(arguments: [0, 1, 2, 5, 6, 7, 100, 1001] as [Int64])
  func everyCountGivesASoundStore(rows: Int64) throws {
    let folder = try Folder()
    let model = try everythingModel()
    let location = try folder.store(model, rows: rows)
    try StoreReader.withUnchangedStore(at: location) { reader in
      let schema = StoreSchema(model: model, frameworkVersion: 1344)
      #expect(try reader.connection.text("PRAGMA integrity_check") == "ok")
      #expect(try StoreCensus(schema: schema, reader: reader).danglingReferences().isEmpty)
      var total: Int64 = 0
      let marks = Dictionary(
        try reader.primaryKeys().map { ($0.name, $0.highWaterMark) }, uniquingKeysWith: { first, _ in first })
      for table in schema.tables {
        total += try reader.rowCounts(of: table.name).values.reduce(0, +)
        let name = reader.qualified(table.name)
        #expect(marks[table.rootEntity] == (try reader.connection.integer("SELECT max(Z_PK) FROM \(name)")))
        #expect(try reader.connection.integer("SELECT count(*) FROM \(name) WHERE Z_OPT IS NOT 1") == 0)
      }
      #expect(total == rows)
      #expect(try reader.schemaObjects().compactMap(\.sql) == schema.createStatements)
    }
    #expect(folder.names == [location.fileName], "no side file stays")
  }

  @Test func theSameSeedGivesTheSameContent() throws {
    let folder = try Folder()
    let model = try everythingModel()
    let first = try folder.dump(folder.store(model, rows: 300, seed: 7), model)
    let again = try folder.dump(folder.store(model, rows: 300, seed: 7), model)
    let other = try folder.dump(folder.store(model, rows: 300, seed: 8), model)
    #expect(first == again)
    #expect(first != other)
  }

  @Test func relationshipsAgreeAtBothEnds() throws {
    let folder = try Folder()
    let model = try everythingModel()
    let location = try folder.store(model, rows: 600)
    try StoreReader.withUnchangedStore(at: location) { reader in
      func count(_ sql: String) throws -> Int64? { try reader.connection.integer(sql) }
      // One-to-one between two entities and inside one.
      #expect(
        try count(
          "SELECT count(*) FROM ZPERSON p JOIN ZPASSPORT d ON d.Z_PK = p.ZPASSPORT WHERE d.ZHOLDER IS NOT p.Z_PK")
          == 0)
      #expect(try count("SELECT count(*) FROM ZPERSON WHERE ZPASSPORT IS NOT NULL") == 100)
      #expect(
        try count("SELECT count(*) FROM ZANIMAL a JOIN ZANIMAL b ON b.Z_PK = a.ZNEXT WHERE b.ZPREVIOUS IS NOT a.Z_PK")
          == 0)
      #expect(try count("SELECT count(*) FROM ZANIMAL WHERE ZNEXT IS NOT NULL") == 199)
      #expect(try count("SELECT count(*) FROM ZANIMAL WHERE ZPREVIOUS IS NOT NULL") == 199)
      // A required to-one is always set, and its order keys differ within an owner.
      #expect(try count("SELECT count(*) FROM ZANIMAL WHERE ZOWNER IS NULL") == 0)
      #expect(
        try count("SELECT count(*) FROM (SELECT 1 FROM ZANIMAL GROUP BY ZOWNER, Z_FOK_OWNER HAVING count(*) > 1)") == 0)
      #expect(
        try count(
          "SELECT count(*) FROM ZANIMAL a JOIN ZANIMAL b ON a.ZOWNER = b.ZOWNER AND a.Z_PK < b.Z_PK "
            + "AND a.Z_FOK_OWNER > b.Z_FOK_OWNER") ?? 0 > 0, "the order is not only that of the keys")
      // Discriminators name the entity of the row that they point to.
      let schema = StoreSchema(model: model, frameworkVersion: 1344)
      guard let own = schema.storage(ofRelationship: "favourite", in: "Person")?.ownColumns,
        let discriminator = own.discriminator
      else {
        Issue.record("a to-one at an entity with subentities has a discriminator")
        return
      }
      #expect(
        try count(
          "SELECT count(*) FROM ZPERSON p JOIN ZANIMAL a ON a.Z_PK = p.\(own.key) "
            + "WHERE p.\(discriminator) IS NOT a.Z_ENT") == 0)
      #expect(try count("SELECT count(DISTINCT \(discriminator)) FROM ZPERSON") == 2)
      let pairs = try #require(schema.joinTables.first)
      #expect(try count("SELECT count(*) FROM \(pairs.name)") ?? 0 > 50)
    }
  }

  @Test func limitsOfTheModelAreKept() throws {
    let folder = try Folder()
    let model = try everythingModel()
    let location = try folder.store(model, rows: 3000)
    try StoreReader.withUnchangedStore(at: location) { reader in
      func range(_ sql: String) throws -> [Int64] {
        try reader.connection.rows(sql) { [$0.integer(at: 0), $0.integer(at: 1)] }.flatMap { $0 }
      }
      #expect(try range("SELECT min(ZLIVES), max(ZLIVES) FROM ZANIMAL") == [1, 9])
      let lengths = try range("SELECT min(length(ZNAME)), max(length(ZNAME)) FROM ZPERSON")
      #expect(lengths.first ?? 0 >= 3 && lengths.last ?? 99 <= 40, "lengths \(lengths)")
      #expect(try range("SELECT min(ZINTEGER16), max(ZINTEGER16) FROM ZTHING") == [-32_768, 32_767])
      #expect(
        try range("SELECT min(ZINTEGER32), max(ZINTEGER32) FROM ZTHING") == [Int64(Int32.min), Int64(Int32.max)])
      #expect(try range("SELECT min(ZINTEGER64), max(ZINTEGER64) FROM ZTHING") == [.min, .max])
      for name in ["STRING", "BINARY", "DATE", "UUID", "DECIMAL", "TRANSFORMABLE"] {
        let nulls = try range("SELECT count(*) - count(Z\(name)), count(*) - count(Z\(name)MAYBE) FROM ZTHING")
        #expect(nulls.first == 0, "\(name) is required")
        #expect(nulls.last ?? 0 > 0, "\(name)Maybe is null now and then")
      }
      #expect(try range("SELECT min(length(ZBINARY)), max(length(ZBINARY)) FROM ZTHING") == [0, 4096])
      let prefixes = try range(
        "SELECT min(substr(ZOUTSIDE, 1, 1) = X'01'), count(*) > 0 FROM ZTHING WHERE ZOUTSIDE NOTNULL")
      #expect(prefixes == [1, 1], "values with external storage are inline: 01 and the bytes")
    }
  }

  @Test func limitsStandInASmallStoreToo() throws {
    let folder = try Folder()
    let model = try sampleModel(
      "<entity name='T'><attribute name='n' optional='YES' attributeType='Integer 16'/></entity>")
    let location = try folder.store(model, rows: 14)
    try StoreReader.withUnchangedStore(at: location) { reader in
      let values = Set(try reader.connection.rows("SELECT ZN FROM ZT") { $0.value(at: 0) })
      for value in [.null, .integer(-32_768), .integer(32_767), .integer(0)] as [SQLiteValue] {
        #expect(values.contains(value), "\(value)")
      }
    }
  }

  @Test func constraintsOverArchivesAndBooleansAreFilled() throws {
    let model = try sampleModel(
      """
      <entity name='T'><attribute name='a' attributeType='Boolean'/><attribute name='b' attributeType='Boolean'/>
      <attribute name='t' attributeType='Transformable'/><attribute name='d' attributeType='Binary'/>
      <uniquenessConstraints><uniquenessConstraint><constraint value='a'/><constraint value='b'/>
      </uniquenessConstraint><uniquenessConstraint><constraint value='t'/></uniquenessConstraint>
      <uniquenessConstraint><constraint value='d'/></uniquenessConstraint></uniquenessConstraints></entity>
      """)
    let folder = try Folder()
    let location = try folder.store(model, rows: 4)
    try StoreReader.withUnchangedStore(at: location) { reader in
      for columns in ["ZA, ZB", "ZT", "ZD"] {
        let count = try reader.connection.integer("SELECT count(*) FROM (SELECT DISTINCT \(columns) FROM ZT)")
        #expect(count == 4, "\(columns)")
      }
    }
    let error = #expect(throws: HopdError.self) { _ = try folder.store(model, rows: 5) }
    #expect(error?.code == .cannotFill)
  }

  @Test func tooManyUniqueValuesAreRefusedByName() throws {
    let model = try sampleModel(
      """
      <entity name='T'><attribute name='n' attributeType='Integer 16'/><uniquenessConstraints><uniquenessConstraint>
      <constraint value='n'/></uniquenessConstraint></uniquenessConstraints></entity>
      """)
    let folder = try Folder()
    _ = try folder.store(model, rows: 65_535)
    let error = #expect(throws: HopdError.self) { _ = try folder.store(model, rows: 65_536) }
    #expect(error?.code == .cannotFill)
    #expect(error?.place.entity == "T")
    #expect(error?.place.property == "n")
  }

  @Test(arguments: [419, 519, 637, 754, 977, 1344] as [Int64])
  func everyGenerationOfTheFormatCanBeFilled(framework: Int64) throws {
    let folder = try Folder()
    let model = try everythingModel()
    let location = try folder.store(model, rows: 120, framework: framework)
    try StoreReader.withUnchangedStore(at: location) { reader in
      let integrity = try reader.connection.text("PRAGMA integrity_check")
      let written = try reader.metadata().frameworkVersion
      #expect(integrity == "ok")
      #expect(written == framework)
    }
    #expect(try folder.dump(location, model).split(separator: "\n").count == 120)
  }

  @Test func stoppingLeavesAnError() throws {
    let folder = try Folder()
    let schema = StoreSchema(model: try everythingModel(), frameworkVersion: 1344)
    let error = #expect(throws: HopdError.self) {
      try FreshStore(schema: schema, uuid: "X").make(at: folder.path.appending("x.sqlite"), rows: 10) { _ in false }
    }
    #expect(error?.code == .interrupted)
  }

  @Test func uuidsFollowFromTheSeed() {
    let pattern = /[0-9A-F]{8}-[0-9A-F]{4}-4[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}/
    var seen: Set<String> = []
    for seed in UInt64(0)..<200 {
      let uuid = FreshStore.uuid(seed: seed)
      #expect(uuid.wholeMatch(of: pattern) != nil, "\(uuid)")
      seen.insert(uuid)
    }
    #expect(seen.count == 200)
    #expect(FreshStore.uuid(seed: 3) == FreshStore.uuid(seed: 3))
  }
}
