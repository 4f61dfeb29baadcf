// The daemon's record of its work: if it is killed, the next daemon reads from the record which stores it had in hand.

import Diagnostics
import DurableFiles
import Glibc
import MigrationPlanning
import PersistentStore
import StoreReplacement
import Synchronization
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService
@testable import MigrationPipeline

@Suite struct WorkInHandTests {
  /// The record that a daemon killed at this moment would leave to the next one.
  private static func inHand(_ place: DaemonTests.Place) -> Set<UnfinishedWork> {
    let copy = place.root.appending("copy-\(UInt64.random(in: 0 ... .max))")
    let files = LinuxFileSystem()
    guard (try? files.makeDirectory(copy, mode: 0o700)) != nil,
      (try? files.copyFile(from: place.root.appending("state/at-work"), to: copy.appending("at-work"))) != nil,
      let notes = WorkNotes(stateDirectory: copy, boot: (try? files.bootIdentifier()) ?? "")
    else { return [] }
    return Set(notes.unfinished)
  }

  /// Work that reads the record while it runs.
  private struct ObservedWork: StoreWork {
    let place: DaemonTests.Place
    let seen = Mutexed()

    final class Mutexed: Sendable {
      let list = Mutex<[Set<UnfinishedWork>]>([])
    }

    var all: [Set<UnfinishedWork>] { seen.list.withLock { $0 } }

    private func note() {
      let found = WorkInHandTests.inHand(place)
      seen.list.withLock { $0.append(found) }
    }

    func inspect(
      _ request: MigrationRequest, stop: StopSignal, beat: @escaping () -> Void
    ) throws(MigrationFailure) -> InspectionResult {
      note()
      return .behind(DaemonTests.facts, target: "A 2")
    }

    func migrate(
      _ request: MigrationRequest, stop: StopSignal, observer: @escaping (MigrationEvent) -> Void
    ) throws(MigrationFailure) -> MigrationReport {
      note()
      return .sample(request.location.database)
    }

    func recover(
      stateDirectory: FilePath, backup: (FilePath) -> BackupRule,
      around: (FilePath, () -> RecoveredStore) -> RecoveredStore?
    ) throws(HopdError) -> [RecoveredStore] {
      let store = FilePath("/elsewhere/r.sqlite")
      _ = around(store) {
        note()
        return RecoveredStore(store: store, sentence: nil, failure: nil, continues: false)
      }
      return []
    }
  }

  @Test func recoveryLooksAndMigrationsAreRecordedWhileTheyLast() async throws {
    let place = try DaemonTests.Place()
    try place.write("stores/a.sqlite", "x")
    let work = ObservedWork(place: place)
    try await DaemonTests().running(place, try place.coordinator(work)) {
      try await eventually("migrated") { !place.log.all(.storeMigrated).isEmpty }
      try await eventually("nothing is in hand") { Self.inHand(place).isEmpty }
    }
    let store = FoundStore.key(of: FilePath(place.store("a.sqlite")))
    #expect(
      work.all == [
        [UnfinishedWork(store: "/elsewhere/r.sqlite", step: .migrate)], [UnfinishedWork(store: store, step: .inspect)],
        [UnfinishedWork(store: store, step: .migrate)],
      ])
  }

  /// The service manager kills a daemon that takes too long to stop: no store is to blame for that.
  @Test func aDaemonThatIsStoppingHasNothingInHand() async throws {
    let place = try DaemonTests.Place()
    try place.write("stores/a.sqlite", "x")
    let mayEnd = Mutex(false)
    let work = FakeWork(
      onInspect: { _ in .success(.behind(DaemonTests.facts, target: "A 2")) },
      onMigrate: { _, _, _ in
        for _ in 0..<5000 where !mayEnd.withLock({ $0 }) { usleep(2000) }
        return .failure(MigrationFailure(stage: .migrate, error: HopdError(.interrupted, "stopped on request")))
      })
    let coordinator = try place.coordinator(work)
    try await DaemonTests().running(place, coordinator) {
      try await eventually("in hand") { Self.inHand(place).map(\.step) == [.migrate] }
      coordinator.stop()
      try await eventually("stopping") { place.manager.messages.contains { $0.hasPrefix("STOPPING=1") } }
      #expect(Self.inHand(place).isEmpty)
      mayEnd.withLock { $0 = true }
    }
  }
}
