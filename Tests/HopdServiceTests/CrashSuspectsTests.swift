// A daemon that is killed in the middle of a store, and the one after it. A killed daemon is one whose notes were begun
// and never ended.

import Diagnostics
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

@Suite struct CrashSuspectsTests {
  /// Simulates a daemon that is killed while it works on these stores.
  private func kill(_ place: DaemonTests.Place, _ stores: [String], _ step: JobStep = .migrate) throws {
    let notes = try #require(WorkNotes(stateDirectory: place.root.appending("state"), boot: try Self.boot()))
    // The records of an earlier one are counted, as the daemon does at its start.
    var suspects = CrashSuspects(stateDirectory: place.root.appending("state"))
    let setup = try DaemonSetup(ConfigurationSource.file(place.configuration).load())
    suspects.add(notes.unfinished) { _ in setup.modelsMark(ofWatch: "w") }
    for store in stores { _ = notes.begin(FoundStore.key(of: FilePath(place.store(store))), step) }
  }

  private static func boot() throws -> String {
    var buffer = [UInt8](repeating: 0, count: 64)
    let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY)
    defer { close(descriptor) }
    let count = read(descriptor, &buffer, buffer.count)
    return String(decoding: buffer.prefix(max(0, count)).filter { $0 > 0x20 && $0 < 0x7f }, as: UTF8.self)
  }

  private func unfinished(_ place: DaemonTests.Place, boot: String = "b") throws -> Set<UnfinishedWork> {
    Set(try #require(WorkNotes(stateDirectory: place.root.appending("state"), boot: boot)).unfinished)
  }

  @Test func whatIsInHandOutlivesTheProcessAndNothingElseDoes() throws {
    let place = try DaemonTests.Place()
    let state = place.root.appending("state")
    let long = FilePath("/" + String(repeating: "x/", count: 2000) + "a\u{1}ä.sqlite")
    do {
      let notes = try #require(WorkNotes(stateDirectory: state, boot: "b"))
      #expect(notes.unfinished.isEmpty)
      let slots = [notes.begin("/srv/a", .inspect), notes.begin("/srv/b", .migrate), notes.begin(long, .migrate)]
      notes.end(slots[0])
      _ = notes.begin("/srv/c", .inspect)
    }
    #expect(
      try unfinished(place) == [
        UnfinishedWork(store: "/srv/b", step: .migrate), UnfinishedWork(store: long, step: .migrate),
        UnfinishedWork(store: "/srv/c", step: .inspect),
      ])
    // They are read once.
    #expect(try unfinished(place).isEmpty)
    do { _ = try #require(WorkNotes(stateDirectory: state, boot: "b")).begin("/srv/a", .inspect) }
    #expect(try unfinished(place, boot: "another").isEmpty, "a machine that was started anew was not killed by a store")
    do {
      let notes = try #require(WorkNotes(stateDirectory: state, boot: "b"))
      _ = notes.begin("/srv/a", .inspect)
      notes.stop()
    }
    #expect(try unfinished(place).isEmpty, "a daemon that was asked to end was not killed by a store")
    try place.write("state/at-work", "garbage")
    #expect(try unfinished(place).isEmpty)
  }

  @Test func aStoreThatWasInHandComesBehindTheOthersAndAlone() async throws {
    let place = try DaemonTests.Place(jobs: 2)
    for name in ["a.sqlite", "b.sqlite", "c.sqlite", "d.sqlite"] { try place.write("stores/\(name)", name) }
    try kill(place, ["a.sqlite", "b.sqlite"])
    let order = Mutex<[String]>([])
    let atOnce = Mutex((now: 0, most: 0))
    let work = FakeWork(
      onInspect: { _ in .success(.behind(DaemonTests.facts, target: "A 2")) },
      onMigrate: { request, _, _ in
        order.withLock { $0.append(request.location.fileName) }
        let isSuspect = ["a.sqlite", "b.sqlite"].contains(request.location.fileName)
        if isSuspect { atOnce.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) } }
        usleep(200_000)
        if isSuspect { atOnce.withLock { $0.now -= 1 } }
        return .success(.sample(request.location.database))
      })
    try await DaemonTests().running(place, try place.coordinator(work)) {
      try await eventually("all") { place.log.all(.storeMigrated).count == 4 }
    }
    let names = order.withLock { $0 }
    #expect(Set(names.prefix(2)) == ["c.sqlite", "d.sqlite"], "\(names)")
    #expect(atOnce.withLock { $0.most } == 1, "which of them it is, only one at a time can tell")
    // They have come through: the next death is the first again.
    #expect(CrashSuspects(stateDirectory: place.root.appending("state")).isEmpty)
    #expect(try unfinished(place, boot: Self.boot()).isEmpty)
    #expect(place.log.entries.contains { $0[.store] == place.store("a.sqlite") && $0.text.contains("(1 of 3)") })
  }

  @Test func afterThreeDeathsTheStoreIsRefusedAndTheOthersAreServed() async throws {
    let place = try DaemonTests.Place()
    for name in ["a.sqlite", "b.sqlite"] { try place.write("stores/\(name)", "x") }
    for _ in 0..<3 { try kill(place, ["a.sqlite"], .inspect) }
    let inspections = Mutex<[String]>([])
    let work = FakeWork(onInspect: { request in
      inspections.withLock { $0.append(request.location.fileName) }
      return .success(.current(nil))
    })
    let coordinator = try place.coordinator(work)
    try await DaemonTests().running(place, coordinator) {
      try await eventually("refused") { !place.log.all(.storeRefused).isEmpty }
      try await eventually("the other") { inspections.withLock { $0 } == ["b.sqlite"] }
      let entry = try #require(place.log.all(.storeRefused).first)
      #expect(entry[.store] == place.store("a.sqlite") && entry[.error] == "store-ends-service")
      #expect(entry.text.contains("killed 3 times") && entry[.hint]?.contains("systemctl reload hopd") == true)
      // Another file under its name is another store.
      try place.write("stores/a.sqlite", "another")
      try await eventually("looked at") { inspections.withLock { $0 }.contains("a.sqlite") }
    }
    #expect(CrashSuspects(stateDirectory: place.root.appending("state")).isEmpty)
  }

  @Test func aReloadGivesItAnotherChance() async throws {
    let place = try DaemonTests.Place()
    try place.write("stores/a.sqlite", "x")
    for _ in 0..<3 { try kill(place, ["a.sqlite"]) }
    let coordinator = try place.coordinator(FakeWork())
    try await DaemonTests().running(place, coordinator) {
      try await eventually("refused") { !place.log.all(.storeRefused).isEmpty }
      coordinator.reload()
      try await eventually("looked at") { !place.log.all(.storeCurrent).isEmpty }
    }
  }

  @Test func otherModelsGiveItAnotherChance() async throws {
    let place = try DaemonTests.Place()
    try place.write("stores/a.sqlite", "x")
    for _ in 0..<3 { try kill(place, ["a.sqlite"]) }
    // The daemon that was killed last counts its death with the models of that time.
    try kill(place, [])
    try place.write(
      "A.xcdatamodel/contents",
      """
      <?xml version="1.0"?><model><entity name="Person">
      <attribute name="age" optional="YES" attributeType="Integer 32"/></entity></model>
      """)
    try await DaemonTests().running(place, try place.coordinator(FakeWork())) {
      try await eventually("looked at") { !place.log.all(.storeCurrent).isEmpty }
    }
  }

  /// A file that kills in the recovery of the start would end every start, before any other store is served.
  @Test func aSuspectIsNotRecoveredAtTheStart() async throws {
    let place = try DaemonTests.Place()
    try place.write("stores/a.sqlite", "x")
    try kill(place, ["a.sqlite"])
    let store = FoundStore.key(of: FilePath(place.store("a.sqlite")))
    let work = FakeWork(
      recovered: [
        RecoveredStore(store: store, sentence: "recovered at the start", failure: nil, continues: false)
      ])
    try await DaemonTests().running(place, try place.coordinator(work)) {
      // It goes straight to the migration, which begins with the recovery.
      try await eventually("migrated") { !place.log.all(.storeMigrated).isEmpty }
    }
    #expect(place.log.all(.crashRecovered).isEmpty && place.log.all(.storeCurrent).isEmpty)
  }
}
