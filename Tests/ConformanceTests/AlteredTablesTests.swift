// One store on an altered copy: the texts of its tables, the results that the verifier accepts, which tables are
// written, and a run that is stopped at every step.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

@Suite struct AlteredTablesTests {
  @Test func theTextsAreThoseOfCoreDatasOwnMigration() throws {
    let world = try AlteredWorld(seed: 1, versions: LibraryModels.versions(LibraryModels.withRating), framework: 1044)
    let (_, copy) = try world.both()
    #expect(
      try copy.answers("SELECT sql FROM sqlite_master WHERE name = 'ZBOOK'") == [
        "'CREATE TABLE ZBOOK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZYEAR INTEGER, ZAUTHOR INTEGER,"
          + " ZTITLE VARCHAR , ZRATING INTEGER, ZBLURB VARCHAR)'"
      ])
    #expect(try copy.answers("SELECT DISTINCT ZRATING, ZBLURB FROM ZBOOK") == ["3 | NULL"])
    // Such a store can be migrated further: its tables are those of an in-place migration.
    var entities = world.versions[1].entities
    entities[0].attributes.append(Attribute(name: "born", type: .date, isOptional: true))
    entities[1].attributes.append(Attribute(name: "pages", type: .integer32, isOptional: true))
    let third = ManagedObjectModel(name: "V3", entities: entities)
    let catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: world.versions + [third], currentVersionName: "V3")
    ])
    var request = world.request("third", alters: true)
    request.location = CanonicalStoreLocation(unresolved: copy.database)
    request.catalog = catalog
    let report = try MigrationPipeline().run(request, stop: StopSignal()) { _ in }
    #expect(report.hops.map(\.chunks) == [1])
    let third3 = StoreLocation(database: try #require(request.output))
    #expect(
      try third3.answers("SELECT sql FROM sqlite_master WHERE name = 'ZBOOK'").first?.hasSuffix(
        "ZTITLE VARCHAR , ZRATING INTEGER, ZBLURB VARCHAR, ZPAGES INTEGER)'") == true)
  }

  /// Spoiled in one place at a time: an added, missing or moved column, a constraint on a column, rows without the
  /// default.
  @Test(arguments: [
    "", "ALTER TABLE ZBOOK ADD COLUMN ZMORE INTEGER", "ALTER TABLE ZBOOK DROP COLUMN ZBLURB",
    "ALTER TABLE ZBOOK DROP COLUMN ZBLURB; ALTER TABLE ZBOOK ADD COLUMN ZBLURB VARCHAR DEFAULT 'x'",
    "ALTER TABLE ZBOOK DROP COLUMN ZRATING; ALTER TABLE ZBOOK ADD COLUMN ZRATING INTEGER; UPDATE ZBOOK SET ZRATING = 3",
    "ALTER TABLE ZTAG RENAME TO ZT; ALTER TABLE ZT RENAME TO ZTAG", "DROP INDEX ZBOOK_ZAUTHOR_INDEX",
    "CREATE INDEX mine ON ZBOOK (ZTITLE)", "UPDATE ZBOOK SET ZRATING = NULL WHERE Z_PK = 5",
    "UPDATE ZBOOK SET ZTITLE = NULL WHERE Z_PK = 5",
  ])
  func theVerifierTakesThatLayoutAndNoOther(_ edit: String) throws {
    let world = try AlteredWorld(seed: 6, versions: LibraryModels.versions(LibraryModels.withRating), framework: 1044)
    let (rows, copy) = try world.both()
    let plan = try world.plan()
    let verifier = StoreVerifier(depth: .quick)
    let staying = try ChainExecution(of: plan, options: AlteredWorld.options).staying
    if !edit.isEmpty {
      try Connection.ofApp(copy.database).execute(edit)
      #expect(throws: HopdError.self) { try verifier.verify(staged: copy.database, plan: plan, staying: staying) }
      return
    }
    _ = try verifier.verify(staged: copy.database, plan: plan, staying: staying)
    _ = try verifier.verify(staged: rows.database, plan: plan)
    #expect(throws: HopdError.self) { try verifier.verify(staged: copy.database, plan: plan) }
    #expect(throws: HopdError.self) { try verifier.verify(staged: rows.database, plan: plan, staying: staying) }
  }

  /// Features that a copy would not carry as rows do, each with a word of the reason.
  @Test(arguments: [
    ("CREATE TRIGGER mine AFTER UPDATE ON ZBOOK BEGIN SELECT 1; END", "trigger"), ("ANALYZE", "sqlite_stat1"),
    ("CREATE TABLE Zwaste (x); INSERT INTO Zwaste VALUES (zeroblob(900000)); DROP TABLE Zwaste", "free"),
  ])
  func otherFilesGoByRows(_ edit: String, _ reason: String) throws {
    let world = try AlteredWorld(seed: 2, versions: LibraryModels.versions(LibraryModels.withRating), framework: 1044)
    guard case .alter = try world.decision() else {
      Issue.record("not altered as it is")
      return
    }
    try world.edit(edit)
    // The planner may refuse it for other reasons.
    guard let decision = try? world.decision() else { return }
    guard case .write(let reported) = decision else {
      Issue.record("altered after \(edit)")
      return
    }
    #expect(reported.contains(reason), "\(reported)")
  }

  /// A hop writes a new file where it touches most pages of the one before: all rows of all tables but one, or only of
  /// one.
  @Test(arguments: [true, false])
  func aHopThatTouchesMostPagesWritesThem(_ touchesMost: Bool) throws {
    let versions = LibraryModels.versions { entities in
      for index in entities.indices.dropLast(touchesMost ? 0 : 2) { entities[index].attributes.remove(at: 0) }
    }
    let world = try AlteredWorld(seed: 4, versions: versions, framework: 1044, rows: 600)
    var options = EngineOptions()
    options.altering = .whereFaster
    switch try AlterCompiler.decide(try world.plan(), options: options).first {
    case .write(let reported): #expect(touchesMost && reported.contains("most pages"), "\(reported)")
    case .alter(let program): #expect(!touchesMost && program.written.map(\.name) == ["ZAUTHOR"])
    case nil: Issue.record("no hop")
    }
  }

  /// Numbers in names that move by one: a column gets the name that the next one still has.
  @Test(arguments: [true, false])
  func columnsTakeEachOthersNames(grows: Bool) throws {
    let other = Entity(name: "Aardvark", attributes: [Attribute(name: "label", type: .string, isOptional: true)])
    let versions = LibraryModels.versions { entities in
      entities[1].relationships[1] = Relationship(
        name: "links", destinationEntityName: "Tag", inverseName: "links", isToMany: true)
      entities[2].relationships[0] = Relationship(
        name: "links", destinationEntityName: "Book", inverseName: "links", isToMany: true)
      if !grows { entities.append(other) }
    }
    var moved = versions[1].entities
    if grows { moved.append(other) } else { moved.removeAll { $0.name == other.name } }
    let chain = [versions[1], ManagedObjectModel(name: "V3", entities: moved)]
    let world = try AlteredWorld(seed: 8, versions: chain, framework: 1044)
    #expect(try world.program().changes.contains { $0.reason.contains("columns renamed") })
    let (rows, copy) = try world.both()
    #expect(try copy.content() == rows.content())
    let texts = try copy.answers("SELECT sql FROM sqlite_master WHERE type = 'table' AND sql LIKE '%LINKS INTEGER%'")
    #expect(texts.count == 1)
    let (first, second) = grows ? ("Z_3LINKS", "Z_4LINKS") : ("Z_2LINKS", "Z_3LINKS")
    #expect(texts.first?.contains("\(first) INTEGER, \(second) INTEGER") == true, "\(texts)")
  }

  /// Pages of dropped tables would stay in a file without auto_vacuum.
  @Test(.enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"), arguments: [true, false])
  func removedTablesDoNotStayAsFreePages(givesBack: Bool) throws {
    let versions = LibraryModels.versions { entities in
      entities.remove(at: 2)
      entities[1].relationships.remove(at: 1)
    }
    let world = try AlteredWorld(seed: 9, versions: versions, framework: 1044)
    if !givesBack {
      let sqlite3 = popen("/usr/bin/sqlite3 '\(world.location.database)' 'PRAGMA auto_vacuum = 0; VACUUM'", "r")
      #expect(pclose(sqlite3) == 0)
    }
    switch try world.decision() {
    case .alter: #expect(givesBack)
    case .write(let reported): #expect(!givesBack && reported.contains("release their pages"), "\(reported)")
    }
  }

  /// SQLite reads the whole schema for each added column: with many tables, carrying rows is faster.
  @Test func manyAlterationsOfFewRowsAreNotMade() throws {
    let entities = (0..<300).map { Entity(name: "E\($0)", attributes: [Attribute(name: "a", type: .string)]) }
    let grown = entities.map { entity in
      var grown = entity
      grown.attributes.append(Attribute(name: "b", type: .string, isOptional: true))
      return grown
    }
    let chain = [ManagedObjectModel(name: "V1", entities: entities), ManagedObjectModel(name: "V2", entities: grown)]
    let world = try AlteredWorld(seed: 10, versions: chain, framework: 1044, rows: 1)
    var options = EngineOptions()
    options.altering = .whereFaster
    guard case .write = try AlterCompiler.decide(try world.plan(), options: options).first else {
      Issue.record("300 tables would be altered")
      return
    }
  }

  /// A table with an unusual text is written, and only that one.
  @Test(arguments: [
    ("ZBOOK", "ALTER TABLE ZBOOK ADD COLUMN ZEXTRA INTEGER"),
    ("ZBOOK", "ALTER TABLE ZBOOK RENAME COLUMN ZYEAR TO ZOLD; ALTER TABLE ZBOOK ADD COLUMN ZYEAR VARCHAR"),
    (
      "ZTAG",
      "DROP TABLE ZTAG; CREATE TABLE ZTAG (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZWORD VARCHAR);"
        + " DELETE FROM Z_2TAGS; INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 3, 1)"
    ),
    (
      "Z_2TAGS",
      "ALTER TABLE Z_2TAGS RENAME TO Zold; CREATE TABLE Z_2TAGS (Z_2BOOKS INTEGER, Z_3TAGS INTEGER, PRIMARY KEY"
        + " (Z_2BOOKS, Z_3TAGS)); INSERT INTO Z_2TAGS SELECT * FROM Zold; DROP TABLE Zold"
    ),
  ])
  func tablesWithOtherTextsAreWritten(_ table: String, _ edit: String) throws {
    let world = try AlteredWorld(seed: 2, versions: LibraryModels.versions(LibraryModels.withRating), framework: 1044)
    try world.edit(edit)
    let program = try world.program()
    #expect(program.written.map(\.name) == [table])
    #expect(program.written.first?.reason == "its SQL differs from Core Data's")
    let (rows, copy) = try world.both()
    #expect(try copy.content() == rows.content())
  }

  /// Old frameworks made a table again to add a column; for these hopd does the same.
  @Test func oldFrameworksWriteTablesThatGrow() throws {
    for (framework, written) in [(Int64(866), ["ZBOOK"]), (977, [])] {
      let world = try AlteredWorld(
        seed: 3, versions: LibraryModels.versions(LibraryModels.withRating), framework: framework, rows: 25)
      #expect(try world.program().written.map(\.name) == written)
    }
    let world = try AlteredWorld(
      seed: 3, versions: LibraryModels.versions { $0[1].attributes[0].versionHashModifier = "again" }, framework: 641)
    #expect(try world.program().summary == "no table changes")
    let (rows, copy) = try world.both()
    #expect(try copy.content() == rows.content())
  }

  /// The store has the form that Core Data's own migration leaves: kept tables have their texts, with changed names in
  /// quotes and added columns at the end; new tables have the text of a new store.
  @Test func eachTableGoesItsOwnWay() throws {
    let world = try AlteredWorld(seed: 7, versions: LibraryModels.versions(LibraryModels.withShelves), framework: 1044)
    let changes = try world.program().changes.map { "\($0.table) \($0.action.rawValue): \($0.reason)" }
    #expect(
      changes == [
        "ZBOOK altered: adds ZRATING, ZBLURB; entity numbers change; sets ZRATING",
        "ZWORD altered: renamed from ZTAG; entity numbers change",
        "Z_3TAGS altered: renamed from Z_2TAGS; columns renamed",
        "ZAUTHOR written: column ZPHOTO is dropped", "ZBASKET written: new table", "Z_2WORDS written: new table",
      ])
    let (rows, copy) = try world.both()
    #expect(try copy.content() == rows.content())
    let texts = try copy.answers(
      "SELECT sql FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z*' AND name NOT GLOB 'Z_[MP]*' ORDER BY name"
    ).map { $0.dropFirst().dropLast().replacing("Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER", with: "…") }
    #expect(
      texts.joined(separator: "\n")
        == """
        CREATE TABLE ZAUTHOR ( …, ZNAME VARCHAR )
        CREATE TABLE ZBASKET ( …, ZLABEL VARCHAR )
        CREATE TABLE ZBOOK ( …, ZYEAR INTEGER, ZAUTHOR INTEGER, ZTITLE VARCHAR , ZRATING INTEGER, ZBLURB VARCHAR)
        CREATE TABLE "ZWORD" ( …, ZWORD VARCHAR )
        CREATE TABLE Z_2WORDS ( Z_2BASKETS INTEGER, Z_4WORDS INTEGER, PRIMARY KEY (Z_2BASKETS, Z_4WORDS) )
        CREATE TABLE "Z_3TAGS" ( Z_3BOOKS INTEGER, Z_4TAGS INTEGER, PRIMARY KEY (Z_3BOOKS, Z_4TAGS) )
        """)
    let indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name"
    #expect(try copy.answers(indexes) == rows.answers(indexes))
  }

  /// Pairs without an end are not pairs; hand-written SQL can leave them.
  @Test func pairsWithoutAnEndStayBehind() throws {
    let world = try AlteredWorld(seed: 4, versions: LibraryModels.versions(LibraryModels.withRating), framework: 1044)
    let join = try #require(
      StoreSchema(model: world.versions[0], frameworkVersion: 1044).joinTables.first)
    try world.edit(
      "INSERT INTO \(join.name) VALUES (NULL, 1); INSERT INTO \(join.name) VALUES (2, NULL);"
        + " INSERT INTO \(join.name) VALUES (NULL, NULL)")
    let (rows, copy) = try world.both()
    #expect(try copy.content() == rows.content())
  }

  /// Stopped at every step, killed after the copy, and begun by the other kind of run.
  @Test func itGoesOnWhereItWasStopped() throws {
    let world = try AlteredWorld(
      seed: 5, versions: LibraryModels.versions(LibraryModels.withShelves), framework: 1044, rows: 300)
    let (rows, _) = try world.both()
    let place = StoreLocation(database: world.folder.appending("place.sqlite"))
    try FileManager.default.copyItem(atPath: world.location.database.string, toPath: place.database.string)
    var request = world.request("unused", alters: true, chunk: 20)
    request.location = CanonicalStoreLocation(unresolved: place.database)
    request.output = nil
    var runs = 0
    var resumed = 0
    while true {
      runs += 1
      try #require(runs < 200)
      let stop = StopSignal()
      // The first run leaves a store that was partly filled by rows.
      request.engine.altering = runs > 1 ? .wherePossible : .never
      do {
        let report = try MigrationPipeline().run(request, stop: stop) { event in
          if case .progress = event { stop.stop() }
          if case .resumed = event { resumed += 1 }
        }
        #expect(report.wasResumed)
        break
      } catch {
        guard error.error.code == .interrupted else { throw error }
      }
    }
    #expect(runs > 10)
    #expect(resumed > 8)
    #expect(try place.content() == rows.content())
  }
}
