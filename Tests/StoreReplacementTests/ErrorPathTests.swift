// The reactions to other programs, other machines and damaged disks in the middle of it: paths that no single failing
// call leads to.

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
@testable import StoreVerification

@Suite("What others do meanwhile")
struct ErrorPathTests {
  private func hold(_ world: TestWorld, _ files: any DurableFileSystem = LinuxFileSystem()) throws -> LockedStore {
    try LockedStore(location: world.location, lockDirectory: world.locks, files: files)
  }

  /// Puts another file under a name, as a program does that saves by renaming.
  private func replace(_ path: FilePath, _ bytes: [UInt8] = Array("not ours".utf8)) throws {
    let plain = LinuxFileSystem()
    let stranger = path.removingLastComponent().appending("stranger")
    try plain.createFile(stranger, bytes, mode: 0o600)
    try plain.rename(stranger, to: path)
  }

  // MARK: Holding

  @Test("A name that is not UTF-8 is refused, because its side files cannot be named")
  func nameOfBytes() throws {
    let world = try TestWorld(.rollback)
    let name = try #require(FilePath.Component(platformString: [0x61, -1, 0]))
    let error = #expect(throws: HopdError.self) {
      try LockedStore(
        location: CanonicalStoreLocation(resolving: world.stores.appending(name)), lockDirectory: world.locks)
    }
    #expect(error?.code == .notAStore && error?.hint?.contains("rename the store") == true)
  }

  @Test("A store that is replaced or deleted while it is being opened is not held", arguments: [true, false])
  func replacedWhileOpening(_ isReplaced: Bool) throws {
    let world = try TestWorld(.wal)
    let database = world.location.database
    // The last thing that is looked at before SQLite opens it.
    let log = world.location.writeAheadLog
    let inspections = Mutex(0)
    let files = HookedFileSystem(after: { call, path in
      guard call == "status", path == log,
        inspections.withLock({
          $0 += 1
          return $0 == 2
        })
      else { return }
      if !isReplaced { return try LinuxFileSystem().unlink(database) }
      let other = StoreLocation(database: database.removingLastComponent().appending("other"))
      try Connection(path: other.database, access: .create).execute("CREATE TABLE t(x)")
      try LinuxFileSystem().rename(other.database, to: database)
    })
    let found = code { _ = try self.hold(world, files) }
    #expect(found == (isReplaced ? .storeReplaced : .noPermission), "\(found.map { "\($0)" } ?? "held")")
  }

  @Test("What changes under a lock, or goes, is noticed")
  func changed() throws {
    let world = try TestWorld(.rollback)
    let store = try hold(world)
    try store.requireUnchanged()
    var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
    #expect(utimensat(AT_FDCWD, world.location.database.string, &times, 0) == 0)
    #expect(code { try store.requireUnchanged() } == .storeChanged)
    try store.requireSameFile()
    try replace(world.location.database)
    #expect(code { try store.requireSameFile() } == .storeReplaced)
    try world.plain.unlink(world.location.database)
    #expect(code { try store.requireSameFile() } == .notFound)
    store.release()
    #expect(world.names.isEmpty)
  }

  @Test("One file under two names is one store to this process")
  func secondName() throws {
    let world = try TestWorld(.rollback)
    let second = try CanonicalStoreLocation(resolving: world.stores.appending("Second.sqlite"))
    try world.plain.link(world.location.database, as: second.database)
    let store = try hold(world)
    #expect(code { _ = try LockedStore(location: second, lockDirectory: world.locks) } == .storeBusy)
    store.release()
    try LockedStore(location: second, lockDirectory: world.locks).release()
  }

  @Test("An index file beside a store that has no log is for the administrator")
  func strayIndex() throws {
    let world = try TestWorld(.rollback)
    try world.plain.createFile(world.location.sharedMemory, [1], mode: 0o600)
    do {
      try world.migrate(files: LinuxFileSystem())
      Issue.record("replaced beside a -shm")
    } catch let error as HopdError {
      #expect(error.code == .cannotReplace && "\(error)".contains("-shm"))
    }
    #expect(try world.content().version == "one")
  }

  @Test("Every answer of SQLite has a code and, where somebody can do something, a hint")
  func answers() {
    let expected: [Int32: HopdError.Code] = [
      5: .storeBusy, 6: .storeBusy, 11: .storeDamaged, 26: .storeDamaged, 3: .noPermission, 8: .noPermission,
      14: .noPermission, 23: .noPermission, 13: .noSpace, 10: .inputOutput, 1: .inputOutput,
    ]
    for (number, code) in expected {
      // The extended code has more in its upper bits.
      let error = HopdError.storeError(
        SQLiteError(extendedCode: number | 3 << 8, message: "said so"), "read the store", "/srv/a.sqlite")
      #expect(error.code == code, "\(number)")
      #expect(error.place.store == "/srv/a.sqlite")
      let isHinted = [.storeBusy, .storeDamaged, .noPermission].contains(code) || number == 10
      #expect((error.hint != nil) == isHinted, "\(number)")
    }
  }

  // MARK: The swap

  @Test("A staged store that lies elsewhere, or is replaced or taken away, is not put in place")
  func stagedElsewhere() throws {
    let world = try TestWorld(.wal)
    let store = try hold(world)
    defer { store.release() }
    let area = StagingArea(location: store.location, job: "ab12", files: world.plain)
    let source = try #require(try SourceFingerprint(of: world.location, files: world.plain))
    let intent = try world.intent(store, area, source: source)
    let swap = StoreSwap(
      files: world.plain, intents: try world.intents(world.plain), identify: TestWorld.identify)
    let elsewhere = VerifiedStore(staged: world.home.appending("elsewhere"), checks: [])
    #expect(
      code { _ = try swap.replace(store, with: elsewhere, intent: intent, backup: .none, now: 0) } == .internalError)
  }

  @Test("A staged store that is replaced after it was sealed is not put in place")
  func stagedReplaced() throws {
    let world = try TestWorld(.wal)
    let staged = world.stores.appending(".Library.sqlite.hop-ab12.tmp")
    let found = code {
      try world.migrate(files: LinuxFileSystem(), observer: { if $0 == .relocked { try self.replace(staged) } })
    }
    #expect(found == .storeChanged)
    #expect(try world.content().version == "one")
  }

  @Test("A rename that says it failed and was made is recovered from")
  func lyingRename() throws {
    let world = try TestWorld(.hotLog, externalFiles: ["A0B1"])
    let database = world.location.database
    let files = HookedFileSystem(after: { call, path in
      if call == "rename", path == database { throw HopdError(errno: EIO, "rename", at: path) }
    })
    #expect(code { try world.migrate(files: files) } == .replacementUnconfirmed)
    #expect(try world.content().version == "two")
    #expect(try world.recover().decision == .completed([.syncDirectory]))
    #expect(try world.recover().decision == .nothingToDo)
  }

  @Test("A rename whose outcome cannot be read takes nothing back: the backup may be the only old store")
  func unknownRename() throws {
    let world = try TestWorld(.hotLog, externalFiles: ["A0B1"])
    let database = world.location.database
    let isLost = Mutex(false)
    let files = HookedFileSystem(
      before: { call, path in
        guard call == "status", path == database, isLost.withLock({ $0 }) else { return }
        throw HopdError(errno: EIO, "status", at: path)
      },
      after: { call, path in
        guard call == "rename", path == database else { return }
        isLost.withLock { $0 = true }
        throw HopdError(errno: EIO, "rename", at: path)
      })
    #expect(code { try world.migrate(files: files) } == .replacementUnconfirmed)
    let backups = try BackupSet(location: world.location, rule: BackupRule(), files: world.plain)
    #expect(try backups.generations().count == 1)
    #expect(try world.recover().decision == .completed([.syncDirectory]))
    #expect(try world.content().version == "two" && backups.generations().count == 1)
  }

  @Test("A new store that does not read back is not confirmed", arguments: [true, false])
  func unreadable(_ isDamaged: Bool) throws {
    let world = try TestWorld(.rollback)
    let database = world.location.database
    let found = code {
      try world.migrate(
        files: LinuxFileSystem(),
        observer: { step in
          guard step == .durable else { return }
          if isDamaged { return try self.replace(database, Array(repeating: 7, count: 8192)) }
          try Connection.ofApp(database).execute("UPDATE version SET digest = 'three'")
        })
    }
    #expect(found == .replacementUnconfirmed)
    let outcome = try world.recover()
    #expect(outcome.decision == .quarantine(isDamaged ? .storeDamaged : .unknownVersion))
    #expect(outcome.error?.hint?.contains("restore the newest backup") == true)
  }

  @Test("An error that is none of ours is told as one, with what could not be taken back")
  func foreignError() throws {
    struct Foreign: Error {}
    let world = try TestWorld(.rollback)
    let staged = world.stores.appending(".Library.sqlite.hop-ab12.tmp")
    let files = HookedFileSystem(before: { call, path in
      if call == "unlink", path == staged { throw HopdError(errno: EIO, "remove", at: path) }
    })
    do {
      try world.migrate(files: files, observer: { if $0 == .compared { throw Foreign() } })
      Issue.record("replaced")
    } catch let error as HopdError {
      #expect(error.code == .inputOutput && error.cause is Foreign)
      #expect(error.reasons.contains { $0.message.contains("staged store") })
    }
    #expect(try world.recover().decision == .startAgain([.dropStaged, .removeIntent]))
    #expect(code { try world.migrate(files: LinuxFileSystem(), observer: { _ in throw Foreign() }) }?.exit == .software)
  }

  // MARK: Backups and records

  @Test(
    "Where a link cannot be made the external file is copied", arguments: [EPERM, EXDEV, EMLINK])
  func linksThatCannotBe(_ errno: Int32) throws {
    let world = try TestWorld(.rollback, externalFiles: ["A0B1"])
    let files = HookedFileSystem(before: { call, path in
      if call == "link", path.lastComponent?.string == "A0B1" { throw HopdError(errno: errno, "link", at: path) }
    })
    let backup = try #require(try world.migrate(files: files).backup)
    let copy = StoreLocation(database: backup).externalDataDirectory.appending("A0B1")
    #expect(try world.plain.read(copy, limit: 99) == Array("content of A0B1".utf8))
    #expect(try world.plain.status(copy)?.links == 1)
  }

  @Test("A backup that cannot be copied away, and old ones that cannot be removed, are warnings after the success")
  func warnings() throws {
    let world = try TestWorld(.rollback)
    let place = world.root.appending("backups")
    try world.plain.makeDirectory(place, mode: 0o700)
    let files = HookedFileSystem(before: { call, path in
      if call == "copy" { throw HopdError(errno: ENOSPC, "copy", at: path) }
    })
    let result = try world.migrate(files: files, backup: BackupRule(keep: 1, directory: place))
    #expect(result.warnings.count == 1 && result.backup?.starts(with: world.stores) == true)
    #expect(try world.content().version == "two")

    let other = try TestWorld(.rollback)
    let stubborn = HookedFileSystem(before: { call, path in
      if call == "unlink", path.lastComponent?.string == "Library.sqlite" {
        throw HopdError(errno: EIO, "remove", at: path)
      }
    })
    let kept = try other.migrate(files: stubborn, backup: .none)
    #expect(kept.warnings.count == 2)
    #expect(try other.content().version == "two")
  }

  @Test("A record under the name of another store's is not believed")
  func foreignRecord() throws {
    let world = try TestWorld(.rollback)
    let intents = try world.intents(world.plain)
    let other = try CanonicalStoreLocation(resolving: world.stores.appending("Other.sqlite"))
    let source = try #require(try SourceFingerprint(of: world.location, files: world.plain))
    func record(_ store: CanonicalStoreLocation) -> ReplacementIntent {
      ReplacementIntent(
        location: store, job: "ab12", planFingerprint: "plan", source: source, bootIdentifier: "b", staged: nil,
        journalMode: .delete, from: StoreVersionMark(name: "One", digest: "one"),
        to: StoreVersionMark(name: "Two", digest: "two"), storeUUID: nil, startedAt: 0)
    }
    try intents.write(record(other))
    let path = try #require(try intents.all().first?.file)
    let bytes = try world.plain.read(path, limit: 65_536)
    try intents.remove(other)
    try intents.write(record(world.location))
    let own = try #require(try intents.all().first?.file)
    try world.plain.writeDurably(bytes, to: own)
    if case .unreadable(let error) = try intents.read(world.location) {
      #expect(error.code == .recordUnreadable && error.message.contains("Other.sqlite"))
    } else {
      Issue.record("the record of another store was believed")
    }
    try world.plain.writeDurably(Array("{\"format\":1,\"store\":\"%zz\"}".utf8), to: own)
    if case .unreadable = try intents.read(world.location) {} else { Issue.record("a path that is none was read") }
    try world.plain.unlink(own)
    try world.plain.makeDirectory(own, mode: 0o700)
    if case .unreadable = try intents.read(world.location) {} else { Issue.record("a directory was read") }
  }

  // MARK: Recovery

  @Test("The leftovers of many directories are remembered for a while, and not for ever")
  func index() throws {
    let world = try TestWorld(.rollback)
    let area = StagingArea(location: world.location, job: "ff00", files: world.plain)
    _ = try world.leave(area, hop: 1)
    let lists = Mutex(0)
    let files = HookedFileSystem(before: { call, path in
      if call == "names", path.lastComponent?.string == "stores" { lists.withLock { $0 += 1 } }
    })
    let index = LeftoverIndex()
    func recover() throws -> RecoveryOutcome {
      try RecoveryRunner(
        files: files, intents: try world.intents(files), lockDirectory: world.locks, identify: TestWorld.identify,
        index: index
      ).recover(world.location)
    }
    #expect(try recover().decision == .startAgain([.dropStaged]))
    #expect(world.names == ["Library.sqlite"])
    #expect(try recover().decision == .nothingToDo)
    #expect(lists.withLock { $0 } == 1)
    // Beyond its bound it forgets, and lists again.
    let many = world.root.appending("many")
    try world.plain.makeDirectory(many, mode: 0o700)
    for number in 0..<1024 {
      let folder = many.appending("\(number)")
      try world.plain.makeDirectory(folder, mode: 0o700)
      #expect(try index.names(in: folder, files: files).isEmpty)
    }
    #expect(try recover().decision == .nothingToDo)
    #expect(lists.withLock { $0 } == 2)
  }

  @Test("A directory that is gone, a store that nobody can read, and one of no known version are told apart")
  func unknown() throws {
    let world = try TestWorld(.rollback)
    func announce() throws {
      let source = try #require(try SourceFingerprint(of: world.location, files: world.plain))
      let store = try hold(world)
      defer { store.release() }
      let area = StagingArea(location: store.location, job: "ab12", files: world.plain)
      try world.intents(world.plain).write(try world.intent(store, area, source: source))
    }
    try announce()
    do {
      try Connection.ofApp(world.location.database).execute("UPDATE version SET digest = 'nine'")
    }
    #expect(try world.recover().decision == .quarantine(.unknownVersion))
    do { try Connection.ofApp(world.location.database).execute("DROP TABLE version") }
    #expect(try world.recover().decision == .quarantine(.unknownVersion))
    try replace(world.location.database)
    #expect(try world.recover().decision == .quarantine(.storeDamaged))
    try world.plain.unlink(world.location.database)
    try world.plain.makeDirectory(world.location.database, mode: 0o700)
    #expect(try world.recover().decision == .quarantine(.storeDamaged))
    try world.plain.rename(world.stores, to: world.home.appending("away"))
    #expect(try world.recover().decision == .quarantine(.storeMissing))
  }

  @Test("A store that goes between two looks is missing, and an answer that may change is asked for again")
  func goneWhileInspected() throws {
    let world = try TestWorld(.rollback)
    let source = try #require(try SourceFingerprint(of: world.location, files: world.plain))
    do {
      let store = try hold(world)
      let area = StagingArea(location: store.location, job: "ab12", files: world.plain)
      try world.intents(world.plain).write(try world.intent(store, area, source: source))
      store.release()
    }
    let runner = RecoveryRunner(
      files: world.plain, intents: try world.intents(world.plain), lockDirectory: world.locks,
      identify: { _ in throw HopdError(.storeBusy, "later") })
    #expect(code { _ = try runner.recover(world.location) } == .storeBusy)
    let database = world.location.database
    let inspections = Mutex(0)
    let files = HookedFileSystem(before: { call, path in
      if call == "status", path.lastComponent?.string == "stores", try LinuxFileSystem().status(database) != nil {
        // Recovery lists the folder once, and the holding of the store once more.
        if inspections.withLock({
          $0 += 1
          return $0 == 2
        }) {
          try LinuxFileSystem().unlink(database)
        }
      }
    })
    #expect(try world.recover(files).decision == .quarantine(.storeMissing))
  }

  @Test(
    "What was set aside is withdrawn only where a record says that the store is the old one", arguments: [true, false])
  func setAside(_ hasRecord: Bool) throws {
    let world = try TestWorld(.rollback)
    let area = StagingArea(location: world.location, job: "ab12", files: world.plain)
    if hasRecord {
      let source = try #require(try SourceFingerprint(of: world.location, files: world.plain))
      let store = try hold(world)
      try world.intents(world.plain).write(try world.intent(store, area, source: source))
      store.release()
    }
    let quarantine = QuarantineFile(area: area, files: world.plain)
    try quarantine.prepare()
    #expect(try quarantine.publish(attributesOf: nil) == quarantine.published)
    #expect(try quarantine.publish(attributesOf: nil) == quarantine.published, "done again it answers the same")
    // Of the new store, perhaps: the earlier hop's staged store is all that is left of its migration.
    if !hasRecord { _ = try area.create(hop: 0) }
    guard case .startAgain = try world.recover().decision else { throw Finding("recovery has nothing to do") }
    let isGone = try world.plain.status(quarantine.published) == nil
    #expect(isGone == hasRecord)
    #expect(world.names.count == (hasRecord ? 1 : 2))
  }

  // MARK: Restore

  @Test("A restore says what is wrong with the backup, and touches nothing")
  func restoreRefuses() throws {
    let world = try TestWorld(.rollback)
    let backup = try #require(try world.migrate(files: LinuxFileSystem()).backup)
    let restore = Restore(
      swap: StoreSwap(files: world.plain, intents: try world.intents(world.plain), identify: TestWorld.identify),
      lockDirectory: world.locks)
    func refusal(_ database: FilePath, to location: CanonicalStoreLocation? = nil) -> HopdError? {
      do {
        _ = try restore.restore(
          database, to: location ?? world.location, job: "cd34", backup: BackupRule(), now: 1_900_000_100)
        return nil
      } catch { return error as? HopdError }
    }
    #expect(refusal(backup.removingLastComponent().appending("none"))?.code == .notFound)
    let copy = world.root.appending("copy")
    try world.plain.createFile(copy, Array(repeating: 3, count: 8192), mode: 0o600)
    #expect(refusal(copy)?.code == .storeDamaged)
    #expect(try world.content().version == "two")
    try world.plain.rename(world.location.database, to: world.stores.appending("away"))
    try replace(world.location.database, Array(repeating: 3, count: 8192))
    let damaged = refusal(backup)
    #expect(damaged?.code == .storeDamaged && damaged?.hint?.contains("move the damaged file") == true)
    #expect(world.names.filter { $0.contains(".hop-") }.isEmpty)
  }
}
