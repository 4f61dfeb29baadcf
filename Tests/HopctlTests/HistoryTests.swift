// Persistent history, mirroring, file settings and framework versions, as the command line shows them.

import BlockingTests
import FoundationEssentials
import Glibc
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct HistoryTests {
  /// History as a store of framework version 851 has it, with rows.
  private static let history = """
    CREATE TABLE ACHANGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER, ZENTITY INTEGER,
      ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB );
    CREATE TABLE ATRANSACTION ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTIMESTAMP FLOAT, \
    ZAUTHOR VARCHAR,
      ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, ZPROCESSID VARCHAR, ZQUERYGEN BLOB );
    CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID);
    INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID) VALUES (1, 16001, 0, 1, 1, 1),
      (2, 16001, 0, 1, 2, 1), (3, 16001, 0, 1, 3, 1);
    INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZAUTHOR) VALUES (1, 16002, 'the author');
    INSERT INTO Z_PRIMARYKEY VALUES (16001, 'CHANGE', 0, 9), (16002, 'TRANSACTION', 0, 4);
    """.split(separator: "\n").joined(separator: " ").replacing("      ", with: "")

  private let numbers = "SELECT group_concat(Z_ENT || ' ' || Z_MAX) FROM Z_PRIMARYKEY WHERE Z_ENT > 16000"

  @Test func planTellsWhatIsClearedAndMigrateDoesIt() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.sql(store, Self.history)
    let plan = try room.run("plan", store, "--models", room.model, "--history", "clear")
    #expect(plan.status == 0, "\(plan.errors)")
    #expect(plan.output.contains("clears ACHANGE (persistent history): 3 rows"))
    let planned = try room.run("plan", store, "--models", room.model, "--history", "clear", "--json").json()
    #expect(planned.history?.list.map { $0.table?.text } == ["ACHANGE", "ATRANSACTION"])
    #expect(planned.history?.list.map { $0.rows?.int } == [3, 1])
    #expect(planned.warnings?.list.contains { $0.code?.text == "history-cleared" } == true)

    let outcome = try room.run("migrate", store, "--models", room.model, "--history", "clear", "--json")
    try #require(outcome.status == 0, "\(outcome.errors)")
    #expect(!outcome.output.contains("the author") && !outcome.errors.contains("the author"))
    let dropped = try outcome.json().dropped?.list.filter { $0.property == .null } ?? []
    #expect(dropped.map { $0.table?.text } == ["ACHANGE", "ATRANSACTION"])
    #expect(dropped.map { $0.nonNull?.int } == [3, 1] && dropped.map { $0.hop?.int } == [2, 2])
    #expect(try room.sql(store, "SELECT (SELECT count(*) FROM ACHANGE) + (SELECT count(*) FROM ATRANSACTION)") == "0")
    #expect(try room.sql(store, numbers) == "16001 9,16002 4")
    #expect(
      try room.sql(store, "SELECT count(*) FROM sqlite_master WHERE name = 'ACHANGE_ZTRANSACTIONID_INDEX'") == "1")
    #expect(try room.run("verify", store, "--models", room.model).status == 0)
    #expect(try room.run("dump", store, "--models", room.model).lines().count == 30)
    let entities = try room.run("identify", store, "--models", room.model, "--json").json().entities?.list ?? []
    #expect(entities.map { $0.name?.text } == ["Animal", "Bird", "Keeper"])
    // History is written on; at the wanted version it is left alone.
    try room.sql(store, "INSERT INTO ACHANGE (Z_PK, Z_ENT) VALUES (10, 16001)")
    #expect(try room.run("migrate", store, "--models", room.model).output.hasPrefix("current "))
    #expect(try room.sql(store, "SELECT count(*) FROM ACHANGE") == "1")
  }

  @Test func historyGoesAlongUnlessSomethingElseIsAskedFor() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.sql(store, Self.history)
    let plan = try room.run("plan", store, "--models", room.model)
    #expect(plan.status == 0 && !plan.output.contains("clears"), "\(plan.errors)")
    for command in [["rehearse"], ["migrate"]] {
      let outcome = try room.run(words: command + [store, "--models", room.model])
      #expect(outcome.status == 0, "\(outcome.errors)")
    }
    #expect(try room.sql(store, "SELECT group_concat(Z_PK) FROM ACHANGE") == "1,2,3")
    #expect(try room.sql(store, numbers) == "16001 9,16002 5")
    #expect(try room.sql(store, "SELECT count(*) FROM ATRANSACTION WHERE ZAUTHOR LIKE '%schemamigrator%'") == "1")
    #expect(try room.run("verify", store, "--models", room.model).status == 0)
  }

  /// As SwiftData makes a store: tables, and no numbers before the first save.
  @Test func historyWithoutNumbersIsAnOrdinaryStore() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.sql(
      store,
      Self.history + "DELETE FROM ACHANGE; DELETE FROM ATRANSACTION; DELETE FROM Z_PRIMARYKEY WHERE Z_ENT > 16000")
    for command in [["identify"], ["plan"], ["rehearse"], ["migrate"], ["verify"]] {
      let outcome = try room.run(words: command + [store, "--models", room.model])
      #expect(outcome.status == 0, "\(command): \(outcome.errors)")
    }
    #expect(try room.run("identify", store, "--models", room.model).output.contains("Zoo 10"))
    #expect(try room.sql(store, "SELECT count(*) FROM Z_PRIMARYKEY WHERE Z_ENT > 16000") == "0")
    #expect(try room.sql(store, "SELECT count(*) FROM sqlite_master WHERE name IN ('ACHANGE', 'ATRANSACTION')") == "2")
    // Rows whose keys nobody counts are another thing.
    let other = try room.store("b.sqlite")
    try room.sql(other, Self.history + "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT > 16000")
    #expect(try room.run("migrate", other, "--models", room.model).status == 65)
  }

  @Test func historyIsRefusedWhereThatIsWanted() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.sql(store, Self.history)
    try room.file(
      "refuse.toml",
      """
      [[watch]]
      name = "zoo"
      directory = "\(room.path("stores"))"
      models = ["\(room.model)"]
      [watch.migration]
      history = "refuse"
      """)
    let before = try room.snapshot()
    for arguments in [
      ["--models", room.model, "--history", "refuse"], ["--config", room.path("refuse.toml")],
    ] {
      for command in ["plan", "migrate"] {
        let outcome = try room.run(words: [command, store, "--json"] + arguments)
        #expect(outcome.status == 65, "\(command) \(arguments)")
        #expect(try outcome.json().error?.code?.text == "history-not-supported")
      }
    }
    #expect(try room.snapshot() == before)
    #expect(try room.run("plan", store, "--models", room.model, "--history", "keep").status == 64)
    // The command line goes over the configuration.
    let outcome = try room.run("migrate", store, "--config", room.path("refuse.toml"), "--history", "clear")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("cleared ACHANGE (persistent history): 3 rows"))
  }

  @Test func mirroredStoresAreNeverTouched() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.sql(
      store,
      "CREATE TABLE ANSCKRECORDMETADATA ( Z_PK INTEGER PRIMARY KEY ); INSERT INTO Z_PRIMARYKEY VALUES (17012, "
        + "'NSCKRecordMetadata', 0, 0); " + Self.history)
    let before = try room.snapshot()
    for command in ["plan", "migrate"] {
      let outcome = try room.run(command, store, "--models", room.model, "--json")
      #expect(outcome.status == 65)
      #expect(try outcome.json().error?.code?.text == "cloudkit-not-supported")
      #expect(outcome.errors.contains("--cloudkit migrate") && !outcome.errors.contains("exclude"))
    }
    #expect(try room.snapshot() == before)
  }

  /// Page size, auto_vacuum and journal mode of the source are those of the result, and the metadata say so.
  @Test func theFileKeepsItsSettings() throws {
    let room = try Room()
    for (number, page) in [512, 2048, 8192, 65536].enumerated() {
      for vacuum in 0...2 {
        let store = try room.store("\(page)-\(vacuum).sqlite")
        let mode = (number + vacuum) % 2 == 0 ? "delete" : "wal"
        try room.sql(
          store,
          "PRAGMA journal_mode = DELETE; PRAGMA page_size = \(page); PRAGMA auto_vacuum = \(vacuum); VACUUM; "
            + "PRAGMA journal_mode = \(mode)")
        let settings = "PRAGMA page_size; PRAGMA auto_vacuum; PRAGMA journal_mode"
        let before = try room.sql(store, settings)
        #expect(before == "\(page)\n\(vacuum)\n\(mode)")
        let outcome = try room.run("migrate", store, "--models", room.model, "--json", "--verify", "full")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try room.sql(store, settings) == before)
        // "_NSAutoVacuumLevel" is a text of one digit in the property list.
        let level = try room.sql(
          store, "SELECT instr(hex(Z_PLIST), '51' || hex('\(vacuum)')) > 0 FROM Z_METADATA")
        #expect(level == "1")
        // The store that hopctl makes has auto_vacuum 2: anything else contradicts its metadata, and that is told.
        let reported = try outcome.json().warnings?.list.contains { $0.code?.text == "metadata-corrected" }
        #expect(reported == (vacuum != 2))
      }
    }
  }

  @Test func frameworkVersionsThatWereNeverSeenAreReported() throws {
    let room = try Room()
    for (version, isKnown) in [("241", true), ("1526", true), ("900", false), ("9999", false)] {
      let outcome = try room.run(
        "model", "schema", room.model, "--model-version", "Zoo", "--framework-version", version)
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.errors.contains("was ever seen") == !isKnown, "\(version)")
    }
    #expect(
      try room.run("model", "schema", room.model, "--model-version", "Zoo", "--framework-version", "0").status == 64)
    let store = room.path("old.sqlite")
    let made = try room.run(
      "create", store, "--models", room.model, "--model-version", "Zoo", "--framework-version", "241", "--rows", "9")
    #expect(made.status == 0, "\(made.errors)")
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    #expect(try room.sql(store, "PRAGMA page_size") == "2048")
    let header = Array(try Data(contentsOf: URL(filePath: store)).prefix(48))
    #expect(header.last == 1)
    #expect(try room.run("verify", store, "--models", room.model).status == 0)
  }
}
