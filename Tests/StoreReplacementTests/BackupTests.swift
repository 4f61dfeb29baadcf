import Diagnostics
import DurableFiles
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import SystemPackage
import Testing

@Suite("Old stores")
struct BackupTests {
  private func set(_ world: TestWorld, _ rule: BackupRule = BackupRule()) throws -> BackupSet {
    try BackupSet(location: world.location, rule: rule, files: world.plain)
  }

  /// Sets the store back to version one, so that it can be migrated again.
  private func setBack(_ world: TestWorld) throws {
    try Connection.ofApp(world.location.database).execute(
      "UPDATE version SET digest = 'one'; ALTER TABLE book DROP COLUMN pages")
  }

  @Test("As many as the rule says are kept, the newest first", arguments: [0, 1, 2])
  func keep(_ keep: Int) throws {
    let world = try TestWorld(.wal)
    var last: ReplacedStore?
    for round in 0..<4 {
      if round > 0 { try setBack(world) }
      last = try world.migrate(
        files: LinuxFileSystem(), job: "a\(round)", backup: BackupRule(keep: keep), now: 1_900_000_000 + Int64(round))
    }
    let generations = try set(world).generations()
    #expect(generations.compactMap { $0.record?.job } == ["a3", "a2", "a1", "a0"].prefix(keep).map { $0 })
    #expect(generations.first?.database == last?.backup)
    #expect(generations.first?.record?.from.name ?? "One" == "One")
    #expect(try set(world).generations().reduce(0) { $0 + $1.bytes } >= Int64(keep) * 8192)
    #expect(world.names.contains(".Library.sqlite.hopd-backups") == (keep > 0))
  }

  @Test("A database of another name among the backups is reported, and never removed", arguments: [true, false])
  func otherNames(_ hasLabel: Bool) throws {
    let world = try TestWorld(.wal)
    let old = try #require(try world.migrate(files: LinuxFileSystem(), job: "aa").backup)
    let folder = old.removingLastComponent()
    let renamed = folder.appending("before.sqlite")
    try world.plain.rename(old, to: renamed)
    if !hasLabel { try world.plain.unlink(folder.appending("backup.json")) }
    #expect(try set(world).unfinished().isEmpty && set(world).generations().isEmpty)
    #expect(try set(world).unreadableLabels().map(\.place.file) == [folder])
    #expect(try set(world).prune(BackupRule(keep: 0), now: 2_000_000_000).isEmpty)
    try setBack(world)
    let result = try world.migrate(files: LinuxFileSystem(), job: "bb", backup: BackupRule(keep: 0), now: 2_000_000_000)
    #expect(result.warnings.contains { $0.place.file == folder })
    _ = try world.recover()
    #expect(try world.plain.status(renamed)?.kind == .regular)
  }

  @Test("A clock that was set back does not cost the newest backup")
  func clockSetBack() throws {
    let world = try TestWorld(.wal)
    try world.migrate(files: LinuxFileSystem(), job: "aa", now: 1_900_000_000)
    try setBack(world)
    let result = try world.migrate(files: LinuxFileSystem(), job: "bb", now: 1_000_000_000)
    #expect(try set(world).generations().compactMap { $0.record?.job } == ["bb"])
    #expect(try set(world).generations().first?.database == result.backup)
  }

  @Test("What is too old goes, but only after a success")
  func keepFor() throws {
    let world = try TestWorld(.wal)
    try world.migrate(files: LinuxFileSystem(), job: "aa", now: 1_000_000)
    try setBack(world)
    let rule = BackupRule(keep: 9, keepFor: .seconds(3600))
    let failing = FaultyFileSystem(.init(failAt: 12))
    #expect(throws: (any Error).self) { try world.migrate(files: failing, job: "bb", backup: rule, now: 2_000_000) }
    _ = try world.recover()
    #expect(try set(world).generations().compactMap { $0.record?.job } == ["aa"])
    let result = try world.migrate(files: LinuxFileSystem(), job: "cc", backup: rule, now: 2_000_000)
    #expect(result.removedBackups.count == 1)
    #expect(try set(world).generations().compactMap { $0.record?.job } == ["cc"])
  }

  @Test("In a configured directory the backup is a copy, and no link stays beside the store")
  func elsewhere() throws {
    let world = try TestWorld(.hotLog, externalFiles: ["A0B1"])
    let place = world.root.appending("vault")
    try world.plain.makeDirectory(place, mode: 0o700)
    let rule = BackupRule(keep: 1, directory: place)
    let result = try world.migrate(files: LinuxFileSystem(), backup: rule)
    #expect(result.warnings.isEmpty)
    #expect(world.names == [".Library_SUPPORT", "Library.sqlite"])
    let backup = try #require(result.backup)
    #expect(backup.starts(with: place))
    let old = try world.content(of: backup)
    #expect(old.version == "one" && old.rows == TestWorld.rows)
    let copy = StoreLocation(database: backup).externalDataDirectory.appending("A0B1")
    #expect(try world.plain.status(copy)?.links == 1)
    #expect(try set(world, rule).generations().map(\.database) == [backup])
  }

  @Test("A backup that cannot be copied stays beside the store, with a warning")
  func elsewhereFails() throws {
    let world = try TestWorld(.wal)
    let place = world.root.appending("vault")
    try world.plain.makeDirectory(place, mode: 0o700)
    let counting = FaultyFileSystem()
    let rule = BackupRule(keep: 1, directory: place)
    try world.migrate(files: counting, backup: rule)
    let copy = try #require(counting.calls.firstIndex { $0.hasPrefix("copy Library.sqlite") }) + 1
    let second = try TestWorld(.wal)
    let secondPlace = second.root.appending("vault")
    try second.plain.makeDirectory(secondPlace, mode: 0o700)
    let result = try second.migrate(
      files: FaultyFileSystem(.init(failAt: copy)), backup: BackupRule(keep: 1, directory: secondPlace))
    #expect(result.warnings.count == 1)
    let kept = try #require(result.backup)
    #expect(try second.content(of: kept).version == "one")
    #expect(second.names.contains(".Library.sqlite.hopd-backups"))
    // The next migration moves it, too.
    _ = try second.restore(kept, job: "c3", options: RestoreOptions(pins: false))
    let later = BackupRule(keep: 9, directory: secondPlace)
    try second.migrate(files: second.plain, job: "d4", backup: later, now: 1_900_000_500)
    let generations = try set(second, later).generations()
    #expect(generations.count == 3 && generations.allSatisfy { $0.directory.starts(with: secondPlace) })
    #expect(!second.names.contains(".Library.sqlite.hopd-backups"))
  }

  // MARK: Restoring

  private func restore(_ world: TestWorld, _ database: FilePath, job: String = "ee55") throws -> ReplacedStore {
    let swap = StoreSwap(
      files: world.plain, intents: try world.intents(world.plain), identify: TestWorld.identify)
    return try Restore(swap: swap, lockDirectory: world.locks).restore(
      database, to: world.location, job: job, backup: BackupRule(keep: 2), now: 1_900_000_100
    ).replaced
  }

  @Test("There and back: the old store returns, the newer one becomes a backup", arguments: SourceKind.allCases)
  func roundTrip(_ kind: SourceKind) throws {
    let world = try TestWorld(kind, externalFiles: ["A0B1"])
    let replaced = try world.migrate(files: LinuxFileSystem())
    try world.plain.unlink(world.location.externalDataDirectory.appending("A0B1"))
    let result = try restore(world, try #require(replaced.backup))
    #expect(result.version.digest == "one")
    let now = try world.content()
    #expect(now.version == "one" && now.rows == TestWorld.rows)
    let header = try world.plain.read(world.location.database, limit: 1 << 24)
    #expect(header[18] == (kind.journalMode == .wal ? 2 : 1))
    let newer = try #require(result.backup)
    #expect(try world.content(of: newer).version == "two")
    #expect(try set(world).generations().count == 2)
    #expect(try world.plain.names(in: world.location.externalDataDirectory).map(\.string) == ["A0B1"])
    // And forward again.
    _ = try restore(world, newer, job: "ff66")
    #expect(try world.content().version == "two")
  }

  @Test("A store that is gone is put back when asked for, not over the rest of another")
  func missing() throws {
    let world = try TestWorld(.wal)
    let backup = try #require(try world.migrate(files: LinuxFileSystem()).backup)
    try world.plain.unlink(world.location.database)
    try world.plain.createFile(world.location.writeAheadLog, [1, 2, 3], mode: 0o600)
    #expect(code { _ = try self.restore(world, backup) } == .cannotReplace)
    try world.plain.unlink(world.location.writeAheadLog)
    _ = try restore(world, backup)
    let now = try world.content()
    #expect(now.version == "one" && now.rows == TestWorld.rows)
    #expect(try world.recover().decision == .nothingToDo)
  }

  @Test("A damaged backup is refused and nothing is changed")
  func damaged() throws {
    let world = try TestWorld(.wal)
    _ = try world.migrate(files: LinuxFileSystem())
    let bad = world.root.appending("bad.sqlite")
    try world.plain.createFile(bad, Array(repeating: 7, count: 8192), mode: 0o600)
    let before = try world.everything()
    #expect(code { _ = try self.restore(world, bad) } == .storeDamaged)
    #expect(try world.everything() == before)
  }
}
