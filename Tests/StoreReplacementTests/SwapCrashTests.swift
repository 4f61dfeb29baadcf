// Kill and failure at every changing call of a migration path, one after the other, until one runs through untouched.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import StoreReplacement
import Synchronization
import SystemPackage
import Testing

@Suite("A crash at every call")
struct SwapCrashTests {
  /// Every kind of source takes minutes; the quick tier takes the two that differ most. HOPD_TESTS=full takes all.
  static let isFull = getenv("HOPD_TESTS").map { String(cString: $0) == "full" } ?? false
  static let killed: [SourceKind] = isFull ? SourceKind.allCases : [.rollback, .hotLog]
  static let failed: [SourceKind] = isFull ? SourceKind.allCases : [.hotLog]

  @Test("Killed before each call and after each step: old or new, and a retry finishes", arguments: killed)
  func kills(_ kind: SourceKind) throws {
    let counting = FaultyFileSystem()
    let first = try TestWorld(kind, externalFiles: ["A0B1", "C2D3"])
    try first.migrate(files: counting)
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
      try world.migrate(files: files)
      try world.reboot(into: "kill")
      try world.checkRecovery("\(kind) killed before call \(call): \(words.withLock { $0 })")
    }
    for step in SwapStep.allCases {
      let world = try TestWorld(kind, externalFiles: ["A0B1", "C2D3"])
      try world.migrate(files: LinuxFileSystem(), observer: { if $0 == step { try world.snapshot("kill") } })
      try world.reboot(into: "kill")
      try world.checkRecovery("\(kind) killed after step \(step)")
    }
  }

  @Test(
    "An I/O error at each call, once and from there on: old or new, and a retry finishes",
    arguments: failed, [false, true])
  func errors(_ kind: SourceKind, isSticky: Bool) throws {
    for call in 1... {
      let world = try TestWorld(kind, externalFiles: ["A0B1"])
      let files = FaultyFileSystem(.init(failAt: call, isSticky: isSticky, errno: call % 2 == 0 ? ENOSPC : EIO))
      var isReported = false
      do {
        try world.migrate(files: files)
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
      try world.checkRecovery(point, successReported: isReported)
    }
  }

  @Test("Killed during recovery at each call: the next recovery finishes", arguments: [SwapStep.backedUp, .renamed])
  func killsInRecovery(_ step: SwapStep) throws {
    for call in 1... {
      let world = try TestWorld(.hotLog, externalFiles: ["A0B1"])
      try world.migrate(files: LinuxFileSystem(), observer: { if $0 == step { try world.snapshot("kill") } })
      try world.reboot(into: "kill")
      let files = FaultyFileSystem(.init(failAt: call, isSticky: true))
      let isDone = (try? world.recover(files)) != nil && files.calls.count < call
      try world.checkRecovery("recovery after \(step) cut at call \(call)")
      if isDone { return }
    }
  }

  @Test("Killed with no backup wanted: recovery keeps none either", arguments: SwapStep.allCases)
  func killsWithoutBackup(_ step: SwapStep) throws {
    let world = try TestWorld(.hotLog, externalFiles: ["A0B1"])
    try world.migrate(
      files: LinuxFileSystem(), backup: .none, observer: { if $0 == step { try world.snapshot("kill") } })
    try world.reboot(into: "kill")
    try world.checkRecovery("no backup, killed after \(step)", keeps: false)
    #expect(!world.names.contains(".Library.sqlite.hopd-backups"))
  }
}
