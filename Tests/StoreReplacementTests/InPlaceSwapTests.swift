import Diagnostics
import DurableFiles
import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import SystemPackage
import Testing

@Suite("The replacement in place")
struct InPlaceSwapTests {
  @Test("Every row arrives in the same file, the old store is kept as a copy", arguments: SourceKind.allCases)
  func replaces(_ kind: SourceKind) throws {
    let world = try TestWorld(kind, externalFiles: ["A0B1", "C2D3"])
    let inode = try world.plain.status(world.location.database)?.identity
    let result = try world.migrate(files: LinuxFileSystem(), mode: .inPlace)
    #expect(try world.plain.status(world.location.database)?.identity == inode)
    let header = try world.plain.read(world.location.database, limit: 1 << 24)
    #expect(header[18] == (kind.journalMode == .wal ? 2 : 1) && header[19] == header[18])
    let now = try world.content()
    #expect(now.version == "two" && now.rows == TestWorld.rows)
    #expect(result.version.name == "Two")
    #expect(result.warnings.isEmpty)
    let fingerprint = try SourceFingerprint(of: world.location, files: world.plain)
    #expect(result.fingerprint == fingerprint)
    let backup = try #require(result.backup)
    #expect(try world.plain.status(backup)?.identity != inode)
    #expect(try world.plain.status(backup)?.links == 1)
    let old = try world.content(of: backup)
    #expect(old.version == "one" && old.rows == TestWorld.rows)
    let external = backup.removingLastComponent().appending(".Library_SUPPORT/_EXTERNAL_DATA")
    #expect(try world.plain.names(in: external).map(\.string) == ["A0B1", "C2D3"])
    #expect(world.names == [".Library.sqlite.hopd-backups", ".Library_SUPPORT", "Library.sqlite"])
    #expect(try world.plain.names(in: world.state.appending("intents")).isEmpty)
  }

  @Test("The journal mode is kept or set, as asked", arguments: SourceKind.allCases, JournalModeRule.allCases)
  func journalMode(_ kind: SourceKind, _ rule: JournalModeRule) throws {
    let world = try TestWorld(kind)
    try world.migrate(files: LinuxFileSystem(), journalMode: rule, mode: .inPlace)
    let header = try world.plain.read(world.location.database, limit: 1 << 24)
    let wanted: JournalMode = rule == .keep ? kind.journalMode : rule == .wal ? .wal : .delete
    #expect(header[18] == (wanted == .wal ? 2 : 1) && header[19] == header[18])
    #expect(world.names == [".Library.sqlite.hopd-backups", "Library.sqlite"])
    #expect(try world.content().version == "two")
  }

  @Test("Links, mode, owner and attributes stay, where a rename is refused", arguments: [SourceKind.rollback, .hotLog])
  func keepsTheFile(_ kind: SourceKind) throws {
    let world = try TestWorld(kind, onDisk: true)
    let other = world.root.appending("other name")
    try world.plain.link(world.location.database, as: other)
    var wanted = try world.plain.attributes(of: world.location.database)
    wanted.mode = 0o664
    wanted.extended["user.tag"] = [1, 2, 3]
    if getuid() == 0 { (wanted.owner, wanted.group) = (4321, 4322) }
    try world.plain.setAttributes(wanted, of: world.location.database)
    let before = try world.plain.read(world.location.database, limit: 1 << 24)
    do {
      try world.migrate(files: LinuxFileSystem())
      Issue.record("a rename parted two names")
    } catch let error as HopdError {
      #expect(error.code == .cannotReplace && error.hint?.contains("--replace in-place") == true)
    }
    #expect(try world.plain.read(world.location.database, limit: 1 << 24) == before)
    try world.migrate(files: LinuxFileSystem(), job: "cd34", mode: .inPlace)
    #expect(try world.plain.attributes(of: world.location.database) == wanted)
    #expect(try world.plain.status(world.location.database)?.links == 2)
    #expect(try world.content(of: other).version == "two")
    #expect(try world.content().rows == TestWorld.rows)
  }

  @Test("What must be on disk before the next step is on disk before the next step", arguments: SourceKind.allCases)
  func order(_ kind: SourceKind) throws {
    let world = try TestWorld(kind, externalFiles: ["A0B1"])
    let files = FaultyFileSystem()
    var steps: [(InPlaceStep, Int)] = []
    try world.migrate(files: files, mode: .inPlace, inPlaceObserver: { steps.append(($0, files.calls.count)) })
    let calls = files.calls
    func place(_ words: String, after start: Int = 0) throws -> Int {
      try #require(calls[start...].firstIndex(of: words), "\(words) is missing after \(start) in \(calls)")
    }
    func count(at step: InPlaceStep) throws -> Int { try #require(steps.first { $0.0 == step }).1 }
    let (backedUp, compared) = (try count(at: .backedUp), try count(at: .compared))
    let (committed, confirmed) = (try count(at: .committed), try count(at: .confirmed))
    let intent = try place("sync-directory intents")
    let external = try place("link A0B1 A0B1", after: intent)
    let synced = try place("sync Library.sqlite", after: external)
    let part = try place("sync-directory 20300317T174640Z-ab12.part", after: synced)
    let renamed = try place("rename-new 20300317T174640Z-ab12.part 20300317T174640Z-ab12", after: part)
    let parent = try place("sync-directory .Library.sqlite.hopd-backups", after: renamed)
    let directory = try place("sync-directory stores", after: parent)
    #expect(directory < backedUp && backedUp <= compared)
    // Between the first page and the commit hopd makes no call that changes a file.
    #expect(compared == committed)
    #expect(calls[committed] == "sync-directory stores")
    let scratch = try #require(calls.firstIndex(of: "unlink .Library.sqlite.hop-ab12.tmp"))
    #expect(scratch >= confirmed)
    // Only the index goes by our hand: SQLite neither reads nor removes it where its own index is in the heap.
    #expect(
      !calls.contains { $0.contains("Library.sqlite-") && !$0.hasSuffix("Library.sqlite-shm") },
      "side files are SQLite's alone")
    #expect(calls.filter { $0 == "sync Library.sqlite" }.count == 1, "the store is never opened by other means")
  }

  @Test("Nobody else can write or read while pages are written", arguments: SourceKind.allCases)
  func locked(_ kind: SourceKind) throws {
    let world = try TestWorld(kind)
    var refused = 0
    try world.migrate(
      files: LinuxFileSystem(), mode: .inPlace,
      inPlaceObserver: { step in
        if step == .confirmed { return }  // hopd has let go of it
        do {
          let other = try Connection.ofApp(world.location.database)
          try other.execute("DELETE FROM book")
        } catch let error as SQLiteError {
          if error.isBusy { refused += 1 }
        }
      })
    #expect(refused > 5)
    #expect(try world.content().rows == TestWorld.rows)
  }

  /// A kill after the record is gone must not leave a journal that nothing removes.
  @Test("When the new content is confirmed its journal is gone, although a caller keeps the connection")
  func journalOfTheCommit() throws {
    let world = try TestWorld(.rollback)
    var kept: Connection?
    var wasThere: Bool?
    try world.migrate(
      files: LinuxFileSystem(), mode: .inPlace, meanwhile: { kept = try $0.connection },
      inPlaceObserver: { step in
        guard step == .confirmed else { return }
        wasThere = try world.plain.status(world.location.rollbackJournal) != nil
      })
    #expect(kept != nil && wasThere == false)
    kept = nil
    #expect(try world.content().version == "two")
  }

  @Test("A store that was replaced or deleted meanwhile is left alone", arguments: SourceKind.allCases)
  func replacedByOther(_ kind: SourceKind) throws {
    for (step, isDeleted) in [(nil, false), (InPlaceStep.backedUp, false), (nil, true), (.backedUp, true)] {
      let world = try TestWorld(kind)
      let stranger = world.root.appending("stranger")
      try world.plain.createFile(stranger, Array("not ours".utf8), mode: 0o600)
      func change() throws {
        if isDeleted {
          try world.plain.unlink(world.location.database)
        } else {
          try world.plain.rename(stranger, to: world.location.database)
        }
      }
      let found = code {
        try world.migrate(
          files: LinuxFileSystem(), mode: .inPlace, meanwhile: { _ in if step == nil { try change() } },
          inPlaceObserver: { if $0 == step { try change() } })
      }
      #expect(found == (isDeleted ? .notFound : .storeReplaced))
      if isDeleted {
        #expect(try world.plain.status(world.location.database) == nil)
      } else {
        #expect(try world.plain.read(world.location.database, limit: 100) == Array("not ours".utf8))
      }
      // The migrated copy may be the last one of the rows: it stays.
      #expect(world.names.contains(".Library.sqlite.hop-ab12.tmp"))
      guard case .quarantine = try world.recover().decision else {
        Issue.record("recovery touched what is in doubt")
        continue
      }
      #expect(world.names.contains(".Library.sqlite.hop-ab12.tmp"))
    }
  }

  @Test("With no backup wanted the old store is gone after the success")
  func noBackup() throws {
    let world = try TestWorld(.wal)
    let result = try world.migrate(files: LinuxFileSystem(), backup: .none, mode: .inPlace)
    #expect(result.backup == nil)
    #expect(world.names == ["Library.sqlite"])
  }

  @Test("In a configured directory the backup is made at once, and nothing beside the store")
  func elsewhere() throws {
    let world = try TestWorld(.hotLog, externalFiles: ["A0B1"])
    let place = world.root.appending("vault")
    try world.plain.makeDirectory(place, mode: 0o700)
    let rule = BackupRule(keep: 1, directory: place)
    let result = try world.migrate(files: LinuxFileSystem(), backup: rule, mode: .inPlace)
    #expect(result.warnings.isEmpty)
    #expect(world.names == [".Library_SUPPORT", "Library.sqlite"])
    let backup = try #require(result.backup)
    #expect(backup.starts(with: place))
    #expect(try world.content(of: backup).version == "one")
    #expect(
      try BackupSet(location: world.location, rule: rule, files: world.plain).generations().map(\.database) == [backup])
  }

  @Test("A store with pages of another size is refused, and is as it was", arguments: [SourceKind.rollback, .hotLog])
  func pageSize(_ kind: SourceKind) throws {
    let world = try TestWorld(kind)
    let before = try world.everything()
    let area = StagingArea(location: world.location, job: "ab12", files: world.plain)
    let found = code {
      try world.migrate(
        files: LinuxFileSystem(), mode: .inPlace,
        meanwhile: { _ in
          try world.plain.unlink(area.path(hop: nil))
          let staged = try Connection(path: area.path(hop: nil), access: .create)
          try staged.execute("PRAGMA page_size = 8192; CREATE TABLE version(digest TEXT)")
        })
    }
    #expect(found == .cannotReplace)
    #expect(try world.everything() == before)
  }

  @Test("The same file under its other name waits while a replacement in place is cut off")
  func namesake() throws {
    let world = try TestWorld(.rollback)
    let other = world.stores.appending("other.sqlite")
    try world.plain.link(world.location.database, as: other)
    try world.migrate(
      files: LinuxFileSystem(), mode: .inPlace, meanwhile: { try $0.connection.execute("PRAGMA cache_size = 1") },
      inPlaceObserver: { if $0 == .compared { try world.snapshot("kill") } })
    // The inode of the record is that of the first life; put it back under both names.
    let survivor = world.location.database
    try world.plain.rename(survivor, to: world.root.appending("file"))
    try world.plain.unlink(other)
    try world.reboot(into: "kill")
    try world.plain.unlink(survivor)
    try world.plain.unlink(other)
    try world.plain.rename(world.root.appending("file"), to: survivor)
    try world.plain.link(survivor, as: other)
    let runner = RecoveryRunner(
      files: world.plain, intents: try world.intents(world.plain), lockDirectory: world.locks,
      identify: TestWorld.identify)
    #expect(code { _ = try runner.recover(CanonicalStoreLocation(resolving: other)) } == .storeBusy)
    _ = try world.recover()
    #expect(try runner.recover(CanonicalStoreLocation(resolving: other)).decision == .nothingToDo)
  }

  // MARK: Restoring

  private func restore(
    _ world: TestWorld, _ database: FilePath, job: String, observer: @escaping InPlaceObserver = { _ in }
  ) throws -> ReplacedStore {
    let swap = StoreSwap(
      files: world.plain, intents: try world.intents(world.plain), identify: TestWorld.identify, mode: .inPlace,
      inPlaceObserver: observer, pagesPerStep: 1)
    return try Restore(swap: swap, lockDirectory: world.locks).restore(
      database, to: world.location, job: job, backup: BackupRule(keep: 9), now: 1_900_000_100
    ).replaced
  }

  @Test("There and back in the same file", arguments: SourceKind.allCases)
  func roundTrip(_ kind: SourceKind) throws {
    let world = try TestWorld(kind, externalFiles: ["A0B1"])
    let inode = try world.plain.status(world.location.database)?.identity
    let replaced = try world.migrate(files: LinuxFileSystem(), mode: .inPlace)
    let result = try restore(world, try #require(replaced.backup), job: "ee55")
    #expect(try world.content().version == "one")
    _ = try restore(world, try #require(result.backup), job: "ff66")
    #expect(try world.content().version == "two")
    #expect(try world.plain.status(world.location.database)?.identity == inode)
    let header = try world.plain.read(world.location.database, limit: 1 << 24)
    #expect(header[18] == (kind.journalMode == .wal ? 2 : 1))
  }

  @Test("A restore between two stores of one version that is killed: recovery tells them apart")
  func restoreOfTheSameVersion() throws {
    for step in InPlaceStep.allCases {
      let world = try TestWorld(.rollback)
      let backup = world.root.appending("copy.sqlite")
      try world.plain.copyFile(from: world.location.database, to: backup)
      try Connection.ofApp(world.location.database).execute("DELETE FROM book WHERE id > 10")
      var isDone = false
      _ = try restore(world, backup, job: "ee55") {
        if $0 == step, !isDone {
          isDone = true
          try world.snapshot("kill")
        }
      }
      try world.reboot(into: "kill")
      let outcome = try world.recover()
      let isNew = [.committed, .durable, .confirmed].contains(step)
      if case .completed = outcome.decision { #expect(isNew, "\(step)") } else { #expect(!isNew, "\(step)") }
      #expect(try world.content().rows == (isNew ? TestWorld.rows : 10), "\(step)")
      let kept = try BackupSet(location: world.location, rule: BackupRule(), files: world.plain).generations()
      #expect(kept.count == (isNew ? 1 : 0), "\(step)")
      if let old = kept.first { #expect(try world.content(of: old.database).rows == 10, "\(step)") }
    }
  }
}
