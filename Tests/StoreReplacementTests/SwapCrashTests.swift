// Kill and failure at every changing call of a journey, one after the other, until one runs through untouched.

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

  /// Old or new and whole; recovery says which; a retry finishes; nothing of ours lies about afterwards.
  private func check(_ world: TestWorld, _ point: String, successReported: Bool = false) throws {
    let outcome = try world.recover()
    let found = try world.content()
    #expect(found.rows == TestWorld.rows, "\(point)")
    switch outcome.decision {
    case .completed: #expect(found.version == "two", "\(point)")
    case .quarantine(let reason): Issue.record("\(point): quarantine \(reason)")
    default: break
    }
    if successReported { #expect(found.version == "two", "\(point): success was reported") }
    #expect(
      !world.names.contains { $0.contains(".hop-") },
      "\(point): \(outcome.decision) \(outcome.findings.map { "\($0)" } ?? "") \(world.names)")
    #expect(try world.recover().decision == .nothingToDo, "\(point)")
    if found.version == "one" {
      #expect(try world.plain.status(world.location.database)?.links == 1, "\(point)")
      try world.migrate(files: LinuxFileSystem(), job: "cd34")
      let after = try world.content()
      #expect(after.version == "two" && after.rows == TestWorld.rows, "\(point)")
    }
    let backups = try BackupSet(location: world.location, rule: BackupRule(), files: world.plain).generations()
    #expect(backups.count == 1, "\(point): the old store is kept exactly once")
    if let backup = backups.first {
      let old = try world.content(of: backup.database)
      #expect(old.version == "one" && old.rows == TestWorld.rows, "\(point)")
    }
  }

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
      try check(world, "\(kind) killed before call \(call): \(words.withLock { $0 })")
    }
    for step in SwapStep.allCases {
      let world = try TestWorld(kind, externalFiles: ["A0B1", "C2D3"])
      try world.migrate(files: LinuxFileSystem(), observer: { if $0 == step { try world.snapshot("kill") } })
      try world.reboot(into: "kill")
      try check(world, "\(kind) killed after step \(step)")
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
      try check(world, point, successReported: isReported)
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
      try check(world, "recovery after \(step) cut at call \(call)")
      if isDone { return }
    }
  }
}
