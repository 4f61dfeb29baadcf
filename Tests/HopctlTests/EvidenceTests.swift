// A store as evidence: whose it is, the proof that it did not change, and what is told of values that do not fit.

import BlockingTests
import FoundationEssentials
import SystemPackage
import Testing

@Suite(.blocking, .enabled(if: Program.isBuilt, Program.absence))
struct EvidenceTests {
  private func digest(_ path: String, in room: Room) throws -> String {
    let outcome = try room.wait(room.start(program: "/usr/bin/sha256sum", [path]))
    return String(outcome.output.prefix(64))
  }

  @Test func theDigestsAreThoseOfTheFiles() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let right = try digest(store, in: room)
    for command in ["identify", "verify", "dump"] {
      let outcome = try room.run(command, store, "--read-only")
      #expect(outcome.status == 0, "\(command): \(outcome.errors)")
      #expect(outcome.errors.contains("sha256 before: \(right)  \(store)"), "\(command): \(outcome.errors)")
      #expect(outcome.errors.contains("sha256 after: \(right)  \(store)"), "\(command): \(outcome.errors)")
      #expect(outcome.errors.contains("read-only: the store is unchanged"), "\(command): \(outcome.errors)")
      #expect(!(try room.run(command, store)).errors.contains("sha256"), "\(command)")
    }
    for command in ["identify", "verify"] {
      let outcome = try room.run(command, store, "--read-only", "--json")
      #expect(!outcome.errors.contains("sha256"), "\(command)")
      let statement = try outcome.json().readOnly
      #expect(statement?.unchanged == .boolean(true), "\(command)")
      #expect(statement?.files?.list.map { $0.sha256Before?.text } == [right], "\(command)")
      #expect(statement?.files?.list.map { $0.sha256After?.text } == [right], "\(command)")
    }
  }

  @Test func theLogBelongsToTheEvidence() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.file(
      "log.py",
      """
      import os, shutil, sqlite3, sys
      store = sqlite3.connect(sys.argv[1])
      store.execute("PRAGMA journal_mode = WAL")
      store.execute("PRAGMA wal_autocheckpoint = 0")
      store.execute("UPDATE ZANIMAL SET ZNAME = 'in the log' WHERE Z_PK = (SELECT min(Z_PK) FROM ZANIMAL)")
      store.commit()
      for end in ["", "-wal"]: shutil.copy(sys.argv[1] + end, sys.argv[2] + end)
      """)
    let copy = room.path("copy.sqlite")
    let made = try room.wait(room.start(program: "/usr/bin/python3", [room.path("log.py"), store, copy]))
    try #require(made.status == 0, "\(made.errors)")
    let (database, log) = (try digest(copy, in: room), try digest(copy + "-wal", in: room))
    let dumped = try room.run("dump", copy, "--read-only")
    #expect(dumped.status == 0 && dumped.output.contains("in the log"), "\(dumped.errors)")
    for when in ["before", "after"] {
      #expect(dumped.errors.contains("sha256 \(when): \(database)  \(copy)\n"))
      #expect(dumped.errors.contains("sha256 \(when): \(log)  \(copy)-wal\n"))
    }
    let files = try room.run("identify", copy, "--read-only", "--json").json().readOnly?.files?.list
    #expect(files?.map { $0.sha256After?.text } == [database, log])
  }

  @Test func anAppIsNamedByItsEntities() throws {
    let room = try Room()
    let names = ["ICAccount", "ICAttachment", "ICCloudSyncingObject", "ICFolder", "ICNote", "ICNoteData", "ICOther"]
    for (model, entities) in [("Notes", names), ("Mine", names.filter { $0 != "ICNoteData" })] {
      let text = entities.map {
        "<entity name='\($0)'><attribute name='a' optional='YES' attributeType='String'/></entity>"
      }
      try room.file("\(model).xcdatamodeld/\(model).xcdatamodel/contents", "<model>\(text.joined())</model>")
      let store = room.path("\(model).sqlite")
      let made = try room.run(
        "create", store, "--models", room.path("\(model).xcdatamodeld"), "--model-version", model)
      try #require(made.status == 0, "\(made.errors)")
    }
    let notes = try room.run("identify", room.path("Notes.sqlite"))
    #expect(notes.output.contains("entities of Notes, usually NoteStore.sqlite"), "\(notes)")
    let app = try room.run("identify", room.path("Notes.sqlite"), "--json").json().app
    #expect(app?.name?.text == "Notes" && app?.store?.text == "NoteStore.sqlite")
    #expect(try room.run("identify", room.path("Mine.sqlite"), "--json").json().app == nil)
  }

  /// A store whose table is gone is dumped as far as it goes, and the exit status says that it is not whole.
  @Test func aMissingTableTakesNoOtherWithIt() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    _ = try room.sql(store, "DROP TABLE ZKEEPER")
    let dumped = try room.run("dump", store, "--read-only")
    #expect(dumped.status == 65 && dumped.errors.contains("the table ZKEEPER is missing"), "\(dumped.errors)")
    #expect(try dumped.lines().contains { $0.entity?.text == "Animal" })
    #expect(dumped.errors.contains("read-only: the store is unchanged"), "\(dumped.errors)")
  }

  @Test func aValueOfAnotherKindIsNoText() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let key = try room.sql(store, "SELECT min(Z_PK) FROM ZANIMAL WHERE Z_ENT = 1")
    _ = try room.sql(store, "UPDATE ZANIMAL SET ZNAME = X'616263' WHERE Z_PK = \(key)")
    let object = try room.run("dump", store).lines().first { $0.id?.text == "Animal/p\(key)" }
    #expect(object?.attributes?.name?.blob?.text == "YWJj", "\(String(describing: object))")
  }
}
