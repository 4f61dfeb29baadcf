// Errors between the steps of a replacement, and of the steps themselves: the store is the old one and hopd leaves no
// file behind, or the new one cannot be confirmed and recovery reports what it is.

import Diagnostics
import DurableFiles
import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import SimulatedDisk
import Synchronization
import SystemPackage
import Testing

@testable import StoreReplacement
@testable import StoreVerification

@Suite("Errors between the steps")
struct StepErrorTests {
  struct Foreign: Error {}
  private static let staged = ".Library.sqlite.hop-ab12.tmp"

  private func staged(_ world: TestWorld) -> FilePath { world.stores.appending(Self.staged) }

  private func replace(_ path: FilePath) throws {
    let plain = LinuxFileSystem()
    let stranger = path.removingLastComponent().appending("stranger")
    try plain.createFile(stranger, Array("not ours".utf8), mode: 0o600)
    try plain.rename(stranger, to: path)
  }

  /// The old store, as if nothing had been.
  private func checkUntouched(_ world: TestWorld, _ names: [String] = ["Library.sqlite"]) throws {
    let found = try world.content()
    #expect(found.version == "one" && found.rows == TestWorld.rows)
    #expect(world.names == names)
    #expect(try world.recover().decision == .nothingToDo)
  }

  // MARK: The staged store

  @Test("A staged store that goes, or is another one, before it takes its place", arguments: ReplacementMode.allCases)
  func stagedGone(_ mode: ReplacementMode) throws {
    let world = try TestWorld(.wal)
    let gone = code {
      try world.migrate(
        files: LinuxFileSystem(), mode: mode, meanwhile: { _ in try world.plain.unlink(self.staged(world)) })
    }
    #expect(gone != nil && gone != .replacementUnconfirmed)
    try checkUntouched(world)
    let replaced = code {
      try world.migrate(
        files: LinuxFileSystem(), job: "ab12", mode: mode,
        observer: { if $0 == .relocked { try self.replace(self.staged(world)) } },
        inPlaceObserver: { if $0 == .backedUp { try self.replace(self.staged(world)) } })
    }
    #expect(replaced == .storeChanged)
    try checkUntouched(world)
  }

  @Test("A staged store that goes while it is sealed")
  func goneWhenSealed() throws {
    let world = try TestWorld(.wal)
    let path = staged(world)
    let files = HookedFileSystem(after: { call, file in
      if call == "sync", file == path { try LinuxFileSystem().unlink(path) }
    })
    #expect(code { try world.migrate(files: files) } == .notFound)
    try checkUntouched(world)
  }

  @Test("A new store that is another version, or damaged, is not confirmed; the old one is kept and named")
  func unreadable() throws {
    for mode in ReplacementMode.allCases {
      for isDamaged in [false, true] {
        let world = try TestWorld(.rollback)
        let found = code {
          try world.migrate(
            files: LinuxFileSystem(), mode: mode,
            meanwhile: { _ in
              if isDamaged { return try Ballast.addDamaged(to: self.staged(world)) }
              try Connection.ofApp(self.staged(world)).execute(
                "UPDATE version SET digest = 'three'")
            })
        }
        #expect(found == .replacementUnconfirmed, "\(mode)")
        let outcome = try world.recover()
        #expect(outcome.decision == .quarantine(isDamaged ? .storeDamaged : .unknownVersion), "\(mode)")
        #expect(outcome.error?.hint?.contains("restore the newest backup") == true)
        let backup = try #require(outcome.backups.first)
        let old = try world.content(of: backup)
        #expect(old.version == "one" && old.rows == TestWorld.rows)
      }
    }
  }

  @Test("A store with a damaged page is not copied to a backup, and stays as it is")
  func damagedSource() throws {
    let world = try TestWorld(.rollback)
    try Ballast.addDamaged(to: world.location.database)
    let before = try world.everything()
    #expect(code { try world.migrate(files: LinuxFileSystem(), mode: .inPlace) } == .storeDamaged)
    #expect(try world.everything() == before)
    #expect(world.names == ["Library.sqlite"])
  }

  // MARK: Ways back

  @Test(
    "In place: an error that is none of ours is told as one, with what could not be taken back",
    arguments: [InPlaceStep.copied, .compared, .writing])
  func foreignError(_ step: InPlaceStep) throws {
    let world = try TestWorld(.hotLog)
    let path = staged(world)
    let files = HookedFileSystem(before: { call, file in
      if call == "unlink", file == path { throw HopdError(errno: EIO, "remove", at: file) }
    })
    do {
      try world.migrate(files: files, mode: .inPlace, inPlaceObserver: { if $0 == step { throw Foreign() } })
      Issue.record("replaced")
    } catch let error as HopdError {
      #expect(error.code == .inputOutput && error.cause is Foreign)
      #expect(error.reasons.contains { $0.message.contains("staged store") })
    }
    #expect(try world.content().version == "one")
    #expect(try world.recover().decision == .startAgain([.dropStaged, .removeIntent]))
    #expect(world.names == ["Library.sqlite"])
    // Where everything can be undone, the error is thrown unchanged.
    let second = try TestWorld(.rollback)
    #expect(throws: Foreign.self) {
      try second.migrate(
        files: LinuxFileSystem(), mode: .inPlace, inPlaceObserver: { if $0 == step { throw Foreign() } })
    }
    try checkUntouched(second)
  }

  @Test("Attributes that cannot be given: refused with the other way, before the store is touched")
  func attributes() throws {
    let world = try TestWorld(.wal)
    let path = staged(world)
    let files = HookedFileSystem(before: { call, file in
      if call == "set attributes", file == path { throw HopdError(errno: EPERM, "set the owner", at: file) }
    })
    do {
      try world.migrate(files: files)
      Issue.record("replaced by a file of another owner")
    } catch let error as HopdError {
      #expect(error.code == .cannotReplace && error.hint?.contains("--replace in-place") == true)
    }
    try checkUntouched(world)
  }

  @Test("The file of what was set aside must be like the store's, unless it need not be")
  func quarantineAttributes() throws {
    let world = try TestWorld(.rollback)
    let files = HookedFileSystem(before: { call, file in
      if call == "set attributes" { throw HopdError(errno: EPERM, "set the owner", at: file) }
    })
    let quarantine = QuarantineFile(
      area: StagingArea(location: world.location, job: "ab12", files: files), files: files)
    try quarantine.prepare()
    #expect(code { _ = try quarantine.publish(attributesOf: world.location.database) } == .noPermission)
    #expect(try world.plain.status(quarantine.published) == nil)
    #expect(
      try quarantine.publish(attributesOf: world.location.database, mayDiffer: true) == quarantine.published)
    #expect(try world.plain.status(quarantine.published)?.kind == .regular)
  }

  @Test("An answer of SQLite that says no without an error is an error")
  func answers() throws {
    // A database in memory has no log, and SQLite shows that by its result alone.
    let memory = try Connection(path: "/memory", access: .memory)
    for mode in [JournalMode.wal, .delete] {
      do {
        try memory.setJournalMode(mode, orReport: "it did not", at: Place(file: "/srv/a"))
        Issue.record("a database in memory took the mode \(mode)")
      } catch let error as HopdError {
        #expect(error.code == .inputOutput && error.message == "it did not" && error.place.file == "/srv/a")
      }
    }
    // A log that another connection still reads is not folded in; again only the result shows it.
    let world = try TestWorld(.wal)
    let writer = try Connection.ofApp(world.location.database)
    let reader = try Connection.ofApp(world.location.database)
    try reader.execute("BEGIN; SELECT count(*) FROM book")
    try writer.execute("DELETE FROM book WHERE id = 1")
    #expect(code { try writer.foldWriteAheadLogIn(at: Place(store: world.location.database)) } == .inputOutput)
    try reader.execute("COMMIT")
    try writer.foldWriteAheadLogIn(at: Place(store: world.location.database))
    #expect(try world.plain.status(world.location.writeAheadLog)?.size == 0)
  }

  // MARK: Before the work

  @Test("Whether a rename is refused can be told of a store that is not opened")
  func refusalOfRename() throws {
    let world = try TestWorld(.rollback)
    let alias = world.root.appending("alias")
    #expect(symlink(world.stores.string, alias.string) == 0)
    let location = try CanonicalStoreLocation(resolving: alias.appending("Library.sqlite"))
    #expect(try ReplacementMode.refusalOfRename(location) == nil)
    #expect(try ReplacementMode.refusalOfRename(CanonicalStoreLocation(resolving: alias.appending("none"))) == nil)
    #expect(code { _ = try CanonicalStoreLocation(resolving: "/") } == .notFound)
    try world.plain.link(world.location.database, as: world.root.appending("second"))
    let refusal = try #require(try ReplacementMode.refusalOfRename(location))
    #expect(refusal.code == .cannotReplace && refusal.hint?.contains("--replace in-place") == true)
    #expect(refusal.reasons.map(\.message).contains { $0.contains("2 names") })
    // And of one that is held: the file itself is written to in the other way.
    let store = try LockedStore(location: world.location, lockDirectory: world.locks)
    defer { store.release() }
    #expect(code { try store.requireReplaceable(by: .rename) } == .cannotReplace)
    try store.requireReplaceable(by: .inPlace)
    try world.plain.unlink(world.location.database)
    for mode in ReplacementMode.allCases { #expect(code { try store.requireReplaceable(by: mode) } == .notFound) }
  }

  @Test("A directory that goes while its store is being held")
  func directoryGone() throws {
    let world = try TestWorld(.rollback)
    let (stores, away) = (world.stores, world.home.appending("away"))
    let last = world.location.rollbackJournal
    let files = HookedFileSystem(after: { call, path in
      // The last look before the lock.
      if call == "status", path == last { try LinuxFileSystem().rename(stores, to: away) }
    })
    #expect(
      code { _ = try LockedStore(location: world.location, lockDirectory: world.locks, files: files) } == .notFound)
    #expect(try world.plain.names(in: world.locks).isEmpty)
  }

  @Test("A large store: life is shown while it is copied, checked, written and read back")
  func large() throws {
    let world = try TestWorld(.rollback)
    try Ballast.add(to: world.location.database, rows: Ballast.many)
    let signs = Mutex(0)
    var counts: [InPlaceStep: Int] = [:]
    try world.migrate(
      files: LinuxFileSystem(), mode: .inPlace,
      meanwhile: { _ in try Ballast.add(to: self.staged(world), rows: Ballast.many) },
      inPlaceObserver: { counts[$0] = signs.withLock { $0 } }, keepAlive: { signs.withLock { $0 += 1 } })
    let pages = try #require(try world.plain.status(world.location.database)).size / 4096
    #expect(pages > 1000)
    let (copied, compared) = (counts[.copied] ?? 0, counts[.compared] ?? 0)
    let (committed, confirmed) = (counts[.committed] ?? 0, counts[.confirmed] ?? 0)
    #expect(copied >= 2, "once for each thousand pages, and while the copy is checked")
    #expect(committed - compared >= Int(pages) - 1, "once for each step of pages")
    #expect(confirmed > committed, "while it is read back")
    #expect(try world.content().version == "two")
  }
}
