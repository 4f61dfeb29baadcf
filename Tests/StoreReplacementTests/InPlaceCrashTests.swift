// Kill and failure at every changing call and between any two pages of a replacement in place. What happens inside
// SQLite's own commit is the question of the campaigns and of the simulated disk.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import SQLite
import StoreReplacement
import Synchronization
import SystemPackage
import Testing

@Suite("A crash at every step of a replacement in place")
struct InPlaceCrashTests {
  /// Of what takes longest the quick tier takes one kind; HOPD_TESTS=full takes all.
  static let killed: [SourceKind] = SwapCrashTests.isFull ? SourceKind.allCases : [.rollback]
  static let paged: [SourceKind] = SwapCrashTests.isFull ? SourceKind.allCases : [.rollback, .hotLog]
  static let sticky: [Bool] = SwapCrashTests.isFull ? [false, true] : [true]

  /// SQLite writes pages to the file before the commit, as it does with large stores.
  private static func leaveNoCache(_ store: LockedStore) throws {
    try store.connection.execute("PRAGMA cache_size = 1")
  }

  @Test("Killed before each call: old or new, and a retry finishes", arguments: killed)
  func kills(_ kind: SourceKind) throws {
    let counting = FaultyFileSystem()
    let first = try TestWorld(kind, externalFiles: ["A0B1", "C2D3"])
    try first.migrate(files: counting, mode: .inPlace)
    let calls = counting.calls.count
    #expect(calls > 20)
    for call in 1...calls {
      let world = try TestWorld(kind, externalFiles: ["A0B1", "C2D3"])
      nonisolated(unsafe) let shared = world
      let words = Mutex("")
      let files = FaultyFileSystem(
        .init(before: { number, text in
          guard number == call else { return }
          words.withLock { $0 = text }
          try shared.snapshot("kill")
        }))
      try world.migrate(files: files, mode: .inPlace)
      try world.reboot(into: "kill")
      try world.checkRecovery("\(kind) killed before call \(call): \(words.withLock { $0 })", mode: .inPlace)
    }
  }

  @Test("Killed after each step and page: whoever opens the store finds old or new", arguments: paged)
  func killsBetweenPages(_ kind: SourceKind) throws {
    var steps: [InPlaceStep] = []
    try TestWorld(kind).migrate(files: LinuxFileSystem(), mode: .inPlace, inPlaceObserver: { steps.append($0) })
    #expect(Set(steps) == Set(InPlaceStep.allCases) && steps.filter { $0 == .writing }.count > 2)
    var halfWritten = 0
    for (index, step) in steps.enumerated() {
      let world = try TestWorld(kind, externalFiles: ["A0B1"])
      let before = try world.plain.read(world.location.database, limit: 1 << 24)
      var number = 0
      try world.migrate(
        files: LinuxFileSystem(), mode: .inPlace, meanwhile: Self.leaveNoCache,
        inPlaceObserver: { _ in
          if number == index { try world.snapshot("kill") }
          number += 1
        })
      try world.reboot(into: "kill")
      if step == .writing {
        let log = try world.plain.status(world.location.writeAheadLog)?.size ?? 0
        let isTorn = try world.plain.read(world.location.database, limit: 1 << 24) != before
        if isTorn || (kind != .rollback && log > 0) { halfWritten += 1 }
      }
      if index % 2 == 0 {
        // The first program that opens it, not only hopd.
        let found = try world.content()
        let isAfter = [.committed, .durable, .confirmed].contains(step)
        #expect(found.version == (isAfter ? "two" : "one") && found.rows == TestWorld.rows, "\(kind) \(step)")
      }
      try world.checkRecovery("\(kind) killed after step \(index), \(step)", mode: .inPlace)
    }
    #expect(halfWritten > 0, "no kill found pages of both stores")
  }

  @Test(
    "An I/O error at each call, once and from there on: old or new, and a retry finishes",
    arguments: SwapCrashTests.failed, sticky)
  func errors(_ kind: SourceKind, isSticky: Bool) throws {
    for call in 1... {
      let world = try TestWorld(kind, externalFiles: ["A0B1"])
      let inode = try world.plain.status(world.location.database)?.identity
      let files = FaultyFileSystem(.init(failAt: call, isSticky: isSticky, errno: call % 2 == 0 ? ENOSPC : EIO))
      var isReported = false
      do {
        try world.migrate(files: files, mode: .inPlace)
        isReported = true
      } catch let error as HopdError {
        #expect(error.code.isRetryable || error.code == .cannotReplace, "\(error)")
        if error.code == .replacementUnconfirmed { #expect(try world.content().version == "two") }
      }
      let point = "\(kind) error at call \(call) \(files.calls.last ?? "")"
      if files.calls.count < call {
        #expect(isReported)
        return
      }
      #expect(try world.plain.status(world.location.database)?.identity == inode, "\(point)")
      try world.checkRecovery(point, mode: .inPlace, successReported: isReported)
    }
  }

  @Test("An error between any two pages, or after the commit", arguments: paged)
  func errorsBetweenPages(_ kind: SourceKind) throws {
    for index in 0... {
      let world = try TestWorld(kind, externalFiles: ["A0B1"])
      var (number, last) = (0, InPlaceStep.copied)
      let found = code {
        try world.migrate(
          files: LinuxFileSystem(), mode: .inPlace, meanwhile: Self.leaveNoCache,
          inPlaceObserver: { step in
            if number == index {
              last = step
              throw HopdError(errno: ENOSPC, "write", at: world.location.database)
            }
            number += 1
          })
      }
      guard found != nil else { return }
      let isAfter = [.committed, .durable, .confirmed].contains(last)
      #expect(found == (isAfter ? .replacementUnconfirmed : .noSpace), "\(kind) \(last)")
      if !isAfter {
        #expect(try world.content().version == "one", "\(kind) \(last)")
        #expect(world.names == [".Library_SUPPORT", "Library.sqlite"], "\(kind) \(last)")
        #expect(try world.recover().decision == .nothingToDo, "\(kind) \(last)")
      }
      try world.checkRecovery("\(kind) error after \(last)", mode: .inPlace)
    }
  }

  @Test("Killed with no backup wanted: recovery keeps none either", arguments: [SourceKind.rollback, .hotLog])
  func killsWithoutBackup(_ kind: SourceKind) throws {
    for step in InPlaceStep.allCases {
      let world = try TestWorld(kind, externalFiles: ["A0B1"])
      var isDone = false
      try world.migrate(
        files: LinuxFileSystem(), backup: .none, mode: .inPlace,
        inPlaceObserver: {
          if $0 == step, !isDone {
            isDone = true
            try world.snapshot("kill")
          }
        })
      try world.reboot(into: "kill")
      try world.checkRecovery("\(kind), no backup, killed after \(step)", mode: .inPlace, keeps: false)
      #expect(!world.names.contains(".Library.sqlite.hopd-backups"))
    }
  }

  /// The journal of a commit, and the one that a recovery rolled back before it was killed itself.
  @Test(
    "Killed between SQLite's commit or rollback and its last unlink: the journal that says nothing goes",
    arguments: [(InPlaceStep.compared, "one"), (.durable, "two")])
  func coldJournal(_ last: InPlaceStep, _ version: String) throws {
    for bytes in [0, 512, 4096] {
      let world = try TestWorld(.rollback)
      try world.migrate(
        files: LinuxFileSystem(), mode: .inPlace, inPlaceObserver: { if $0 == last { try world.snapshot("kill") } })
      try world.reboot(into: "kill")
      try world.plain.unlinkIfPresent(world.location.rollbackJournal)
      try world.plain.createFile(
        world.location.rollbackJournal, [UInt8](repeating: 0, count: bytes), mode: 0o644)
      _ = try world.recover()
      #expect(try world.plain.status(world.location.rollbackJournal) == nil, "\(bytes) bytes of nothing")
      #expect(try world.content().version == version)
    }
  }

  @Test("Killed before the journal mode was set: recovery sets it", arguments: [JournalModeRule.wal, .delete])
  func killsBeforeJournalMode(_ rule: JournalModeRule) throws {
    let world = try TestWorld(rule == .wal ? .rollback : .hotLog)
    try world.migrate(
      files: LinuxFileSystem(), journalMode: rule, mode: .inPlace,
      inPlaceObserver: { if $0 == .durable { try world.snapshot("kill") } })
    try world.reboot(into: "kill")
    let decision = try world.recover().decision
    #expect(decision == .completed([.syncDirectory, .makeContentDurable, .dropStaged, .setJournalMode]))
    let header = try world.plain.read(world.location.database, limit: 1 << 24)
    #expect(header[18] == (rule == .wal ? 2 : 1))
    #expect(try world.content().version == "two")
  }

  @Test(
    "Killed during recovery at each call: the next recovery finishes", arguments: [InPlaceStep.backedUp, .committed])
  func killsInRecovery(_ step: InPlaceStep) throws {
    for call in 1... {
      let world = try TestWorld(.hotLog, externalFiles: ["A0B1"])
      try world.migrate(
        files: LinuxFileSystem(), mode: .inPlace, inPlaceObserver: { if $0 == step { try world.snapshot("kill") } })
      try world.reboot(into: "kill")
      let files = FaultyFileSystem(.init(failAt: call, isSticky: true))
      let isDone = (try? world.recover(files)) != nil && files.calls.count < call
      try world.checkRecovery("recovery after \(step) cut at call \(call)", mode: .inPlace)
      if isDone { return }
    }
  }
}
