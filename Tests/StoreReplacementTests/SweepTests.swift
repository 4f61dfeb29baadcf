// The sweep of a directory: what is too old or too many goes, also of stores that are gone, and nothing else.

import Diagnostics
import DurableFiles
import OtherPrograms
import PersistentStore
import SQLite
import Synchronization
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("The sweep of backups")
struct SweepTests {
  /// Removes by the rule what there is in a world; the folders that went, and when the next one is too old.
  private func sweep(
    _ world: TestWorld, _ rule: BackupRule, now: Int64, recursive: Bool = false, directory: FilePath? = nil
  ) throws -> (removed: [BackupRemoval], next: Int64?) {
    var removed: [BackupRemoval] = []
    let survey = try BackupSurvey(
      of: CanonicalDirectory(resolving: directory ?? world.stores), recursive: recursive, rule: rule, files: world.plain
    )
    let next = try BackupSweep(survey, rule: rule).run(
      now: now, removed: { removed.append($1) }, problem: { Issue.record("\($0)") })
    return (removed, next)
  }

  @Test("Backups that were renamed together with their store are nobody's leftovers")
  func renamedTogether() throws {
    let world = try TestWorld(.rollback)
    let backup = try #require(try world.migrate(files: world.plain).backup)
    let other = try CanonicalStoreLocation(resolving: world.stores.appending("Other.sqlite"))
    try world.plain.rename(world.location.database, to: other.database)
    let folder = world.stores.appending(".Other.sqlite.hopd-backups")
    try world.plain.rename(backup.removingLastComponent().removingLastComponent(), to: folder)
    let kept = folder.appending(try #require(backup.removingLastComponent().lastComponent)).appending("Library.sqlite")
    let backups = try BackupSet(location: other, rule: BackupRule(), files: world.plain)
    #expect(try backups.unfinished().isEmpty)
    _ = try backups.remove { _ in [] }
    _ = try sweep(world, BackupRule(keep: 1), now: 2_000_000_000)
    #expect(try world.content(of: kept).version == "one")
  }

  @Test("Backups of a store that is gone stay until they are too old", arguments: [false, true])
  func orphans(_ isElsewhere: Bool) throws {
    let world = try TestWorld(.rollback, externalFiles: ["A0B1"])
    let vault = world.root.appending("vault")
    try world.plain.makeDirectory(vault, mode: 0o700)
    var rule = BackupRule(keep: 1, directory: isElsewhere ? vault : nil)
    let backup = try #require(try world.migrate(files: world.plain, backup: rule, now: 1_900_000_000).backup)
    try world.plain.unlink(world.location.database)
    rule.keep = 0
    #expect(try sweep(world, rule, now: 3_000_000_000).removed.isEmpty)
    rule.keepFor = .seconds(3600)
    let early = try sweep(world, rule, now: 1_900_003_600)
    #expect(early.removed.isEmpty && early.next == 1_900_003_600)
    let late = try sweep(world, rule, now: 1_900_003_601)
    #expect(late.removed.map(\.generation.database) == [backup])
    #expect(late.removed.first?.reason == .keepFor)
    // The folder goes with the last one.
    #expect(!world.names.contains { $0.hasSuffix("backups") })
    #expect(try world.plain.names(in: vault).isEmpty)
  }

  @Test(
    "keep = 0 that came later takes what is there, and leaves backups of restores and half-made ones that may be in use"
  )
  func fewer() throws {
    let world = try TestWorld(.rollback)
    let backup = try #require(try world.migrate(files: world.plain, job: "a1").backup)
    try world.restore(backup, job: "b2")
    let folder = try world.backups().directory
    // Half removed, and the store itself, as in the middle of a replacement.
    for name in ["20300101T000000Z-aa", "20300101T000000Z-bb"] {
      try world.plain.makeDirectory(folder.appending(name), mode: 0o700)
    }
    let own = folder.appending("20300101T000000Z-bb/Library.sqlite")
    try world.plain.link(world.location.database, as: own)
    let swept = try sweep(world, BackupRule(keep: 0), now: 1_900_000_000)
    #expect(swept.removed.compactMap { $0.generation.record?.job } == ["a1"] && swept.next == nil)
    #expect(try world.backups().generations().compactMap { $0.record?.job } == ["b2"])
    #expect(try world.plain.status(own) != nil)
    #expect(try world.plain.status(folder.appending("20300101T000000Z-aa")) == nil)
  }

  @Test("The backup of a replacement that was cut off does not cost an older one")
  func cutOff() throws {
    let world = try TestWorld(.rollback)
    let first = try #require(try world.migrate(files: world.plain, job: "a1").backup)
    let second = try #require(
      try world.migrate(files: world.plain, job: "b2", backup: BackupRule(keep: 2), now: 1_900_000_100).backup)
    // As a crash in the middle of a replacement in place leaves it: the copy is complete, and the staged store is
    // there.
    let staged = world.stores.appending(".Library.sqlite.hop-b2.tmp")
    try world.plain.createFile(staged, [1], mode: 0o600)
    #expect(try sweep(world, BackupRule(keep: 1), now: 1_900_000_200).removed.isEmpty)
    #expect(try world.backups().generations().map(\.database) == [second, first])
    try world.plain.unlink(staged)
    let removed = try sweep(world, BackupRule(keep: 1), now: 1_900_000_200).removed
    #expect(removed.map(\.generation.database) == [first])
  }

  @Test("The pin of a store that is put back where none is stays, whatever removes backups meanwhile")
  func pinOfARestore() throws {
    let world = try TestWorld(.rollback)
    let backup = try #require(try world.migrate(files: world.plain).backup)
    try world.plain.unlink(world.location.database)
    // Outside of the folder of backups, so that the sweep finds no generation.
    let elsewhere = world.root.appending("backup.sqlite")
    try world.plain.copyFile(from: backup, to: elsewhere)
    try world.backups().remove(backup.removingLastComponent())
    let location = world.location
    let codes = Mutex<[HopdError.Code?]>([])
    let files = HookedFileSystem(before: { call, path in
      guard call == "rename-new", path == location.database else { return }
      let backups = try BackupSet(location: location, rule: BackupRule(), files: LinuxFileSystem())
      let refusal = code {
        _ = try backups.remove(patience: .zero) { $0.map { BackupRemoval(generation: $0, reason: .orphaned) } }
      }
      codes.withLock { $0.append(refusal) }
    })
    let swap = StoreSwap(files: files, intents: try world.intents(files), identify: TestWorld.identify)
    let restored = try Restore(swap: swap, lockDirectory: world.locks).restore(
      elsewhere, to: location, job: "b2", backup: BackupRule(), now: 1_900_000_100)
    #expect(codes.withLock { $0 } == [.lockedByOther])
    #expect(restored.pin != nil)
    #expect(try PinStore(location: location, files: world.plain).read()?.job == "b2")
  }

  @Test("Removing a backup that is named leaves the pin of a store whose other backups are elsewhere")
  func named() throws {
    let world = try TestWorld(.rollback)
    let first = try #require(try world.migrate(files: world.plain, job: "a1").backup)
    try world.restore(first, job: "b2")
    let pins = PinStore(location: world.location, files: world.plain)
    try world.plain.unlink(world.location.database)
    for generation in try world.backups().generations() {
      let backups = BackupSet(location: world.location, generation: generation.directory, files: world.plain)
      _ = try backups.remove { all in
        all.filter { $0 == generation }.map { BackupRemoval(generation: $0, reason: .named) }
      }
    }
    #expect(try world.backups().generations().isEmpty)
    #expect(try pins.read() != nil)
    _ = try world.backups().remove { _ in [] }
    #expect(try pins.read() == nil)
  }

  @Test("Stores below, stores with long names, and stores of others")
  func places() throws {
    let name = String(repeating: "n", count: 200) + ".sqlite"
    let world = try TestWorld(.rollback, name: name)
    try world.migrate(files: world.plain, now: 1_000)
    let rule = BackupRule(keep: 9, keepFor: .seconds(60))
    #expect(try sweep(world, rule, now: 2_000, directory: world.home).removed.isEmpty)
    // A store at work is left for the next time.
    let lock = try world.backups().lock()
    #expect(try sweep(world, rule, now: 2_000).removed.isEmpty)
    lock.release()
    #expect(try sweep(world, rule, now: 2_000, recursive: true, directory: world.home).removed.count == 1)
    #expect(try world.backups().generations().isEmpty)
  }

  @Test("A store that came under the name of another one does not cost that one's backups")
  func anotherStore() throws {
    func identify(_ world: TestWorld, as uuid: String) throws {
      try Connection.ofApp(world.location.database).execute(
        "CREATE TABLE Z_METADATA(Z_VERSION INTEGER PRIMARY KEY, Z_UUID TEXT); "
          + "INSERT INTO Z_METADATA VALUES(1, '\(uuid)')"
      )
    }
    let world = try TestWorld(.rollback)
    let copy = world.root.appending("copy")
    try world.plain.copyFile(from: world.location.database, to: copy)
    try identify(world, as: "FIRST")
    let first = try #require(try world.migrate(files: world.plain, job: "a1").backup)
    try world.plain.unlink(world.location.database)
    try world.plain.rename(copy, to: world.location.database)
    try identify(world, as: "SECOND")
    let result = try world.migrate(files: world.plain, job: "b2", now: 1_900_000_100)
    #expect(result.removedBackups.isEmpty)
    #expect(try world.backups().generations().map(\.database).contains(first))
  }

  @Test("The time in a folder's name is read as it was written")
  func times() {
    for seconds in [0, 1, 951_782_400, 1_900_000_000, 4_102_444_800] as [Int64] {
      #expect(BackupTime.seconds(ofName: BackupTime.text(seconds) + "-ab12") == seconds)
    }
    #expect(BackupTime.standardText(951_782_400) == "2000-02-29T00:00:00Z")
    for name in ["", "20300101T000000", "2030é101T000000Z-a", "pin.json", "20300101X000000Z-a"] {
      #expect(BackupTime.seconds(ofName: name) == nil)
    }
  }
}
