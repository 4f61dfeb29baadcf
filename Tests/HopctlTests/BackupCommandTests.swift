// Backups as an operator meets them: what migrate removes is said, what a restore put aside stays, a restored store is
// pinned, and backups are listed and removed by command.

import BlockingTests
import DurableFiles
import FoundationEssentials
import Glibc
import PersistentStore
import StoreReplacement
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"))
struct BackupCommandTests {
  private func backups(_ room: Room, _ path: String, _ more: String...) throws -> [JSON] {
    let outcome = try room.run(words: ["backups", path, "--json"] + more)
    #expect(outcome.status == 0, "\(outcome.errors)")
    return try outcome.json().stores?.list ?? []
  }

  @Test func restoreThenMigrateKeepsWhatWasWritten() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let models = ["--models", room.model]
    #expect(try room.run(words: ["migrate", store] + models).status == 0)
    try room.sql(store, "UPDATE ZANIMAL SET ZNAME = 'WRITTEN AFTER' WHERE Z_PK = 1")
    let restored = try room.run("restore", store, "--yes")
    try #require(restored.status == 0, "\(restored.errors)")
    #expect(restored.output.contains("pinned: restored to Zoo") && restored.output.contains("replacing Zoo 10"))
    #expect(restored.output.contains("hopctl resume \(store)"))

    // Looking says that it is pinned, and changes nothing.
    let before = try room.snapshot()
    for command in ["identify", "plan"] {
      #expect(try room.run(words: [command, store] + models).output.contains("pinned: restored to Zoo"), "\(command)")
      let pin = try room.run(words: [command, store, "--json"] + models).json().pin
      #expect(pin?.restored?.text == "Zoo" && pin?.replaced == .array([.string("Zoo 10")]), "\(command)")
      #expect(pin?.isInEffect == .boolean(true), "\(command)")
    }
    // The restore had replaced Zoo 10 and nothing else: another target is free only if the watch says so.
    let other = try room.run(words: ["identify", store, "--json", "--to", "Zoo 2"] + models).json().pin
    #expect(other?.isInEffect == .boolean(true))
    // A target that is the store's own version ends no pin, either.
    for (rule, target, holds) in [
      ("by-hand", "Zoo 2", true), ("new-version", "Zoo 2", false), ("by-hand", "Zoo", true),
    ] {
      let configuration = try room.watch(
        rule, "target = \"\(target)\"\n[watch.backup]\nrelease_pins = \"\(rule)\"")
      let pin = try room.run("identify", store, "--json", "--config", configuration).json().pin
      #expect(pin?.isInEffect == .boolean(holds), "\(rule) \(target)")
      let explained = try room.run("explain", store, "--config", configuration).output
      #expect(explained.contains("next: hopctl resume \(store)") == holds, "\(rule) \(target): \(explained)")
    }
    #expect(try room.snapshot() == before)

    let again = try room.run(words: ["migrate", store] + models)
    try #require(again.status == 0, "\(again.errors)")
    #expect(
      again.output.contains("deleted backup") && again.output.contains("unpinned: the store was restored"))
    let kept = try backups(room, store).flatMap { $0.backups?.list ?? [] }
    #expect(kept.compactMap { $0.createdBy?.text } == ["migration", "restore"])
    let newer = try #require(kept.last?.backup?.text)
    #expect(try room.sql(newer, "SELECT ZNAME FROM ZANIMAL WHERE Z_PK = 1") == "WRITTEN AFTER")
    #expect(try room.run(words: ["identify", store, "--json"] + models).json().pin == .null)
  }

  /// Whoever may write to the folder of backups could make a link to another user's store there.
  @Test func restoreFollowsNoLink() throws {
    let room = try Room()
    let (store, other) = (try room.store("a.sqlite"), try room.store("other.sqlite"))
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    #expect(try room.run("migrate", other, "--models", room.model).status == 0)
    let backup = try #require(try backups(room, other).first?.backups?.list.first?.backup?.text)
    let folder = FilePath(room.path("stores/.a.sqlite.hopd-backups"))
    let generation = FilePath(backup).removingLastComponent()
    #expect(symlink(backup, folder.appending("file").string) == 0)
    #expect(symlink(generation.string, folder.appending("folder").string) == 0)
    #expect(symlink(backup, room.path("stores/elsewhere")) == 0)
    let before = try room.snapshot()
    for link in [
      folder.appending("file").string, folder.appending("folder").string,
      folder.appending("folder").appending("other.sqlite").string, room.path("stores/elsewhere"),
    ] {
      let outcome = try room.run("restore", store, "--yes", "--anyway", "--backup", link)
      #expect(outcome.status != 0, "\(link)")
      #expect(try room.snapshot() == before, "\(link)")
    }
    let own = try #require(try backups(room, store).first?.backups?.list.first?.backup?.text)
    #expect(try room.run("restore", store, "--yes", "--backup", own).status == 0)
  }

  /// A migration keeps references to missing rows, so its backup is no remedy for them.
  @Test func verifyDoesNotSendForABackupThatHasTheSameFault() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try room.sql(store, "UPDATE ZANIMAL SET ZKEEPER = 999999 WHERE Z_PK = 1")
    let outcome = try room.run("verify", store, "--models", room.model)
    #expect(outcome.status == 65)
    #expect(outcome.errors.contains("repair these references") && !outcome.errors.contains("restore a backup"))
  }

  @Test func restoreChoosesItsBackupAfterRecovery() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    // As a crash in the middle of a replacement in place leaves it, after the copy: the newest backup holds what the
    // store holds.
    let files = LinuxFileSystem()
    let location = try CanonicalStoreLocation(resolving: FilePath(store))
    let backups = try BackupSet(location: location, rule: BackupRule(), files: files)
    let first = try #require(try backups.generations().first)
    var label = try #require(first.record)
    (label.job, label.number, label.from) = ("c3d4", 2, label.to)
    let folder = backups.directory.appending("20990101T000000Z-c3d4")
    try files.makeDirectory(folder, mode: 0o700)
    try files.copyFile(from: location.database, to: folder.appending("a.sqlite"))
    try files.createFile(folder.appending("backup.json"), Array(JSONEncoder().encode(label)), mode: 0o600)
    let staged = location.directory.appending(".a.sqlite.hop-c3d4.tmp")
    try files.createFile(staged, [1], mode: 0o600)
    var intent = ReplacementIntent(
      location: location, job: "c3d4", planFingerprint: "plan",
      source: try #require(try SourceFingerprint(of: location, files: files)), bootIdentifier: "", staged: staged,
      journalMode: .delete, from: label.to, to: StoreVersionMark(name: "Zoo 11", digest: "eleven"),
      storeUUID: label.storeUUID, startedAt: 0)
    (intent.mode, intent.stage, intent.backup) = (.inPlace, .replacing, PathText(folder.appending("a.sqlite")))
    intent.schemaVersion = Int64(try room.sql(store, "PRAGMA schema_version"))
    try IntentStore(stateDirectory: FilePath(room.path("state")), files: files).write(intent)

    let restored = try room.run("restore", store, "--yes")
    #expect(restored.status == 0 && restored.output.contains("restored \(store): Zoo,"), "\(restored)")
    #expect(restored.output.contains(first.directory.string))
    #expect(access(folder.string, F_OK) != 0)
  }

  @Test func migrateTellsWhatItRemovedAsJSON() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let first = try room.run("migrate", store, "--models", room.model, "--to", "Zoo 2", "--json").json()
    let folder = FilePath(try #require(first.backup?.text)).removingLastComponent().string
    let second = try room.run("migrate", store, "--models", room.model, "--json").json()
    #expect(first.prunedBackups == .array([]) && second.prunedBackups == .array([.string(folder)]))
    #expect(access(folder, F_OK) != 0)
    #expect(second.releasedPin == nil)
  }

  @Test func unpinningWithoutMigrating() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    #expect(try room.run("restore", store, "--yes", "--no-pin", "--json").json().pin == .null)
    // A plain restore never brings back what a restore has replaced, here Zoo 10.
    #expect(try room.run("restore", store, "--yes", "--json").json().pin?.restored?.text == "Zoo")
    let unpinned = try room.run("resume", store, "--json")
    #expect(unpinned.status == 0, "\(unpinned.errors)")
    #expect(try unpinned.json().unpinned == .boolean(true))
    #expect(try unpinned.json().pin?.restored?.text == "Zoo")
    // Only the running hopd can end a pause.
    #expect(try room.run("resume", store).status == 7)
    #expect(try room.run("identify", store, "--models", room.model, "--json").json().pin == .null)
  }

  @Test func pruneNeedsToBeToldWhat() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    #expect(try room.run("restore", store, "--yes").status == 0)
    let before = try backups(room, store)
    for words in [
      ["prune", store, "--yes"], ["prune", store, "--keep", "1"], ["prune", "--yes", "--keep", "1"],
      ["prune", store, "--dry-run", "--yes", "--keep", "1"], ["prune", store, "--yes", "--keep-for", "soon"],
      ["prune", store, "--yes", "--keep", "-1"],
    ] { #expect(try room.run(words: words).status == 64, "\(words)") }
    #expect(try backups(room, store) == before)

    let dry = try room.run("prune", store, "--dry-run", "--keep", "0", "--json")
    #expect(dry.status == 0)
    #expect(try dry.json().removed?.list.compactMap { $0.createdBy?.text } == ["migration"])
    #expect(try backups(room, store) == before)
    let done = try room.run("prune", room.path("stores"), "--yes", "--keep", "0", "--json")
    #expect(try done.json().removed == dry.json().removed)
    // What the restore put aside goes by its name alone.
    let rest = try #require(try backups(room, store).first?.backups?.list.first)
    #expect(rest.createdBy?.text == "restore" && rest.removal?.text == "by-hand")
    let folder = FilePath(try #require(rest.backup?.text)).removingLastComponent().string
    // The folder of its backups stands for the store.
    #expect(try backups(room, FilePath(folder).removingLastComponent().string) == backups(room, store))
    let named = try room.run("prune", folder, "--yes")
    #expect(named.status == 0 && named.output.contains("removed \(folder) (named"), "\(named.errors)")
    #expect(try room.run("prune", folder, "--yes").status != 0)
    #expect(try room.run("identify", store, "--models", room.model).status == 0)
  }

  @Test func backupsOfStoresThatAreGone() throws {
    let room = try Room()
    for name in ["a.sqlite", "b.sqlite", "c.sqlite"] {
      #expect(try room.run("migrate", try room.store(name), "--models", room.model).status == 0)
    }
    let (a, b) = (room.path("stores/a.sqlite"), room.path("stores/b.sqlite"))
    #expect(unlink(a) == 0)
    #expect(rename(b, room.path("stores/renamed.sqlite")) == 0)
    let stores = try backups(room, room.path("stores"))
    #expect(stores.compactMap { $0.store?.text } == [a, b, room.path("stores/c.sqlite")])
    #expect(stores.map { $0.present } == [.boolean(false), .boolean(false), .boolean(true)])
    #expect(stores.map { $0.backups?.list.first?.orphaned } == [.boolean(true), .boolean(true), .boolean(false)])
    let text = try room.run("backups", room.path("stores")).output
    #expect(text.contains("a.sqlite (deleted)") && text.contains("orphaned") && text.contains("3 backups of 3 stores"))
    // A number says nothing about stores that are gone, and a restore under the new name says where to look.
    #expect(
      try room.run("prune", room.path("stores"), "--dry-run", "--keep", "1", "--json").json().removed == .array([]))
    let lost = try room.run("restore", room.path("stores/renamed.sqlite"), "--yes")
    #expect(lost.status == 66 && lost.errors.contains("hopctl backups"))
    let renamed = try #require(stores[1].backups?.list.first?.backup?.text)
    #expect(try room.run("restore", room.path("stores/renamed.sqlite"), "--backup", renamed, "--yes").status == 0)
    let pruned = try room.run("prune", room.path("stores"), "--yes", "--orphans", "--json").json()
    #expect(pruned.removed?.list.compactMap { $0.reason?.text } == ["orphaned", "orphaned"])
    let left = try backups(room, room.path("stores"))
    #expect(left.compactMap { $0.store?.text } == [room.path("stores/c.sqlite"), room.path("stores/renamed.sqlite")])
    #expect(access(room.path("stores/.a.sqlite.hopd-backups"), F_OK) != 0)
  }

  @Test func backupsElsewhereAndTheRuleOfAWatch() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    try FileManager.default.createDirectory(atPath: room.path("vault"), withIntermediateDirectories: true)
    try room.file(
      "hopd.toml",
      """
      [[watch]]
      name = "w"
      directory = "\(room.path("stores"))"
      models = ["\(room.model)"]
      [watch.backup]
      directory = "\(room.path("vault"))"
      keep_for = "1w"
      """)
    #expect(try room.run("migrate", store, "--config", room.path("hopd.toml")).status == 0)
    #expect(try backups(room, room.path("stores")).isEmpty)
    let found = try backups(room, room.path("stores"), "--config", room.path("hopd.toml"))
    let backup = try #require(found.first?.backups?.list.first)
    #expect(
      backup.backup?.text?.hasPrefix(room.path("vault")) == true && backup.expiresAt?.text?.hasSuffix("Z") == true)
    #expect(try backups(room, store, "--backup-directory", room.path("vault")) == found.map { $0 } || found.count == 1)
    #expect(try room.run("restore", store, "--yes", "--backup-directory", room.path("vault")).status == 0)
    let folder = FilePath(try #require(backup.backup?.text)).removingLastComponent().string
    #expect(try room.run("prune", folder, "--yes").status == 0)
    #expect(access(folder, F_OK) != 0)
  }

  @Test func aFolderThatOthersMayWriteToIsNotBelieved() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    let folder = room.path("stores/.a.sqlite.hopd-backups")
    #expect(mkdir(folder, 0o700) == 0 && chmod(folder, 0o777) == 0)
    let refused = try room.run("migrate", store, "--models", room.model, "--json")
    #expect(refused.status == 77)
    #expect(try refused.json().error?.code?.text == "backup-folder-unsafe")
    #expect(refused.errors.contains("chmod go-w"))
    #expect(try room.run("identify", store, "--models", room.model, "--json").json().version?.text == "Zoo")
  }

  @Test func aBackupOfAnotherVersionThanItsLabelSaysIsRefused() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    #expect(try room.run("migrate", store, "--models", room.model).status == 0)
    let backup = try #require(try backups(room, store).first?.backups?.list.first?.backup?.text)
    try FileManager.default.removeItem(atPath: backup)
    try FileManager.default.copyItem(atPath: store, toPath: backup)
    try room.sql(backup, "PRAGMA journal_mode = DELETE")
    let refused = try room.run("restore", store, "--yes", "--json")
    #expect(refused.status == 65)
    #expect(try refused.json().error?.code?.text == "other-version")
    #expect(
      refused.errors.contains("is labeled Zoo, but the file has a different version, Zoo 10"), "\(refused.errors)")
    let restored = try room.run("restore", store, "--yes", "--anyway")
    #expect(restored.status == 0 && restored.output.contains("restored \(store): Zoo 10,"), "\(restored)")
    #expect(restored.output.contains("pinned: restored to Zoo 10 at"), "\(restored)")
  }

  @Test func theBackupOfAnotherStoreIsRefused() throws {
    let room = try Room()
    let store = try room.store("a.sqlite")
    // Made with another seed, so with another identifier.
    let other = room.path("stores/b.sqlite")
    #expect(
      try room.run("create", other, "--models", room.model, "--model-version", "Zoo", "--rows", "3", "--seed", "8")
        .status
        == 0)
    #expect(try room.run("migrate", other, "--models", room.model).status == 0)
    let backup = try #require(try backups(room, other).first?.backups?.list.first?.backup?.text)
    let refused = try room.run("restore", store, "--backup", backup, "--yes", "--json")
    #expect(refused.status == 65)
    #expect(try refused.json().error?.code?.text == "other-store")
    #expect(refused.errors.contains("b.sqlite") && refused.errors.contains("--anyway"))
    #expect(try room.run("restore", store, "--backup", backup, "--yes", "--anyway").status == 0)
  }

  @Test("A folder is not restored: its backups are listed")
  func aFolderIsNoStore() throws {
    let room = try Room()
    let told = try room.run("restore", room.path.string, "--yes")
    #expect(told.status == 65 && told.errors.contains("is a directory"), "\(told)")
    #expect(told.errors.contains("hopctl backups \(room.path)"), "\(told)")
  }
}
