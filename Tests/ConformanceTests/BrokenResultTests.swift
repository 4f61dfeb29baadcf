// A migrated store that is broken by hand at the last moment, in one place at a time: the verifier must notice, because
// it is the last check before the user's store.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreVerification
import SystemPackage
import Testing

@Suite struct BrokenResultTests {
  private static let breaks: [(what: String, sql: String)] = [
    ("schema", "DROP TRIGGER Z_DA_ZPAGE_Book_pageCount_PARAMETER_DELETE"),
    ("schema", "DROP INDEX ZPAGE_ZBOOK_INDEX"),
    ("schema", "ALTER TABLE ACHANGE DROP COLUMN ZTOMBSTONE0"),
    ("schema", "DROP TABLE Z_MODELCACHE"),
    ("derived-counts", "UPDATE ZBOOK SET ZPAGECOUNT = ZPAGECOUNT + 1 WHERE Z_PK = (SELECT min(Z_PK) FROM ZBOOK)"),
    ("derived-counts", "UPDATE ZBOOK SET ZPAGECOUNT = NULL WHERE ZPAGECOUNT = 0"),
    ("derived-counts", "UPDATE ZBOOK SET ZNOTECOUNT = 0 WHERE Z_ENT = 1"),
    ("derived-values", "UPDATE ZPAGE SET ZTITLE = 'other' WHERE Z_PK = (SELECT max(Z_PK) FROM ZPAGE)"),
    ("derived-values", "UPDATE ZPAGE SET ZTITLE = 'some' WHERE ZBOOK IS NULL"),
    ("schema", "DROP TRIGGER Z_DA_ZBOOK_Page_title_PARAMETER_UPDATE"),
    ("external-data", "UPDATE ZBOOK SET ZPAYLOAD = substr(ZPAYLOAD, 2) WHERE length(ZPAYLOAD) > 1 AND Z_PK < 30"),
    ("external-data", "UPDATE ZBOOK SET ZPAYLOAD = CAST(X'01' || ZPAYLOAD AS BLOB) WHERE ZPAYLOAD IS NOT NULL"),
    (
      "external-data",
      "UPDATE ZBOOK SET ZPAYLOAD = X'01' WHERE length(ZPAYLOAD) = 38 AND substr(ZPAYLOAD, 1, 1) = X'02'"
    ),
    ("external-data", "UPDATE ZBOOK SET ZRAW = CAST(X'01' || ZRAW AS BLOB) WHERE ZRAW IS NOT NULL"),
    ("model-cache", "UPDATE Z_MODELCACHE SET Z_CONTENT = substr(Z_CONTENT, 2)"),
    ("model-cache", "DELETE FROM Z_MODELCACHE"),
    ("history", "UPDATE Z_PRIMARYKEY SET Z_MAX = 39 WHERE Z_ENT = 16001"),
    ("history", "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 16003"),
    ("history", "INSERT INTO ATRANSACTION (Z_PK, Z_ENT) VALUES (1, 16002)"),
    ("history", "DELETE FROM ATRANSACTION WHERE Z_PK = 42"),
    ("history", "DELETE FROM ATRANSACTION WHERE Z_PK = 41"),
    ("history", "UPDATE ATRANSACTION SET ZTIMESTAMP = 1 WHERE Z_PK = 41"),
    ("history", "UPDATE ATRANSACTION SET ZAUTHORTS = ZPROCESSIDTS WHERE Z_PK = 42"),
    ("history", "DELETE FROM ACHANGE"),
    ("history", "UPDATE ACHANGE SET ZENTITY = 2"),
    ("history", "UPDATE ACHANGE SET ZENTITYPK = 2"),
    ("history", "UPDATE ACHANGE SET ZCOLUMNS = X'00'"),
    ("history", "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZENTITY, ZENTITYPK, ZTRANSACTIONID) VALUES (8, 16001, 1, 1, 42)"),
    ("hashes", "UPDATE Z_METADATA SET Z_UUID = 'A0000000-0000-4000-8000-000000000000'"),
    ("counts", "DELETE FROM ZPAGE WHERE Z_PK = (SELECT max(Z_PK) FROM ZPAGE)"),
    ("counts", "UPDATE ZBOOK SET Z_ENT = 1 WHERE Z_PK = (SELECT max(Z_PK) FROM ZBOOK WHERE Z_ENT = 2)"),
    ("relationships", "UPDATE ZPAGE SET ZBOOK = 99999 WHERE Z_PK = (SELECT max(Z_PK) FROM ZPAGE WHERE ZBOOK NOT NULL)"),
  ]

  private func model(_ name: String, isLast: Bool) -> ManagedObjectModel {
    func count(_ name: String, _ path: String) -> Attribute {
      Attribute(name: name, type: .integer64, isOptional: true, derivationExpression: path)
    }
    return ManagedObjectModel(
      name: name,
      entities: [
        Entity(
          name: "Book",
          attributes: [
            Attribute(name: "payload", type: .binary, isOptional: true, allowsExternalStorage: true),
            Attribute(name: "title", type: .string, isOptional: true),
            Attribute(name: "raw", type: .binary, isOptional: true, allowsExternalStorage: !isLast),
          ] + (isLast ? [count("pageCount", "pages.@count")] : []),
          relationships: [
            Relationship(name: "pages", destinationEntityName: "Page", inverseName: "book", isToMany: true)
          ]),
        Entity(
          name: "Novel", parentName: "Book", attributes: isLast ? [count("noteCount", "notes.@count")] : [],
          relationships: [Relationship(name: "notes", destinationEntityName: "Note", isToMany: true)]),
        Entity(name: "Note"),
        Entity(
          name: "Page",
          attributes: [Attribute(name: "text", type: .string, preservesAfterDeletion: true)]
            + (isLast
              ? [Attribute(name: "title", type: .string, isOptional: true, derivationExpression: "book.title")] : []),
          relationships: [Relationship(name: "book", destinationEntityName: "Book", inverseName: "pages")]),
      ])
  }

  @Test func theVerifierNoticesEveryBreak() throws {
    let environment = try Workshop()
    let versions = [model("V1", isLast: false), model("V2", isLast: true)]
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: "V2")
    ])
    let location = try environment.store(versions[0], rows: 400, seed: 3)
    let request = environment.request(location, catalog, output: true)
    _ = try environment.run(request, interrupts: false)
    let output = try #require(request.output)
    let plan = try StoreReader.withUnchangedStore(at: location) { reader in
      let found = try StoreIdentifier.identify(reader: reader, location: location, catalog: catalog)
      return try MigrationPlanner.plan(store: try #require(found.identified), catalog: catalog, reader: reader)
    }
    // In the form that the verifier gets: one file, in rollback mode.
    _ = try Connection.ofApp(output).text("PRAGMA journal_mode = DELETE")
    let verifier = StoreVerifier(depth: .full)
    let source = StoreReader(connection: try Connection.ofApp(location.database))
    #expect(try verifier.verify(staged: output, plan: plan, source: source).checks.allSatisfy(\.passed))
    for (index, broken) in Self.breaks.enumerated() {
      let copy = environment.folder.appending("broken\(index).sqlite")
      try FileManager.default.copyItem(atPath: output.string, toPath: copy.string)
      let connection = try Connection.ofApp(copy)
      try SchemaTrigger.registerFunctions(on: connection)
      let triggers = try connection.rows("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'") {
        (name: $0.text(at: 0) ?? "", sql: $0.text(at: 1) ?? "")
      }
      let removesTrigger = broken.sql.hasPrefix("DROP TRIGGER")
      // Triggers would repair what is broken here.
      if !removesTrigger { for trigger in triggers { try connection.execute("DROP TRIGGER \"\(trigger.name)\"") } }
      try connection.execute(broken.sql)
      if !removesTrigger { for trigger in triggers { try connection.execute(trigger.sql) } }
      let error = #expect(throws: HopdError.self, "\(broken.sql)") {
        try verifier.verify(staged: copy, plan: plan, source: source)
      }
      let reported = error?.reasons.map { String($0.message.prefix { $0 != ":" }) } ?? []
      #expect(reported.contains(broken.what), "\(broken.sql): \(reported)")
    }
    // A file that disappears while the store is built.
    let files = try FileManager.default.contentsOfDirectory(atPath: location.externalDataDirectory.string)
    #expect(!files.isEmpty)
    for file in files {
      try FileManager.default.removeItem(atPath: location.externalDataDirectory.appending(file).string)
    }
    #expect(throws: HopdError.self) { try verifier.verify(staged: output, plan: plan, source: source) }
  }
}
