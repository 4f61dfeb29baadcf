// A log that arrives when its database was migrated already is set aside, and neither played nor lost.

import Diagnostics
import DurableFiles
import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import Synchronization
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("Files that come late")
struct LateFilesTests {
  /// The database and the log of a store that was copied in two steps.
  private func world() throws -> (world: TestWorld, log: [UInt8]) {
    let world = try TestWorld(.hotLogWithoutIndex)
    let log = try world.plain.read(world.location.writeAheadLog, limit: 1 << 20)
    try world.plain.unlink(world.location.writeAheadLog)
    return (world, log)
  }

  private func late(_ world: TestWorld) -> LateFiles {
    LateFiles(location: world.location, files: world.plain, identify: TestWorld.identify)
  }

  private func backups(_ world: TestWorld) throws -> BackupSet {
    try BackupSet(location: world.location, rule: BackupRule(), files: world.plain)
  }

  @Test("A log that arrives after the migration is set aside; the new store stays whole, and the rows can be joined")
  func afterwards() throws {
    let (world, log) = try world()
    try world.migrate(files: world.plain)
    let rows = try world.content().rows
    try world.plain.createFile(world.location.writeAheadLog, log, mode: 0o644)
    let reported = try late(world).setAsideIfProven(backups: backups(world), job: "cd34")
    #expect(reported?.code == .lateLog)
    #expect(world.names.contains("Library.sqlite.late-cd34-wal") && !world.names.contains("Library.sqlite-wal"))
    let now = try world.content()
    #expect(now.version == "two" && now.rows == rows)
    // As the hint says: the old store and the log under one name are the store that was sent.
    let old = try #require(try backups(world).generations().first?.database)
    let joined = world.root.appending("a.sqlite")
    try world.plain.copyFile(from: old, to: joined)
    try world.plain.createFile(world.root.appending("a.sqlite-wal"), log, mode: 0o644)
    #expect(try world.content(of: joined).rows == TestWorld.rows)
  }

  @Test("A log that takes the store back to the version before is set aside, whoever wrote the database since")
  func doesNotFit() throws {
    let (world, _) = try world()
    // Half of the log's pages are those of the version table.
    let old = world.root.appending("old.sqlite")
    try world.plain.copyFile(from: world.location.database, to: old)
    let log: [UInt8]
    do {
      let app = try Connection.ofApp(old)
      _ = try app.text("PRAGMA journal_mode = WAL")
      try app.execute(
        "PRAGMA wal_autocheckpoint = 0; UPDATE version SET digest = 'no'; UPDATE version SET digest = 'one'")
      log = try world.plain.read(FilePath(old.string + "-wal"), limit: 1 << 20)
    }
    try world.migrate(files: world.plain)
    try Connection.ofApp(world.location.database).execute("INSERT INTO book(title) VALUES('new')")
    let rows = try world.content().rows
    try world.plain.createFile(world.location.writeAheadLog, log, mode: 0o644)
    let reported = try late(world).setAsideIfProven(backups: backups(world), job: "cd34")
    #expect(reported?.code == .lateLog)
    let now = try world.content()
    #expect(now.version == "two" && now.rows == rows)
  }

  @Test("A log of the new store's own app stays where it is")
  func ownLog() throws {
    let (world, _) = try world()
    try world.migrate(files: world.plain)
    let draft = world.root.appending("draft.sqlite")
    try world.plain.copyFile(from: world.location.database, to: draft)
    // An app that died: its log is there, with rows of the new version, and no index.
    do {
      let app = try Connection.ofApp(draft)
      _ = try app.text("PRAGMA journal_mode = WAL")
      try app.execute("PRAGMA wal_autocheckpoint = 0; INSERT INTO book(title) VALUES('new')")
      for suffix in ["", "-wal"] {
        let target = FilePath(world.location.database.string + suffix)
        try world.plain.unlinkIfPresent(target)
        try world.plain.copyFile(from: FilePath(draft.string + suffix), to: target)
      }
    }
    let rows = try world.content(of: draft).rows
    #expect(try late(world).setAsideIfProven(backups: backups(world), job: "cd34") == nil)
    #expect(world.names.contains("Library.sqlite-wal"))
    #expect(try world.content().rows == rows)
  }

  @Test("A log without an index that was written after the migration, by a program with exclusive locking, stays")
  func ownLogWithoutIndex() throws {
    let (world, _) = try world()
    try world.migrate(files: world.plain, now: 1_500_000_000)
    let app = try Connection.ofApp(world.location.database)
    try app.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA wal_autocheckpoint = 0")
    #expect(try app.text("PRAGMA journal_mode") == "wal")
    app.keepWriteAheadLogOnClose()
    try app.execute("INSERT INTO book(title) VALUES('committed')")
    let rows = try app.integer("SELECT count(*) FROM book")
    // As a kill would leave it: beside the very file that hopd put in place.
    let log = try world.plain.read(world.location.writeAheadLog, limit: 1 << 20)
    try world.plain.unlinkIfPresent(world.location.sharedMemory)
    #expect(!log.isEmpty)
    #expect(try late(world).setAsideIfProven(backups: backups(world), job: "cd34") == nil)
    #expect(world.names.contains("Library.sqlite-wal"))
    #expect(rows == TestWorld.rows - 9)
  }

  @Test("A program that opens the store while its late log gets another name has to wait")
  func openedMeanwhile() throws {
    let (world, log) = try world()
    try world.migrate(files: world.plain)
    try world.plain.createFile(world.location.writeAheadLog, log, mode: 0o644)
    let database = world.location.database
    let codes = Mutex<[Int32]>([])
    let files = HookedFileSystem(before: { call, path in
      guard call == "rename-new", path.string.contains(".late-") else {
        return
      }
      let descriptor = open(database.string, O_RDWR | O_NONBLOCK)
      codes.withLock { $0.append(descriptor < 0 ? errno : 0) }
      if descriptor >= 0 { close(descriptor) }
    })
    let late = LateFiles(location: world.location, files: files, identify: TestWorld.identify)
    #expect(try late.setAsideIfProven(backups: backups(world), job: "cd34")?.code == .lateLog)
    #expect(codes.withLock { $0 } == [EWOULDBLOCK])
    #expect(world.names.contains("Library.sqlite.late-cd34-wal"))
  }

  @Test("A log that comes twice is set aside twice")
  func twice() throws {
    let (world, log) = try world()
    try world.migrate(files: world.plain)
    for name in ["Library.sqlite.late-cd34-wal", "Library.sqlite.late-cd34-2-wal"] {
      try world.plain.createFile(world.location.writeAheadLog, log, mode: 0o644)
      #expect(try late(world).setAsideIfProven(backups: backups(world), job: "cd34")?.code == .lateLog)
      #expect(world.names.contains(name))
    }
  }

  @Test("Where no backup tells of a migration, a log is nobody's business")
  func noBackup() throws {
    let (world, log) = try world()
    try world.plain.createFile(world.location.writeAheadLog, log, mode: 0o644)
    #expect(try late(world).setAsideIfProven(backups: backups(world), job: "cd34") == nil)
    #expect(try world.content().rows == TestWorld.rows)
  }

  @Test("A log or journal that arrives within the swap is set aside before anybody opens the new store")
  func withinTheSwap() throws {
    for name in ["-wal", "-journal"] {
      let (world, log) = try world()
      let result = try world.migrate(
        files: world.plain,
        observer: { step in
          guard step == .renamed else { return }
          try world.plain.createFile(FilePath(world.location.database.string + name), log, mode: 0o644)
        })
      #expect(result.warnings.map(\.code) == [.lateLog])
      #expect(world.names.contains("Library.sqlite.late-ab12\(name)"))
      #expect(try world.content().version == "two")
    }
  }
}
