// Generations of restores are a class of their own, a counter orders all of them, and a restored store is pinned.

import Diagnostics
import DurableFiles
import FoundationEssentials
import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import StoreReplacement

/// Helpers for tests of backups.
extension TestWorld {
  func backups(_ rule: BackupRule = BackupRule()) throws -> BackupSet {
    try BackupSet(location: location, rule: rule, files: plain)
  }

  func pins() throws -> PinStore { PinStore(location: location, files: plain) }

  func write(_ title: String) throws {
    try Connection.ofApp(location.database).run(
      "INSERT INTO book(title) VALUES(?)", [.text(title)])
  }

  func has(_ title: String, in database: FilePath? = nil) throws -> Bool {
    try Connection.ofApp(database ?? location.database).integer(
      "SELECT count(*) FROM book WHERE title = ?", [.text(title)]) == 1
  }

  @discardableResult
  func restore(
    _ database: FilePath, job: String, now: Int64 = 1_900_000_100, options: RestoreOptions = RestoreOptions(),
    files: any DurableFileSystem = LinuxFileSystem(), observer: @escaping SwapObserver = { _ in }
  ) throws -> RestoredStore {
    var swap = StoreSwap(
      files: files, intents: try intents(files), identify: TestWorld.identify, observer: observer)
    swap.asksForOpeners = false  // snapshots are taken by another program, which opens the store
    return try Restore(swap: swap, lockDirectory: locks).restore(
      database, to: location, job: job, backup: BackupRule(), now: now, options: options)
  }
}

@Suite("Backups of restores, their order, and pins")
struct BackupClassTests {
  private let two = StoreVersionMark(name: "Two", digest: "two")

  @Test("Restore, then migrate: what was written in between stays, and what goes is told")
  func restoreThenMigrate() throws {
    let world = try TestWorld(.wal)
    let first = try #require(try world.migrate(files: world.plain, job: "a1").backup)
    try world.write("after the migration")
    let restored = try world.restore(first, job: "b2")
    let kept = try #require(restored.replaced.backup)
    let result = try world.migrate(files: world.plain, job: "c3", now: 1_900_000_200)
    #expect(result.removedBackups.map(\.generation.database) == [first])
    #expect(result.removedBackups.map(\.reason) == [.keep])
    #expect(try world.has("after the migration", in: kept))
    // keep = 0 takes generations of migrations alone.
    _ = try world.backups().prune(BackupRule(keep: 0), now: 2_000_000_000)
    #expect(try world.backups().generations().map(\.database) == [kept])
    #expect(try world.has("after the migration", in: kept))
  }

  @Test("Two restores within one second, and with a clock that jumps back: the newest is the one made last")
  func order() throws {
    let world = try TestWorld(.rollback)
    try world.migrate(files: world.plain, job: "50")
    // Names of jobs are random: the order must not hang on them.
    for (index, job) in ["ff", "01", "99", "00", "fe", "02"].enumerated() {
      let newest = try #require(try world.backups().generations().first)
      let was = try world.content().version
      let jump: Int64 = index >= 3 ? -10_000_000 * Int64(index) : 0
      let kept = try world.restore(newest.database, job: job, now: 1_900_000_000 + jump).replaced.backup
      #expect(try world.content().version == newest.record?.from.digest)
      let next = try #require(try world.backups().generations().first)
      #expect(next.database == kept && next.record?.from.digest == was)
      #expect(next.record?.number == Int64(index) + 2)
    }
  }

  @Test("Generations without a counter come before those with one, and go first")
  func uncounted() throws {
    let world = try TestWorld(.rollback)
    try world.migrate(files: world.plain, job: "a1", now: 1_950_000_000)
    let old = try #require(try world.backups().generations().first)
    // As a hopd of before wrote it.
    let label = old.directory.appending("backup.json")
    var record = try #require(old.record)
    (record.number, record.madeBy) = (nil, nil)
    try world.plain.unlink(label)
    try world.plain.createFile(label, Array(JSONEncoder().encode(record)), mode: 0o600)
    #expect(try world.backups().generations().first?.record?.origin == .migration)
    var replaced = record
    replaced.from = StoreVersionMark(name: "before the restore", digest: "x")
    #expect(replaced.origin == .restore)
    try world.restore(old.database, job: "b2", now: 1_900_000_000)
    try world.migrate(files: world.plain, job: "c3", backup: BackupRule(keep: 2), now: 1_900_000_001)
    #expect(try world.backups().generations().compactMap { $0.record?.job } == ["c3", "b2", "a1"])
    _ = try world.backups().prune(BackupRule(keep: 1), now: 1_900_000_002)
    #expect(try world.backups().generations().compactMap { $0.record?.job } == ["c3", "b2"])
  }

  @Test("keep_for takes both classes, and no time at all takes none")
  func ages() throws {
    let world = try TestWorld(.rollback)
    let first = try #require(try world.migrate(files: world.plain, job: "a1", now: 1_000_000).backup)
    try world.restore(first, job: "b2", now: 1_000_010)
    #expect(try world.backups().prune(BackupRule(keep: 9, keepFor: .zero), now: 9_000_000).isEmpty)
    #expect(try world.backups().prune(BackupRule(keep: 9), now: 9_000_000).isEmpty)
    // A clock that was set back makes nothing old.
    #expect(try world.backups().prune(BackupRule(keep: 9, keepFor: .seconds(5)), now: 500).isEmpty)
    let removed = try world.backups().prune(BackupRule(keep: 9, keepFor: .seconds(3600)), now: 9_000_000)
    #expect(removed.map(\.reason) == [.keepFor, .keepFor])
  }

  // MARK: Pins

  @Test("A restored store is held back from every version, or by new-version from the replaced one alone")
  func pin() throws {
    let world = try TestWorld(.wal)
    let backup = try #require(try world.migrate(files: world.plain).backup)
    let restored = try world.restore(backup, job: "b2")
    #expect(restored.pin?.restored.name == "One")
    #expect(restored.pin?.replaced == [two])
    let pins = try world.pins()
    #expect(try pins.pin(against: two, storeUUID: nil, digest: "one") == restored.pin)
    let three = StoreVersionMark(name: "Three", digest: "three")
    #expect(try pins.pin(against: three, storeUUID: nil, digest: "one") == restored.pin)
    #expect(try pins.pin(against: three, storeUUID: nil, digest: "one", rule: .newVersion) == nil)
    #expect(try pins.pin(against: two, storeUUID: nil, digest: "one", rule: .newVersion) == restored.pin)
    // Another store under the name, or another version of this one, is not meant.
    #expect(restored.pin?.isOf(storeUUID: nil, digest: "two") == false)
    var other = try #require(restored.pin)
    other.storeUUID = "A"
    #expect(!other.isOf(storeUUID: "B", digest: "one"))
    #expect(other.refusal(world.location.database).hint?.contains("hopctl resume") == true)
    // A restore of the same version over it does not forget what the first one had replaced.
    #expect(try world.restore(backup, job: "c3").pin?.replaced == [two])
    #expect(try pins.remove())
    #expect(try !pins.remove())
    #expect(try world.restore(backup, job: "d4", options: RestoreOptions(pins: false)).pin == nil)
    #expect(try pins.read() == nil)
    // Put where no store is: what had replaced the backup's version is known from its label.
    try world.plain.unlink(world.location.database)
    #expect(try world.restore(backup, job: "e5").pin?.replaced == [two])
  }

  @Test("A restore that expects another version than the store has is refused, and the pin has the name of its group")
  func group() throws {
    let world = try TestWorld(.wal)
    let backup = try #require(try world.migrate(files: world.plain).backup)
    let one = StoreVersionMark(name: "One", digest: "one")
    #expect(
      code { try world.restore(backup, job: "b2", options: RestoreOptions(expected: one)) } == .storeChanged)
    #expect(try world.pins().read() == nil && world.content().version == "two")
    let pin = try world.restore(backup, job: "c3", options: RestoreOptions(group: "set-1", expected: two)).pin
    #expect(try pin?.group == "set-1" && world.pins().read()?.group == "set-1")
    let refusal = pin?.refusal(world.location.database)
    #expect(refusal?.message.contains("(group set-1)") == true)
    #expect((refusal?.cause as? PinGroup)?.command == "hopctl resume --group set-1")
    #expect(refusal?.description.contains("because") == false, "the name stands there once")
    #expect(PinGroup(of: "a b/", now: 0).name == "a-b--19700101T000000Z")
    #expect(PinGroup(command: PinGroup("x").command) == PinGroup("x") && PinGroup(command: "hopctl plan x") == nil)
  }

  @Test("A crash between the pin of a second restore and its swap does not cost the pin of the first")
  func crashBeforeTheSwap() throws {
    let world = try TestWorld(.rollback)
    let backup = try #require(try world.migrate(files: world.plain).backup)
    let newer = try #require(try world.restore(backup, job: "b2").replaced.backup)
    try world.restore(newer, job: "c3") { step in
      if step == .backedUp { try world.snapshot("kill") }
    }
    try world.reboot(into: "kill")
    _ = try world.recover()
    #expect(try world.content().version == "one")
    let pin = try #require(try world.pins().pin(against: two, storeUUID: nil, digest: "one"))
    #expect(pin.job == "b2" && pin.former == nil)
  }

  @Test("A restore that fails leaves the pin that was there, or none", arguments: [false, true])
  func failedRestore(_ hadPin: Bool) throws {
    let world = try TestWorld(.wal)
    let backup = try #require(try world.migrate(files: world.plain).backup)
    if hadPin { try world.restore(backup, job: "b2") }
    let before = try world.pins().read()
    #expect(throws: HopdError.self) {
      try world.restore(backup, job: "c3") { step in
        if step == .compared { throw HopdError(.inputOutput, "the disk fails") }
      }
    }
    #expect(try world.pins().read() == before)
    #expect((before != nil) == hadPin)
  }

  @Test("A pin that cannot be read stops hopd, and hopctl resume removes it")
  func unreadable() throws {
    let world = try TestWorld(.wal)
    let backup = try #require(try world.migrate(files: world.plain).backup)
    try world.restore(backup, job: "b2")
    let pins = try world.pins()
    try world.plain.unlink(pins.path)
    try world.plain.createFile(pins.path, [1, 2, 3], mode: 0o600)
    #expect(code { _ = try pins.read() } == .recordUnreadable)
    try world.plain.unlink(pins.path)
    try world.plain.createFile(
      pins.path,
      Array(
        #"{"format":9,"job":"a","replaced":[],"restored":{"digest":"d","name":"n"},"restoredAt":1}"#.utf8), mode: 0o600)
    #expect(code { _ = try pins.read() } == .recordNewer)
    // Also where a newer hopd's pin has nothing that this one looks for.
    try world.plain.unlink(pins.path)
    try world.plain.createFile(pins.path, Array(#"{"format":9}"#.utf8), mode: 0o600)
    #expect(code { _ = try pins.read() } == .recordNewer)
    #expect(try pins.remove())
  }
}
