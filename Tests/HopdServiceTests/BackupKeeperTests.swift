// The daemon and backups: a restored store is held back and reported once, its release is noticed, and the removal of
// old backups is reported.

import Diagnostics
import DurableFiles
import FoundationEssentials
import Glibc
import HopdConfiguration
import Logging
import MigrationPipeline
import PersistentStore
import Synchronization
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService
@testable import StoreReplacement

@Suite struct BackupKeeperTests {
  private static let one = StoreVersionMark(name: "A", digest: "one")
  private static let two = StoreVersionMark(name: "A 2", digest: "two")

  /// A backup as a replacement leaves it.
  private func generation(
    _ place: DaemonTests.Place, _ store: String, job: String, age: Int64, number: Int64, by origin: BackupClass
  ) throws -> FilePath {
    let files = LinuxFileSystem()
    let folder = FilePath(place.store(".\(store).hopd-backups"))
    try files.ensureDirectory(folder)
    let created = Int64(time(nil)) - age
    let generation = folder.appending("\(BackupTime.text(created))-\(job)")
    try files.makeDirectory(generation, mode: 0o700)
    try files.createFile(generation.appending(store), [1, 2, 3], mode: 0o600)
    let record = BackupRecord(
      store: PathText(FilePath(place.store(store))), job: job, from: Self.one, to: Self.two, createdAt: created,
      storeUUID: "U", journalMode: .delete, number: number, madeBy: origin)
    try files.createFile(generation.appending("backup.json"), Array(JSONEncoder().encode(record)), mode: 0o600)
    return generation
  }

  /// Sweeps the place's watch once.
  private func sweep(_ place: DaemonTests.Place, _ keeper: BackupKeeper) async throws {
    let setup = try DaemonSetup(ConfigurationSource.file(place.configuration).load())
    let watch = try #require(setup.configuration.watches.first)
    let rule = try #require(setup.backupRule(ofWatch: "w"))
    let root = try #require(setup.root(ofWatch: "w"))
    keeper.scanned(
      BackupKeeper.Work(
        watch: watch, root: root, rule: rule, logger: place.log.logger, stop: StopSignal(), released: { _ in }))
    try await eventually("the sweep has ended") { keeper.isIdle }
  }

  @Test func whatIsTooOldOrTooManyGoesAndIsReported() async throws {
    let place = try DaemonTests.Place(watch: "[watch.backup]\nkeep = 1\nkeep_for = \"1h\"")
    try place.write("stores/a.sqlite", "a store")
    let old = try generation(place, "a.sqlite", job: "a1", age: 7200, number: 1, by: .restore)
    let second = try generation(place, "a.sqlite", job: "a2", age: 60, number: 2, by: .migration)
    let newest = try generation(place, "a.sqlite", job: "a3", age: 30, number: 3, by: .migration)
    let orphan = try generation(place, "gone.sqlite", job: "a4", age: 7200, number: 1, by: .migration)
    let young = try generation(place, "gone too.sqlite", job: "a5", age: 60, number: 1, by: .migration)
    try await sweep(place, BackupKeeper(doubtAtStart: .zero))
    let reported = Dictionary(
      place.log.all(.backupExpired).map { ($0[.backup] ?? "", $0[.result] ?? "") }, uniquingKeysWith: { $1 })
    #expect(reported == [old.string: "keep_for", second.string: "keep", orphan.string: "keep_for"])
    for folder in [old, second, orphan] { #expect(access(folder.string, F_OK) != 0) }
    for folder in [newest, young] { #expect(access(folder.string, F_OK) == 0) }
  }

  @Test func withoutAnAgeNothingIsTooOld() async throws {
    let place = try DaemonTests.Place()
    try place.write("stores/a.sqlite", "a store")
    let old = try generation(place, "a.sqlite", job: "a1", age: 90_000_000, number: 1, by: .restore)
    let orphan = try generation(place, "gone.sqlite", job: "a2", age: 90_000_000, number: 1, by: .migration)
    // The removal of the surplus generation shows that the sweep has run.
    let first = try generation(place, "z.sqlite", job: "a3", age: 60, number: 1, by: .migration)
    _ = try generation(place, "z.sqlite", job: "a4", age: 30, number: 2, by: .migration)
    try place.write("stores/z.sqlite", "a store")
    try await DaemonTests().running(place, try place.coordinator(FakeWork())) {
      try await eventually("swept") { access(first.string, F_OK) != 0 }
    }
    for folder in [old, orphan] { #expect(access(folder.string, F_OK) == 0) }
  }

  @Test func theSweepComesWhenSomethingCanBeTooOld() {
    let rule = BackupRule(keepFor: .seconds(30 * 86_400))
    // Nothing to expire: once a day; soon: batches of an hour; a short age: as often as that age.
    #expect(BackupKeeper.pause(rule: BackupRule(), next: nil, now: 0) == .seconds(86_400))
    #expect(BackupKeeper.pause(rule: rule, next: 10, now: 0) == .seconds(3600))
    #expect(BackupKeeper.pause(rule: rule, next: 50_000, now: 0) == .seconds(50_000))
    #expect(BackupKeeper.pause(rule: rule, next: nil, now: 0) == .seconds(86_400))
    #expect(BackupKeeper.pause(rule: BackupRule(keepFor: .seconds(2)), next: 1, now: 0) == .seconds(1))
  }

  @Test func aClockThatJumpsAheadMakesNothingOld() async throws {
    let place = try DaemonTests.Place(watch: "[watch.backup]\nkeep_for = \"1h\"")
    let old = try generation(place, "gone.sqlite", job: "a1", age: 60, number: 1, by: .migration)
    let jump = Mutex<Int64>(0)
    let keeper = BackupKeeper(doubtAtStart: .zero, wallClock: { Int64(time(nil)) + jump.withLock { $0 } })
    jump.withLock { $0 = 90_000_000 }
    try await sweep(place, keeper)
    #expect(place.log.entries.contains { $0.text.contains("the clock jumped ahead") })
    #expect(access(old.string, F_OK) == 0)
  }

  @Test func aClockThatIsAheadAtTheStartMakesNothingOld() async throws {
    let place = try DaemonTests.Place(watch: "[watch.backup]\nkeep_for = \"1h\"")
    let old = try generation(place, "gone.sqlite", job: "a1", age: 60, number: 1, by: .migration)
    let isAhead: @Sendable () -> Int64 = { Int64(time(nil)) + 90_000_000 }
    try await sweep(place, BackupKeeper(wallClock: isAhead))
    #expect(access(old.string, F_OK) == 0)
    // Once that time is over, the clock is believed.
    try await sweep(place, BackupKeeper(doubtAtStart: .zero, wallClock: isAhead))
    #expect(access(old.string, F_OK) != 0)
  }

  @Test func theDoubtAtTheStartEndsWithAShortAge() async throws {
    let place = try DaemonTests.Place(watch: "[watch.backup]\nkeep_for = \"1s\"")
    let old = try generation(place, "gone.sqlite", job: "a1", age: 60, number: 1, by: .migration)
    try await DaemonTests().running(place, try place.coordinator(FakeWork())) {
      try await eventually("swept") { place.log.all(.backupExpired).count == 1 }
    }
    #expect(access(old.string, F_OK) != 0)
  }

  @Test func aRestoredStoreIsHeldBackReportedOnceAndInspectedWhenItIsReleased() async throws {
    let place = try DaemonTests.Place()
    let location = try CanonicalStoreLocation(resolving: place.root.appending("stores/a.sqlite"))
    try place.write("stores/a.sqlite", "a store")
    let pins = PinStore(location: location, files: LinuxFileSystem())
    let pin = RestorePin(storeUUID: "U", restored: Self.one, replaced: [Self.two], restoredAt: 1_900_000_000, job: "b2")
    try pins.write(pin)
    var work = FakeWork()
    work.onInspect = { request in
      // As the pipeline's look does.
      let held = try? PinStore(location: location, files: LinuxFileSystem()).pin(
        against: Self.two, storeUUID: "U", digest: "one")
      if let held = held ?? nil {
        return .failure(MigrationFailure(stage: .identify, error: held.refusal(request.location.database)))
      }
      return .success(.current(nil))
    }
    try await DaemonTests().running(place, try place.coordinator(work)) {
      try await eventually("pinned") { !place.log.all(.storePinned).isEmpty }
      // The status counts it as what it is, and two rescans later nothing has changed.
      try await eventually("status") {
        place.manager.messages.contains { $0.contains("watching 1 store: 0 current, 1 pinned") }
      }
      try await Task.sleep(for: .milliseconds(2500))
      #expect(place.log.all(.storePinned).count == 1)
      #expect(try pins.remove())
      try await eventually("looked at again") { !place.log.all(.storeCurrent).isEmpty }
    }
    let entry = try #require(place.log.all(.storePinned).first)
    #expect(entry[.result] == "pinned" && entry[.error] == "pinned")
    #expect(entry.text.contains("replacing A 2") && entry[.hint]?.contains("hopctl resume") == true)
  }
}
