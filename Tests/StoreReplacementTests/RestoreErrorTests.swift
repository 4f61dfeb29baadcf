// Failures of a backup, or of its destination, while it is restored.

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

@Suite("Errors of a restore")
struct RestoreErrorTests {
  /// A migrated store with its backup.
  private func scene(_ kind: SourceKind = .wal) throws -> (world: TestWorld, backup: FilePath) {
    let world = try TestWorld(kind, externalFiles: ["A0B1"])
    return (world, try #require(try world.migrate(files: LinuxFileSystem()).backup))
  }

  private func restore(
    _ world: TestWorld, _ backup: FilePath, to location: CanonicalStoreLocation? = nil,
    _ files: any DurableFileSystem = LinuxFileSystem(), job: String = "ee55"
  ) throws {
    let swap = StoreSwap(files: files, intents: try world.intents(files), identify: TestWorld.identify)
    _ = try Restore(swap: swap, lockDirectory: world.locks).restore(
      backup, to: location ?? world.location, job: job, backup: BackupRule(keep: 5), now: 1_900_000_100)
  }

  private func refusal(_ body: () throws -> Void) -> HopdError? {
    do {
      try body()
      return nil
    } catch { return error as? HopdError }
  }

  /// Restores where nothing is wrong any more.
  private func checkRetry(_ world: TestWorld, _ backup: FilePath) throws {
    #expect(!world.names.contains { $0.contains(".hop-") }, "\(world.names)")
    try restore(world, backup, job: "ff66")
    let found = try world.content()
    #expect(found.version == "one" && found.rows == TestWorld.rows)
    #expect(try world.plain.names(in: world.location.externalDataDirectory).map(\.string) == ["A0B1"])
  }

  @Test("A place without a name, a backup that goes, and one with a damaged page")
  func backups() throws {
    let (world, backup) = try scene()
    #expect(refusal { try restore(world, backup, to: CanonicalStoreLocation(resolving: "/")) }?.code == .notFound)
    let before = try world.everything()
    // It is moved after the last check of its side files.
    let away = world.root.appending("away")
    let journal = StoreLocation(database: backup).rollbackJournal
    let files = HookedFileSystem(after: { call, path in
      if call == "status", path == journal { try LinuxFileSystem().rename(backup, to: away) }
    })
    let gone = refusal { try restore(world, backup, files) }
    #expect(gone?.code == .notFound && gone?.place.file == backup)
    try world.plain.rename(away, to: backup)
    let damaged = world.root.appending("damaged.sqlite")
    try world.plain.copyFile(from: backup, to: damaged)
    try Ballast.addDamaged(to: damaged)
    let error = refusal { try restore(world, damaged) }
    #expect(error?.code == .storeDamaged && error?.place.file == damaged)
    #expect(try world.everything() == before)
    try checkRetry(world, backup)
  }

  @Test("The store itself is no backup, and the pin of a newer hopd is not written over")
  func itselfAndNewerPin() throws {
    let (world, backup) = try scene()
    let before = try world.everything()
    let error = refusal { try restore(world, world.location.database) }
    #expect(error?.code == .otherStore && error?.hint?.contains("hopctl backups ") == true)
    #expect(try world.everything() == before)
    let pins = PinStore(location: world.location, files: world.plain)
    try restore(world, backup)
    let written = String(decoding: try world.plain.read(pins.path, limit: 65_536), as: UTF8.self)
    let format = try #require(written.firstRange(of: /"format" ?: ?1/))
    let newer = written[..<format.lowerBound] + #""format":99"# + written[format.upperBound...]
    try pins.remove()
    try world.plain.createFile(pins.path, Array(newer.utf8), mode: 0o600)
    #expect(refusal { try restore(world, backup) }?.code == .recordNewer)
    #expect(try world.plain.read(pins.path, limit: 65_536) == Array(newer.utf8))
    try pins.remove()
    try checkRetry(world, backup)
  }

  @Test("A store without metadata is moved away by hand: the refusal says so")
  func noMetadata() throws {
    let (world, backup) = try scene(.rollback)
    try Connection.ofApp(world.location.database).execute("DROP TABLE version")
    let error = refusal { try restore(world, backup) }
    #expect(error?.code == .storeDamaged && error?.hint?.contains("then restore again") == true, "\(error as Any)")
  }

  @Test("A store that appears where none was is not written over")
  func appears() throws {
    let (world, backup) = try scene(.rollback)
    let (database, away) = (world.location.database, world.root.appending("away"))
    try world.plain.rename(database, to: away)
    let journal = world.location.rollbackJournal
    let files = HookedFileSystem(after: { call, path in
      if call == "status", path == journal { try LinuxFileSystem().rename(away, to: database) }
    })
    let error = refusal { try restore(world, backup, files) }
    #expect(error?.code == .storeChanged && error?.hint?.contains("restore again") == true)
    #expect(try world.content().version == "two")
    try checkRetry(world, backup)
    let kept = try BackupSet(location: world.location, rule: BackupRule(), files: world.plain).generations()
    #expect(try kept.map { try world.content(of: $0.database).version }.sorted() == ["one", "two"])
  }

  @Test("Where none is: attributes that cannot be given, and a disk that fails", arguments: [EPERM, EIO])
  func attributes(_ errno: Int32) throws {
    let (world, backup) = try scene()
    try world.plain.unlink(world.location.database)
    let files = HookedFileSystem(before: { call, path in
      if call == "set attributes", path.lastComponent?.string.contains(".hop-") == true {
        throw HopdError(errno: errno, "set the owner", at: path)
      }
    })
    let error = refusal { try restore(world, backup, files) }
    #expect(error?.code == (errno == EPERM ? .noPermission : .inputOutput))
    #expect((error?.hint?.contains("as root or as the owner of the store") == true) == (errno == EPERM))
    #expect(try world.plain.status(world.location.database) == nil)
    try checkRetry(world, backup)
  }

  @Test("An external file that cannot be brought back whole is not brought back at all", arguments: [true, false])
  func externalData(_ isThere: Bool) throws {
    let (world, backup) = try scene()
    try world.plain.unlink(world.location.externalDataDirectory.appending("A0B1"))
    if !isThere { try world.plain.unlink(world.location.database) }
    let stores = world.stores
    let files = HookedFileSystem(
      before: { call, path in
        // Another file system, and that is full before the file's copy has its name.
        guard path.lastComponent?.string.contains("A0B1") == true, path.starts(with: stores) else { return }
        if call == "link" { throw HopdError(errno: EXDEV, "link", at: path) }
        if call == "rename-new" { throw HopdError(errno: ENOSPC, "rename", at: path) }
      })
    let error = refusal { try restore(world, backup, files) }
    #expect(error?.code == .noSpace)
    #expect(try world.plain.names(in: world.location.externalDataDirectory).isEmpty)
    if isThere { #expect(try world.content().version == "two") }
    #expect(try (world.plain.status(world.location.database) != nil) == isThere)
    try checkRetry(world, backup)
  }
}
