import Diagnostics
import DurableFiles
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("A look through a directory")
struct RecoverySurveyTests {
  private func survey(_ world: TestWorld, _ rule: BackupRule = BackupRule()) throws -> RecoverySurvey {
    try RecoverySurvey(
      of: CanonicalDirectory(resolving: world.stores), intents: try world.intents(world.plain), rule: rule,
      files: world.plain)
  }

  /// Writes the record of a job at a store of this name, which need not be there.
  private func announce(_ database: FilePath, _ world: TestWorld) throws {
    let source = try #require(try SourceFingerprint(of: world.location, files: world.plain))
    try world.intents(world.plain).write(
      ReplacementIntent(
        location: CanonicalStoreLocation(resolving: database), job: "ab12", planFingerprint: "plan", source: source,
        bootIdentifier: "b", staged: nil, journalMode: .delete, from: StoreVersionMark(name: "One", digest: "one"),
        to: StoreVersionMark(name: "Two", digest: "two"), storeUUID: nil, startedAt: 0))
  }

  private func touch(_ world: TestWorld, _ names: String...) throws {
    for name in names { try world.plain.createFile(world.stores.appending(name), [1], mode: 0o600) }
  }

  @Test("Each store is told with its own traces, and what goes with none of them as such")
  func traces() throws {
    let world = try TestWorld(.wal)
    let vault = world.home.appending("vault")
    try world.plain.makeDirectory(vault, mode: 0o700)
    let rule = BackupRule(keep: 3, directory: vault)
    #expect(try survey(world, rule).stores.isEmpty, "a store that nobody has touched")

    // A finished migration leaves a backup, and that is all.
    let backup = try #require(try world.migrate(files: LinuxFileSystem()).backup)
    // A job that was cut off while it built: staged stores of two hops and a journal of one.
    try touch(world, "Building.sqlite", ".Building.sqlite.hop-ab12-0.tmp", ".Building.sqlite.hop-ab12-0.tmp-journal")
    try touch(world, ".Building.sqlite.hop-ab12-1.tmp", "Building.sqlite-wal")
    try announce(world.stores.appending("Building.sqlite"), world)
    // A store that was moved away: of one there is a record, of another the rest of a staged store.
    try announce(world.stores.appending("Gone.sqlite"), world)
    try touch(world, ".Lost.sqlite.hop-ff00.tmp-wal")
    // Backups that were cut off, beside the store and elsewhere.
    try touch(world, "Half.sqlite")
    let half = try BackupSet(
      location: CanonicalStoreLocation(resolving: world.stores.appending("Half.sqlite")), rule: rule, files: world.plain
    )
    let elsewhere = try #require(half.elsewhere)
    for folder in [
      half.directory, half.directory.appending("20300102T030405Z-ab12"), elsewhere,
      elsewhere.appending("20300102T030405Z-cd34.part"),
    ] {
      try world.plain.makeDirectory(folder, mode: 0o700)
    }
    // A record that cannot be read, and one of a store in another directory.
    try touch(world, "Torn.sqlite")
    let torn = world.stores.appending("Torn.sqlite")
    try world.plain.createFile(
      world.intents(world.plain).directory.appending(PathText.digest(PathText.bytes(of: torn)) + ".json"), [1, 2],
      mode: 0o600)
    try announce(world.home.appending("Elsewhere.sqlite"), world)
    // Folders are not stores, unless there are traces of one.
    try world.plain.makeDirectory(world.stores.appending("Folder"), mode: 0o700)
    try world.plain.makeDirectory(world.stores.appending("Box.sqlite"), mode: 0o700)
    try touch(world, ".Box.sqlite.hop-ab12.tmp")
    // The user's files, and scratch of no store.
    try touch(world, "notes.txt", "Plain.sqlite", ".hidden", ".Other.hop-notes", ".hop-ab12.tmp")

    let found = try survey(world, rule)
    #expect(
      found.stores.map(\.location.fileName) == [
        "Box.sqlite", "Building.sqlite", "Gone.sqlite", "Half.sqlite", "Library.sqlite", "Lost.sqlite", "Torn.sqlite",
      ])
    func store(_ name: String) throws -> RecoveryTraces {
      try #require(found.stores.first { $0.location.database == world.stores.appending(name) })
    }
    let library = try store("Library.sqlite")
    #expect(library.backups == [backup] && !library.isTouched && library.isThere)
    let building = try store("Building.sqlite")
    #expect(
      building.staged.compactMap(\.lastComponent?.string) == [
        ".Building.sqlite.hop-ab12-0.tmp", ".Building.sqlite.hop-ab12-1.tmp",
      ])
    #expect(building.hasRecord && building.isTouched && building.isThere && building.backups.isEmpty)
    let gone = try store("Gone.sqlite")
    #expect(gone.hasRecord && gone.isTouched && !gone.isThere && gone.staged.isEmpty)
    let lost = try store("Lost.sqlite")
    #expect(!lost.hasRecord && lost.isTouched && !lost.isThere)
    #expect(lost.staged == [world.stores.appending(".Lost.sqlite.hop-ff00.tmp")])
    let cutOff = try store("Half.sqlite")
    #expect(cutOff.isTouched && !cutOff.hasRecord && cutOff.backups.isEmpty)
    #expect(
      cutOff.unfinishedBackups.compactMap(\.lastComponent?.string) == [
        "20300102T030405Z-ab12", "20300102T030405Z-cd34.part",
      ])
    #expect(try store("Torn.sqlite").hasRecord)
    #expect(try store("Box.sqlite").staged.count == 1)
    #expect(found.orphans == [world.stores.appending(".hop-ab12.tmp")])
  }

  @Test(
    "Names that are cut go with the store they are made from, and with no other one",
    arguments: [
      String(repeating: "n", count: 200), String(repeating: "Ж", count: 90),
      // Eighteen letters of thirteen bytes: one character each.
      String(repeating: "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}", count: 18),
    ])
  func longNames(_ stem: String) throws {
    let world = try TestWorld(.rollback, name: stem + ".sqlite")
    let area = StagingArea(location: world.location, job: "ab12", files: world.plain)
    let staged = try area.create(hop: 1)
    try area.reserveDiskSpace(1, for: .commit)
    let found = try survey(world)
    #expect(found.orphans.isEmpty)
    #expect(found.stores.map(\.location) == [world.location])
    #expect(found.stores.first?.staged.contains(staged) == true)
    // The store is gone: its name is unknown, and no store is made up.
    let away = world.root.appending("away")
    try world.plain.rename(world.location.database, to: away)
    let later = try survey(world)
    #expect(later.stores.isEmpty, "\(later.stores.map(\.location.fileName))")
    #expect(later.orphans.contains(staged) && later.orphans.count == 2)
    try world.plain.rename(away, to: world.location.database)
    // Everything that is made from the name fits into a file name.
    #expect(try world.recover().decision == .startAgain([.dropStaged]))
    guard stem.utf8.count > stem.unicodeScalars.count else { return }  // the others are tried elsewhere
    try world.migrate(files: LinuxFileSystem())
    #expect(try world.content().version == "two")
    #expect(try survey(world).stores.first?.backups.count == 1)
  }
}
