import Diagnostics
import DurableFiles
import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import SystemPackage
import Testing

@Suite("The guarded swap")
struct StoreSwapTests {
  @Test("Every row arrives, the old store is kept, nothing else is left", arguments: SourceKind.allCases)
  func replaces(_ kind: SourceKind) throws {
    let world = try TestWorld(kind, externalFiles: ["A0B1", "C2D3"])
    let result = try world.migrate(files: LinuxFileSystem())
    let now = try world.content()
    #expect(now.version == "two" && now.rows == TestWorld.rows)
    #expect(result.version.name == "Two")
    #expect(result.warnings.isEmpty)
    let backup = try #require(result.backup)
    let old = try world.content(of: backup)
    #expect(old.version == "one" && old.rows == TestWorld.rows)
    #expect(backup.lastComponent?.string == "Library.sqlite")
    let external = backup.removingLastComponent().appending(".Library_SUPPORT/_EXTERNAL_DATA")
    #expect(try world.plain.names(in: external).map(\.string) == ["A0B1", "C2D3"])
    #expect(world.names == [".Library.sqlite.hopd-backups", ".Library_SUPPORT", "Library.sqlite"])
    #expect(try world.plain.names(in: world.state.appending("intents")).isEmpty)
  }

  @Test("The journal mode is kept or set, as asked", arguments: SourceKind.allCases, JournalModeRule.allCases)
  func journalMode(_ kind: SourceKind, _ rule: JournalModeRule) throws {
    let world = try TestWorld(kind)
    try world.migrate(files: LinuxFileSystem(), journalMode: rule)
    let header = try world.plain.read(world.location.database, limit: 1 << 24)
    let wanted: JournalMode = rule == .keep ? kind.journalMode : rule == .wal ? .wal : .delete
    #expect(header[18] == (wanted == .wal ? 2 : 1) && header[19] == header[18])
  }

  @Test("Mode, owner and attributes of the store stay")
  func attributes() throws {
    let world = try TestWorld(.wal, onDisk: true)
    var wanted = try world.plain.attributes(of: world.location.database)
    wanted.mode = 0o664
    wanted.extended["user.tag"] = [1, 2, 3]
    if getuid() == 0 { (wanted.owner, wanted.group) = (4321, 4322) }
    try world.plain.setAttributes(wanted, of: world.location.database)
    try world.migrate(files: LinuxFileSystem())
    #expect(try world.plain.attributes(of: world.location.database) == wanted)
  }

  @Test("What must be on disk before the next step is on disk before the next step", arguments: SourceKind.allCases)
  func order(_ kind: SourceKind) throws {
    let world = try TestWorld(kind, externalFiles: ["A0B1"])
    let files = FaultyFileSystem()
    try world.migrate(files: files)
    let calls = files.calls
    func place(_ words: String, after start: Int = 0) throws -> Int {
      try #require(calls[start...].firstIndex(of: words), "\(words) is missing after \(start) in \(calls)")
    }
    let intent = try place("sync-directory intents")
    let sealed = try place("sync .Library.sqlite.hop-ab12.tmp", after: intent)
    let external = try place("link A0B1 A0B1", after: sealed)
    let linked = try place("link Library.sqlite Library.sqlite", after: external)
    let folder = try place("sync-directory 20300317T174640Z-ab12", after: linked)
    let parent = try place("sync-directory .Library.sqlite.hopd-backups", after: folder)
    let synced = try place("sync-directory stores", after: parent)
    let renamed = try place("rename .Library.sqlite.hop-ab12.tmp Library.sqlite", after: synced)
    #expect(renamed == synced + 1)
    #expect(calls[renamed + 1] == "sync-directory stores")
    // Only the index goes by our hand: SQLite neither reads nor removes it where its own index is in the heap.
    #expect(
      !calls.contains { $0.contains("Library.sqlite-") && !$0.hasSuffix("Library.sqlite-shm") },
      "side files are SQLite's alone")
    #expect(!calls.contains { $0 == "sync Library.sqlite" || $0.hasPrefix("copy Library.sqlite") })
  }

  @Test("A commit in the instant without a lock is noticed: fresh start, nothing lost", arguments: SourceKind.allCases)
  func commitInTheGap(_ kind: SourceKind) throws {
    let world = try TestWorld(kind)
    let found = code {
      try world.migrate(
        files: LinuxFileSystem(),
        observer: { step in
          guard step == .unlocked else { return }
          let other = try Connection.ofApp(world.location.database)
          try other.execute("INSERT INTO book VALUES(1000, 'in the gap')")
        })
    }
    #expect(found == .storeChanged)
    let now = try world.content()
    #expect(now.version == "one" && now.rows == TestWorld.rows + 1)
    #expect(world.names == ["Library.sqlite"])
    #expect(try world.recover().decision == .nothingToDo)
    try world.migrate(files: LinuxFileSystem(), job: "cd34")
    #expect(try world.content().rows == TestWorld.rows + 1)
  }

  @Test("A lock taken in that instant defers the swap", arguments: SourceKind.allCases)
  func lockInTheGap(_ kind: SourceKind) throws {
    let world = try TestWorld(kind)
    var other: Connection?
    let found = code {
      try world.migrate(
        files: LinuxFileSystem(),
        observer: { step in
          guard step == .unlocked else { return }
          other = try Connection.ofApp(world.location.database)
          try other?.execute("BEGIN IMMEDIATE")
        })
    }
    #expect(found == .storeBusy)
    try other?.execute("COMMIT")
    other = nil
    #expect(try world.content().version == "one")
    #expect(world.names == ["Library.sqlite"])
  }

  @Test(
    "A store that was replaced by another file is left alone, before and in the swap", arguments: SourceKind.allCases)
  func replacedByOther(_ kind: SourceKind) throws {
    for step in [nil, SwapStep.folded, .relocked] {
      let world = try TestWorld(kind)
      let stranger = world.root.appending("stranger")
      try world.plain.createFile(stranger, Array("not ours".utf8), mode: 0o600)
      func swapFiles() throws { try world.plain.rename(stranger, to: world.location.database) }
      let found = code {
        try world.migrate(
          files: LinuxFileSystem(), meanwhile: { _ in if step == nil { try swapFiles() } },
          observer: { if $0 == step { try swapFiles() } })
      }
      #expect(found == .storeReplaced)
      #expect(try world.plain.read(world.location.database, limit: 100) == Array("not ours".utf8))
      // The migrated copy may be the last one of the rows: it stays.
      #expect(world.names.contains(".Library.sqlite.hop-ab12.tmp"))
    }
  }

  @Test("A store that was deleted is not made again", arguments: SourceKind.allCases)
  func deleted(_ kind: SourceKind) throws {
    let world = try TestWorld(kind)
    let found = code {
      try world.migrate(
        files: LinuxFileSystem(), meanwhile: { _ in try world.plain.unlink(world.location.database) })
    }
    #expect(found == .notFound)
    #expect(try world.plain.status(world.location.database) == nil)
    let outcome = try world.recover()
    #expect(outcome.decision == .quarantine(.storeMissing))
    #expect(outcome.error?.code == .storeQuarantined)
    #expect(try world.plain.status(world.location.database) == nil)
  }

  @Test("An idle connection of another program is refused its next write, and loses nothing")
  func idleConnection() throws {
    let world = try TestWorld(.rollback)
    var idle: Connection?
    try world.migrate(
      files: LinuxFileSystem(),
      meanwhile: { _ in idle = try? Connection.ofApp(world.location.database) },
      observer: { if $0 == .unlocked { idle = try Connection.ofApp(world.location.database) } })
    let other = try #require(idle)
    #expect(try TestWorld.identify(other) == "one")
    #expect(throws: SQLiteError.self) { try other.execute("INSERT INTO book VALUES(1000, 'late')") }
    #expect(try world.content().version == "two")
  }

  @Test("With no backup wanted the old store is gone after the success")
  func noBackup() throws {
    let world = try TestWorld(.wal)
    let result = try world.migrate(files: LinuxFileSystem(), backup: .none)
    #expect(result.backup == nil)
    #expect(world.names == ["Library.sqlite"])
  }

  @Test("A journal left by journal_mode=PERSIST does not stop the swap")
  func persistentJournal() throws {
    let world = try TestWorld(.rollback)
    do {
      let app = try Connection.ofApp(world.location.database)
      _ = try app.text("PRAGMA journal_mode = PERSIST")
      try app.execute("INSERT INTO book VALUES(1000, 'one more')")
    }
    #expect(world.names.contains("Library.sqlite-journal"))
    try world.migrate(files: LinuxFileSystem())
    #expect(try world.content().rows == TestWorld.rows + 1)
    #expect(!world.names.contains("Library.sqlite-journal"))
  }
}
