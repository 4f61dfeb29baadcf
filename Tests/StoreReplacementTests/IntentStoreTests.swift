import Diagnostics
import DurableFiles
import PersistentStore
import StoreReplacement
import SystemPackage
import Testing

@Suite("Intent records")
struct IntentStoreTests {
  private func intent(_ world: TestWorld, job: String = "ab12") throws -> ReplacementIntent {
    ReplacementIntent(
      location: world.location, job: job, planFingerprint: "plan",
      source: try #require(try SourceFingerprint(of: world.location, files: world.plain)),
      bootIdentifier: try world.plain.bootIdentifier(),
      staged: StagingArea(location: world.location, job: job, files: world.plain).path(hop: nil),
      journalMode: .wal, from: StoreVersionMark(name: "One", digest: "one"),
      to: StoreVersionMark(name: "Two", digest: "two"), storeUUID: "U", startedAt: 5)
  }

  private func record(_ world: TestWorld) throws -> FilePath {
    let directory = world.state.appending("intents")
    return directory.appending(try #require(try world.plain.names(in: directory).first))
  }

  @Test("Written, read, listed and removed, whatever the store is called")
  func roundTrip() throws {
    for name in ["Library.sqlite", "Ünï %41 \n\"quoted\".sqlite"] {
      let world = try TestWorld(.wal, name: name)
      let intents = try world.intents(world.plain)
      let intent = try intent(world)
      try intents.write(intent)
      guard case .record(let found) = try intents.read(world.location) else {
        Issue.record("the record was not found")
        return
      }
      #expect(found == intent)
      #expect(found.store.path == world.location.database)
      #expect(try intents.all().count == 1)
      try intents.remove(world.location)
      try intents.remove(world.location)
      if case .none = try intents.read(world.location) {} else { Issue.record("the record is still there") }
    }
  }

  @Test("A record that another job removes at any moment is no record", arguments: ["names", "status"])
  func removedMeanwhile(_ call: String) throws {
    let world = try TestWorld(.rollback)
    try world.intents(world.plain).write(try intent(world))
    let record = try record(world)
    let directory = record.removingLastComponent()
    let files = HookedFileSystem(after: { made, path in
      if made == call, path == record || path == directory { try LinuxFileSystem().unlinkIfPresent(record) }
    })
    #expect(try world.intents(files).all().isEmpty)
    try world.intents(world.plain).write(try intent(world))
    if case .none = try world.intents(files).read(world.location) {
    } else {
      #expect(call == "names", "the record is still there")
    }
  }

  @Test("Garbage, huge files and foreign records are answers, and recovery cleans up after them")
  func garbage() throws {
    let world = try TestWorld(.wal)
    let intents = try world.intents(world.plain)
    try intents.write(try intent(world))
    let path = try record(world)
    let good = try world.plain.read(path, limit: 1 << 20)
    var samples: [[UInt8]] = [[], Array("null".utf8), Array(repeating: 0x5b, count: 100_000), [0xff, 0xfe, 0]]
    for cut in stride(from: 1, to: good.count - 2, by: 37) { samples.append(Array(good.prefix(cut))) }
    for sample in samples {
      try world.plain.writeDurably(sample, to: path)
      if case .unreadable(let error) = try intents.read(world.location) {
        #expect(error.code == .recordUnreadable)
      } else {
        Issue.record("\(sample.count) bytes of garbage were taken for a record")
      }
    }
    #expect(try world.recover().decision == .startAgain([.removeIntent]))
    #expect(try intents.all().isEmpty)
  }

  @Test("A record of a newer hopd is left alone, with everything beside the store")
  func newer() throws {
    let world = try TestWorld(.wal)
    let intents = try world.intents(world.plain)
    var later = try intent(world)
    later.format = 99
    try intents.write(later)
    _ = try StagingArea(location: world.location, job: "ab12", files: world.plain).create(hop: 0)
    let names = world.names
    let outcome = try world.recover()
    #expect(outcome.decision == .quarantine(.newerIntent))
    #expect(outcome.error?.code == .recordNewer)
    #expect(world.names == names)
    #expect(try intents.all().count == 1)
  }

  @Test("What an unfinished `create` leaves is no lost store")
  func neverThere() throws {
    let world = try TestWorld(.wal)
    let location = CanonicalStoreLocation(unresolved: world.stores.appending("a b.sqlite"), files: world.plain)
    let staged = try StagingArea(location: location, job: "ab12", files: world.plain).create(hop: nil)
    let runner = RecoveryRunner(
      files: world.plain, intents: try world.intents(world.plain), lockDirectory: world.locks,
      identify: TestWorld.identify)
    let outcome = try runner.recover(location)
    #expect(outcome.decision == .quarantine(.storeMissing))
    let error = try #require(outcome.error)
    #expect(error.message.contains("--output") && error.hint?.contains("rm '\(staged.string)'*") == true, "\(error)")
    #expect(try world.plain.status(staged) != nil, "nothing is removed: it may be all that is left")
  }

  @Test("Staged work goes on only for the same plan, boot and source")
  func resume() throws {
    let world = try TestWorld(.hotLog)
    let intents = try world.intents(world.plain)
    let area = StagingArea(location: world.location, job: "ab12", files: world.plain)
    func start(_ change: (inout ReplacementIntent) -> Void) throws -> RecoveryDecision {
      var intent = try intent(world)
      change(&intent)
      try intents.write(intent)
      _ = try area.create(hop: 0)
      return try world.recover(plan: "plan").decision
    }
    #expect(try start { _ in } == .resume([]))
    #expect(world.names.contains(".Library.sqlite.hop-ab12-0.tmp"))
    #expect(try world.recover(plan: "plan").decision == .resume([]), "looking does not change the source")
    #expect(try world.recover(plan: nil).decision == .resume([]), "before the plan is known nothing is thrown away")
    let again: RecoveryDecision = .startAgain([.dropStaged, .removeIntent])
    #expect(try world.recover(plan: "another").decision == again)
    #expect(!world.names.contains(".Library.sqlite.hop-ab12-0.tmp"))
    #expect(try start { $0.bootIdentifier = "former" } == again)
    #expect(try start { $0.stage = .replacing } == again)
    #expect(
      try start { $0.source = SourceFingerprint(database: $0.source.database, log: nil) } == again)
    #expect(try world.content().rows == TestWorld.rows)
  }
}
