// The refusals of a restore: a folder of backups that another user may have filled, the backup of another store,
// external files that are not those of the backup.

import Diagnostics
import DurableFiles
import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("Backups that are not believed")
struct BackupTrustTests {
  private func refusal(_ body: () throws -> Void) -> HopdError? {
    do {
      try body()
      return nil
    } catch { return error as? HopdError }
  }

  @Test("A folder that others may write to is refused, for every use", arguments: [0o777, 0o770] as [UInt32])
  func mode(_ mode: UInt32) throws {
    let world = try TestWorld(.rollback)
    let folder = try world.backups().directory
    try world.plain.makeDirectory(folder, mode: 0o700)
    #expect(chmod(folder.string, mode) == 0)
    let before = try world.everything()
    let error = refusal { try world.migrate(files: world.plain) }
    #expect(error?.code == .backupFolderUnsafe && error?.place.file == folder)
    #expect(error?.hint?.contains("chmod go-w") == true)
    #expect(try world.everything() == before && world.content().version == "one")
    #expect(refusal { _ = try world.backups().generations() }?.code == .backupFolderUnsafe)
    #expect(refusal { _ = try world.recover() }?.code == .backupFolderUnsafe)
    #expect(chmod(folder.string, 0o700) == 0)
    _ = try world.recover()
    try world.migrate(files: world.plain, job: "b2")
    #expect(try world.backups().generations().count == 1)
  }

  @Test(
    "A folder of another user is refused; root's and the store owner's are not",
    .enabled(if: geteuid() == 0, "only root can give files away"))
  func owner() throws {
    let world = try TestWorld(.rollback)
    let backup = try #require(try world.migrate(files: world.plain).backup)
    let folder = try world.backups().directory
    #expect(chown(folder.string, 20_002, 20_002) == 0)
    let error = refusal { try world.restore(backup, job: "b2") }
    #expect(error?.code == .backupFolderUnsafe && error?.message.contains("20002") == true)
    #expect(try world.content().version == "two")
    // Whose store it is may keep backups of it.
    #expect(chown(world.location.database.string, 20_002, 20_002) == 0)
    try world.restore(backup, job: "c3")
    #expect(try world.content().version == "one")
  }

  @Test("A pin in such a folder is not believed either")
  func pinOfAStranger() throws {
    let world = try TestWorld(.rollback)
    let backup = try #require(try world.migrate(files: world.plain).backup)
    try world.restore(backup, job: "b2")
    #expect(chmod(try world.backups().directory.string, 0o777) == 0)
    #expect(refusal { _ = try world.pins().read() }?.code == .backupFolderUnsafe)
  }

  @Test("The backup of another store is refused, and the refusal says whose it is")
  func otherStore() throws {
    func identify(_ path: FilePath, as uuid: String) throws {
      try Connection.ofApp(path).execute(
        """
        CREATE TABLE Z_METADATA(Z_VERSION INTEGER PRIMARY KEY, Z_UUID TEXT, Z_PLIST BLOB);
        INSERT INTO Z_METADATA VALUES(1, '\(uuid)', NULL);
        """)
    }
    let world = try TestWorld(.rollback)
    try identify(world.location.database, as: "MINE")
    let backup = try #require(try world.migrate(files: world.plain).backup)
    try identify(world.location.database, as: "MINE")
    try world.restore(backup, job: "b2")
    let other = world.root.appending("other.sqlite")
    try world.plain.copyFile(from: backup, to: other)
    try Connection.ofApp(other).execute("UPDATE Z_METADATA SET Z_UUID = 'THEIRS'")
    let before = try world.everything()
    let error = refusal { try world.restore(other, job: "c3") }
    #expect(error?.code == .otherStore)
    #expect(error?.message.contains("THEIRS") == true && error?.message.contains("MINE") == true)
    #expect(error?.hint?.contains("--anyway") == true)
    #expect(try world.everything() == before)
    let restored = try world.restore(other, job: "d4", options: RestoreOptions(force: true))
    #expect(restored.pin?.storeUUID == "THEIRS")
  }

  @Test(
    "A backup of another version than its label says is refused, or goes by what it is",
    arguments: [true, false], ["two", "three"])
  func otherVersion(_ isThere: Bool, _ digest: String) throws {
    let world = try TestWorld(.rollback)
    let backup = try #require(try world.migrate(files: world.plain).backup)
    try Connection.ofApp(backup).execute("UPDATE version SET digest = '\(digest)'")
    if !isThere { try world.plain.unlink(world.location.database) }
    let before = try world.everything()
    let error = refusal { try world.restore(backup, job: "b2") }
    #expect(error?.code == .otherVersion && error?.code.exit == .dataError)
    #expect(error?.place.store == world.location.database && error?.place.file == backup)
    #expect(error?.message.contains("is labeled One, but the file has a different version") == true)
    // The label names the version that replaced its own.
    #expect(error?.message.hasSuffix(digest == "two" ? "version, Two" : "version") == true)
    #expect(error?.hint?.contains("--anyway") == true)
    #expect(try world.everything() == before)
    #expect(try world.pins().read() == nil)
    let restored = try world.restore(backup, job: "c3", options: RestoreOptions(force: true))
    let name = digest == "two" ? "Two" : "a version that its label does not name"
    #expect(restored.replaced.version == StoreVersionMark(name: name, digest: digest))
    #expect(restored.pin?.restored.name == name)
    #expect(try world.content().version == digest)
  }

  @Test(
    "The command in a hint is one command, whatever the name of the store is",
    .enabled(if: access("/bin/bash", X_OK) == 0, "bash is not there"),
    arguments: ["it's; touch PWNED #.sqlite", "a b\n$(touch PWNED)'.sqlite"])
  func hostileName(_ name: String) throws {
    let world = try TestWorld(.rollback, name: name)
    let folder = try world.backups().directory
    try world.plain.makeDirectory(folder, mode: 0o700)
    #expect(chmod(folder.string, 0o777) == 0)
    let error = refusal { try world.migrate(files: world.plain) }
    #expect(error?.code == .backupFolderUnsafe)
    let hint = try #require(error?.hint)
    #expect(hint.utf8.allSatisfy { $0 >= 0x20 })
    let start = try #require(hint.ranges(of: "chmod").first?.lowerBound)
    try run("/bin/bash", "-c", String(hint[start...]))
    #expect(try world.plain.status(folder)?.mode == 0o755)
    #expect(access("PWNED", F_OK) != 0)
  }

  @Test("External files that differ are named, and nothing is written over", arguments: [true, false])
  func externalFiles(_ isThere: Bool) throws {
    let world = try TestWorld(.wal, externalFiles: ["A0B1", "C2D3"])
    let backup = try #require(try world.migrate(files: world.plain).backup)
    let file = world.location.externalDataDirectory.appending("A0B1")
    try world.plain.unlink(file)
    // As long as the backup's.
    try world.plain.createFile(file, Array("content of B0A1".utf8), mode: 0o644)
    if !isThere { try world.plain.unlink(world.location.database) }
    let before = try world.everything()
    let error = refusal { try world.restore(backup, job: "b2") }
    #expect(error?.code == .externalDataDiffers && error?.code.exit == .dataError)
    #expect(error?.reasons.map(\.place.file) == [file])
    #expect(error?.message.contains("1 external file ") == true)
    #expect(try world.everything() == before)
    #expect(try world.pins().read() == nil)

    let restored = try world.restore(backup, job: "c3", options: RestoreOptions(force: true))
    #expect(restored.differingFiles == ["A0B1"])
    #expect(try world.plain.read(file, limit: 100) == Array("content of B0A1".utf8))
    // As the refusal says: moved away, the store is replaced by the backup's.
    try world.plain.rename(file, to: world.root.appending("moved away"))
    #expect(try world.restore(backup, job: "d4").differingFiles.isEmpty)
    #expect(try world.plain.read(file, limit: 100) == Array("content of A0B1".utf8))
  }

  @Test("Files are compared to their last byte, whatever their size")
  func comparing() throws {
    let world = try TestWorld(.rollback)
    let files = world.plain
    let (one, two) = (world.root.appending("one"), world.root.appending("two"))
    var bytes = [UInt8](repeating: 7, count: 600_001)
    try files.createFile(one, bytes, mode: 0o600)
    try files.createFile(two, bytes, mode: 0o600)
    #expect(try files.hasSameContent(one, two) && files.hasSameContent(one, one))
    bytes[600_000] = 8
    try files.unlink(two)
    try files.createFile(two, bytes, mode: 0o600)
    #expect(try !files.hasSameContent(one, two))
    #expect(try !files.hasSameContent(one, world.root.appending("none")))
  }

  @Test("Whoever makes or removes backups owns their folder for so long")
  func lock() throws {
    let world = try TestWorld(.rollback)
    try world.migrate(files: world.plain, job: "a1")
    let backups = try world.backups()
    let lock = try backups.lock()
    #expect(refusal { _ = try backups.remove(patience: .zero) { _ in [] } }?.code == .lockedByOther)
    lock.release()
    #expect(try backups.remove(patience: .zero) { _ in [] }.isEmpty)
    // A folder that is made anew under the name has a lock of its own.
    let again = try backups.lock(making: backups.directory)
    for generation in try backups.generations() { try backups.remove(generation.directory) }
    #expect(try world.plain.status(backups.directory) == nil)
    _ = try backups.lock(making: backups.directory, patience: .zero)
    again.release()
  }
}
