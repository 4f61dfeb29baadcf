// A store that got another name after a crash, with what was staged for it under the old one.

import Diagnostics
import DurableFiles
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("A store that was renamed after a crash")
struct RenamedStoreTests {
  /// A store whose migration was killed, with its record and a staged store, and another job's staged store.
  private func interrupted() throws -> TestWorld {
    let world = try TestWorld(.rollback)
    let source = try #require(try SourceFingerprint(of: world.location, files: world.plain))
    let store = try LockedStore(location: world.location, lockDirectory: world.locks, files: world.plain)
    let area = StagingArea(location: store.location, job: "ab12", files: world.plain)
    try world.intents(world.plain).write(try world.intent(store, area, source: source))
    store.release()
    _ = try area.create(hop: 0)
    _ = try StagingArea(location: world.location, job: "cd34", files: world.plain).create(hop: 0)
    return world
  }

  private func recover(_ world: TestWorld, drops: Bool) throws -> RecoveryOutcome {
    var runner = RecoveryRunner(
      files: world.plain, intents: try world.intents(world.plain), lockDirectory: world.locks,
      identify: TestWorld.identify)
    runner.dropsStagedOfRenamed = drops
    return try runner.recover(world.location)
  }

  private let mine = ".Library.sqlite.hop-ab12-0.tmp"
  private let others = ".Library.sqlite.hop-cd34-0.tmp"

  @Test("Its staged store goes when it is asked for, and its own rows stay", arguments: [false, true])
  func renamed(_ hasSibling: Bool) throws {
    let world = try interrupted()
    let moved = world.stores.appending("moved.sqlite")
    let content = try world.plain.read(world.location.database, limit: 1 << 24)
    try world.plain.rename(world.location.database, to: moved)
    if hasSibling {
      // A sound store of another version has the old name.
      let other = try TestWorld(.rollback)
      try Connection.ofApp(other.location.database).execute("UPDATE version SET digest = 'nine'")
      try world.plain.createFile(
        world.location.database, try other.plain.read(other.location.database, limit: 1 << 24), mode: 0o600)
    }
    let asked = try recover(world, drops: false)
    #expect(asked.decision == .quarantine(hasSibling ? .unknownVersion : .storeMissing))
    #expect(asked.error?.message.contains(moved.printable) == true && asked.error?.hint?.contains("--yes") == true)
    #expect(Set(world.names).isSuperset(of: [mine, others]))
    let outcome = try recover(world, drops: true)
    #expect(outcome.decision == .startAgain([.dropStaged, .removeIntent]) && outcome.renamed == moved)
    // What no record names stays.
    #expect(!world.names.contains(mine) && world.names.contains(others))
    #expect(try world.intents(world.plain).all().isEmpty)
    #expect(try world.plain.read(moved, limit: 1 << 24) == content)
    #expect(try (world.plain.status(world.location.database) != nil) == hasSibling)
  }

  @Test("What may be the last of a store that is not in its folder stays")
  func gone() throws {
    let world = try interrupted()
    try world.plain.rename(world.location.database, to: world.home.appending("away.sqlite"))
    let names = world.names
    let outcome = try recover(world, drops: true)
    #expect(outcome.decision == .quarantine(.storeMissing) && outcome.renamed == nil)
    #expect(world.names == names)
    #expect(try world.intents(world.plain).all().count == 1)
  }
}
