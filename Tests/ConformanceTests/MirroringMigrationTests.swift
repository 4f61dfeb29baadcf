// Stores that are mirrored with CloudKit: refused by default; if the operator asks for them, their mirroring refers to
// the same objects after a migration as before.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreVerification
import SystemPackage
import Testing

@Suite struct MirroringMigrationTests {
  private static func entity(
    _ name: String, _ attributes: [String] = ["title"], id: String? = nil, relationships: [Relationship] = [],
    unique: [[String]] = []
  ) -> Entity {
    Entity(
      name: name, renamingIdentifier: id,
      attributes: attributes.map { Attribute(name: $0, type: .string, isOptional: true) }, relationships: relationships,
      uniquenessConstraints: unique)
  }

  private static func model(_ name: String, _ entities: [Entity]) -> ManagedObjectModel {
    ManagedObjectModel(name: name, entities: entities)
  }

  /// Tables of framework 1347, as far as the tests use them.
  private static let mirroring = [
    "CREATE TABLE ANSCKRECORDMETADATA ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZENTITYID INTEGER, "
      + "ZENTITYPK INTEGER, ZLASTEXPORTEDTRANSACTIONNUMBER INTEGER, ZNEEDSCLOUDDELETE INTEGER, "
      + "ZNEEDSLOCALDELETE INTEGER, "
      + "ZNEEDSUPLOAD INTEGER, ZPENDINGEXPORTCHANGETYPENUMBER INTEGER, ZPENDINGEXPORTTRANSACTIONNUMBER INTEGER, "
      + "ZRECORDZONE INTEGER, ZCKRECORDNAME VARCHAR, ZCKRECORDSYSTEMFIELDS BLOB, ZCKSHARE BLOB, ZENCODEDRECORD BLOB )",
    "CREATE UNIQUE INDEX Z_NSCKRecordMetadata_UNIQUE_entityId_entityPK ON ANSCKRECORDMETADATA (ZENTITYID "
      + "COLLATE BINARY "
      + "ASC, ZENTITYPK COLLATE BINARY ASC)",
    "CREATE TABLE ANSCKMETADATAENTRY ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZBOOLVALUENUM INTEGER, "
      + "ZINTEGERVALUE INTEGER, ZDATEVALUE TIMESTAMP, ZKEY VARCHAR, ZSTRINGVALUE VARCHAR, ZTRANSFORMEDVALUE BLOB )",
    "CREATE TABLE ANSCKMIRROREDRELATIONSHIP ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
      + "ZISPENDING INTEGER, "
      + "ZISUPLOADED INTEGER, ZNEEDSDELETE INTEGER, ZRECORDZONE INTEGER, ZCDENTITYNAME VARCHAR, ZCKRECORDID VARCHAR, "
      + "ZRECORDNAME VARCHAR, ZRELATEDENTITYNAME VARCHAR, ZRELATEDRECORDNAME VARCHAR, ZRELATIONSHIPNAME VARCHAR, "
      + "ZCKRECORDSYSTEMFIELDS BLOB )",
    "INSERT INTO Z_PRIMARYKEY VALUES (17009, 'NSCKMetadataEntry', 0, 1), (17010, 'NSCKMirroredRelationship', 0, 0), "
      + "(17011, 'NSCKRecordMetadata', 0, 9)",
    "INSERT INTO ANSCKMETADATAENTRY (Z_PK, Z_ENT, Z_OPT, ZKEY, ZTRANSFORMEDVALUE) "
      + "VALUES (1, 17009, 2, 'token', X'00FF')",
    // Keys of both entities coincide while their numbers are exchanged.
    "INSERT INTO ANSCKRECORDMETADATA (Z_PK, Z_ENT, Z_OPT, ZENTITYID, ZENTITYPK, ZCKRECORDNAME) VALUES "
      + "(1, 17011, 2, 1, 1, 'a'), (2, 17011, 2, 2, 1, 'b'), (3, 17011, 2, 1, 2, 'c'), (4, 17011, 2, 2, 2, 'd')",
    "INSERT INTO ATRANSACTION (Z_PK, Z_ENT) VALUES (1, 16002), (2, 16002)",
    "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID) VALUES (1, 16001, 0, 1, 1, 1), "
      + "(2, 16001, 0, 2, 1, 2)",
  ]

  private func store(_ environment: Workshop, _ model: ManagedObjectModel, _ sql: [String]) throws -> StoreLocation {
    let location = StoreLocation(database: environment.folder.appending("\(UUID().uuidString).sqlite"))
    var schema = StoreSchema(model: model, frameworkVersion: 1344)
    schema.history = HistoryLayout.made(byFramework: 1344, tombstones: 0)
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 5)).make(at: location.database, rows: 20, seed: 5)
    try Connection.ofApp(location.database).execute(sql.joined(separator: "; "))
    return location
  }

  private func request(
    _ environment: Workshop, _ location: StoreLocation, _ versions: [ManagedObjectModel],
    _ rule: CloudKitRule = .migrate
  ) -> MigrationRequest {
    var request = environment.request(location, Self.catalog(versions))
    request.cloudKit = rule
    return request
  }

  private static func catalog(_ versions: [ManagedObjectModel]) -> ModelCatalog {
    ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: versions.last?.name)
    ])
  }

  private static func lines(_ location: StoreLocation, _ sql: String) throws -> [String] {
    try StoreReader.withUnchangedStore(at: location) { reader in
      try reader.connection.rows(sql) { row in
        (0..<row.columnCount).map { row.value(at: $0).literal }.joined(separator: " ")
      }
    }
  }

  private static let records =
    "SELECT r.Z_PK, Z_NAME, ZENTITYPK, ZCKRECORDNAME, r.Z_OPT FROM ANSCKRECORDMETADATA AS r "
    + "LEFT JOIN Z_PRIMARYKEY AS p ON "
    + "p.Z_ENT = ZENTITYID ORDER BY 1"
  private static let texts =
    "SELECT name, sql FROM sqlite_master WHERE tbl_name LIKE 'ANSCK%' ORDER BY type DESC, name"

  @Test func nothingRenumberedLeavesTheMirroringAsItIs() throws {
    let environment = try Workshop()
    let versions = [
      Self.model("V1", [Self.entity("Note"), Self.entity("Tag")]),
      Self.model("V2", [Self.entity("Note", ["body", "title"]), Self.entity("Tag")]),
    ]
    for alters in [true, false] {
      let location = try store(environment, versions[0], Self.mirroring)
      let before = try [Self.records, Self.texts, "SELECT * FROM ANSCKMETADATAENTRY"].map {
        try Self.lines(location, $0)
      }
      var request = request(environment, location, versions)
      request.engine.altering = alters ? .wherePossible : .never
      _ = try environment.run(request, interrupts: false)
      let after = try [Self.records, Self.texts, "SELECT * FROM ANSCKMETADATAENTRY"].map {
        try Self.lines(location, $0)
      }
      #expect(before == after, "altered \(alters)")
      #expect(
        try Self.lines(location, "SELECT Z_ENT, Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT > 17000") == [
          "17009 1", "17010 0", "17011 9",
        ])
    }
  }

  /// In memory a store begins as a copy of an empty store, which is made once for all stores with the same texts.
  @Test func storesOfOneCatalogKeepTheirOwnTablesOfMirroring() throws {
    let environment = try Workshop()
    let versions = [
      Self.model("V1", [Self.entity("Note"), Self.entity("Tag")]),
      Self.model("V2", [Self.entity("Note", ["body", "title"]), Self.entity("Tag")]),
    ]
    let catalog = Self.catalog(versions)
    let withoutIndex = Self.mirroring + ["DROP INDEX Z_NSCKRecordMetadata_UNIQUE_entityId_entityPK"]
    for sql in [Self.mirroring, withoutIndex, Self.mirroring] {
      let location = try store(environment, versions[0], sql)
      let before = try Self.lines(location, Self.texts)
      var request = environment.request(location, catalog)
      request.cloudKit = .migrate
      request.engine.altering = .never
      _ = try environment.run(request, interrupts: false)
      #expect(try Self.lines(location, Self.texts) == before)
    }
  }

  @Test func recordsFollowNumbersThatChangeAndForgetEntitiesThatGo() throws {
    let environment = try Workshop()
    // An added entity raises both numbers by one: each takes the other's place in the unique index.
    let versions = [
      Self.model("V1", [Self.entity("Note"), Self.entity("Tag")]),
      Self.model("V2", [Self.entity("Atlas"), Self.entity("Note"), Self.entity("Tag")]),
    ]
    for chunk in [1, 50_000] as [Int64] {
      let location = try store(environment, versions[0], Self.mirroring)
      let before = try Self.lines(location, Self.records)
      var request = request(environment, location, versions)
      request.engine.chunkRowsMax = chunk
      _ = try environment.run(request, interrupts: chunk == 1)
      #expect(try Self.lines(location, Self.records) == before)
      #expect(try Self.lines(location, "SELECT DISTINCT ZENTITYID FROM ANSCKRECORDMETADATA ORDER BY 1") == ["2", "3"])
    }
    let removing = [versions[0], Self.model("V2", [Self.entity("Tag")])]
    let location = try store(environment, versions[0], Self.mirroring)
    let report = try environment.run(request(environment, location, removing), interrupts: false)
    #expect(try Self.lines(location, Self.records) == ["2 'Tag' 1 'b' 2", "4 'Tag' 2 'd' 2"])
    #expect(report.warnings.contains { $0.code == .historyCleared && $0.place.entity == "Note" })
  }

  @Test func whatIsNotKnownOrCannotBeMirroredIsRefused() throws {
    let environment = try Workshop()
    let first = Self.model("V1", [Self.entity("Note"), Self.entity("Tag")])
    let plain = Self.model("V2", [Self.entity("Note", ["body", "title"]), Self.entity("Tag")])
    let oneWay = Relationship(name: "tags", destinationEntityName: "Tag", isToMany: true)
    var renamed = Self.entity("Note", ["name"])
    renamed.attributes[0].renamingIdentifier = "title"
    let cases: [(ManagedObjectModel, [String], HistoryRule, CloudKitRule, String)] = [
      (plain, [], .migrate, .refuse, "to be refused"),
      (plain, [], .clear, .migrate, "upload everything"),
      (plain, ["ALTER TABLE ANSCKMETADATAENTRY ADD COLUMN ZMORE INTEGER"], .migrate, .migrate, "ANSCKMETADATAENTRY"),
      (plain, ["CREATE TABLE ANSCKASSET ( Z_PK INTEGER PRIMARY KEY )"], .migrate, .migrate, "ANSCKASSET"),
      (plain, ["DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 17011"], .migrate, .migrate, "ANSCKRECORDMETADATA"),
      (plain, ["UPDATE ANSCKRECORDMETADATA SET ZENTITYID = 7 WHERE Z_PK = 1"], .migrate, .migrate, "1 row"),
      (Self.model("V2", [Self.entity("Memo", id: "Note"), Self.entity("Tag")]), [], .migrate, .migrate, "renamed"),
      (Self.model("V2", [renamed, Self.entity("Tag")]), [], .migrate, .migrate, "renamed"),
      (
        Self.model("V2", [Self.entity("Note", unique: [["title"]]), Self.entity("Tag")]),
        ["UPDATE ZNOTE SET ZTITLE = Z_PK"], .migrate, .migrate, "uniqueness"
      ),
      (
        Self.model("V2", [Self.entity("Note", relationships: [oneWay]), Self.entity("Tag")]), [], .migrate, .migrate,
        "without inverse"
      ),
      (
        Self.model("V2", [Self.entity("Note")]),
        [
          "INSERT INTO ANSCKMIRROREDRELATIONSHIP (Z_PK, Z_ENT, ZCDENTITYNAME, ZRELATEDENTITYNAME, ZRELATIONSHIPNAME) "
            + "VALUES (1, 17010, 'Tag', 'Note', 'notes')"
        ], .migrate, .migrate, "ANSCKMIRROREDRELATIONSHIP"
      ),
    ]
    for (last, sql, history, rule, what) in cases {
      let location = try store(environment, first, Self.mirroring + sql)
      var request = request(environment, location, [first, last], rule)
      request.history = history
      let error = #expect(throws: HopdError.self, "\(what)") { try environment.run(request, interrupts: false) }
      let reported = [error?.message ?? ""] + (error?.reasons.map(\.message) ?? [])
      #expect(reported.contains { $0.contains(what) }, "\(what): \(reported)")
      #expect(error?.code == .cloudKitNotSupported || error?.code == .planRefused, "\(what)")
      if rule == .refuse { #expect(error?.hint?.contains("--cloudkit migrate") == true) }
    }
  }
}
