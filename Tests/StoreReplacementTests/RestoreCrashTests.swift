// Kill and failure at every changing call of a restore, with a store in place and without one: the store is the one
// that was there or the one from the backup, whole and with its external files, or is still missing; the next restore
// finishes.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import Synchronization
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("A crash at every call of a restore")
struct RestoreCrashTests {
  /// The restored store, and the one that it replaces.
  struct Situation: CustomTestStringConvertible, Sendable {
    var kind: SourceKind
    /// Is a store in the way?
    var isThere: Bool
    /// Does the backup lie on another file system, so that its files are copied?
    var isElsewhere: Bool

    var testDescription: String {
      "\(kind), \(isThere ? "over a store" : "where none is")\(isElsewhere ? ", from another file system" : "")"
    }
  }

  static let all = [SourceKind.rollback, .hotLog].flatMap { kind in
    [(true, false), (false, false), (true, true), (false, true)].map {
      Situation(kind: kind, isThere: $0.0, isElsewhere: $0.1)
    }
  }
  /// Every situation takes minutes; the quick tier takes those that differ most.
  static let killed =
    SwapCrashTests.isFull
    ? all
    : [
      Situation(kind: .hotLog, isThere: true, isElsewhere: false),
      Situation(kind: .rollback, isThere: false, isElsewhere: true),
    ]
  static let failed =
    SwapCrashTests.isFull ? all : [Situation(kind: .hotLog, isThere: true, isElsewhere: true)]

  /// The quick tier takes a part of the calls, from run to run others.
  static let step = SwapCrashTests.isFull ? 1 : 6

  private static func first() -> Int {
    guard step > 1 else { return 1 }
    let first =
      getenv("HOPD_SEED").flatMap { Int(String(cString: $0)) }.map { abs($0 % step) + 1 } ?? .random(in: 1...step)
    print("restore: every \(step)th call from call \(first) on, HOPD_SEED=\(first - 1)")
    return first
  }

  /// A migrated store that has lost two external files since, with a backup that has them.
  final class Scene {
    let world: TestWorld
    let situation: Situation
    private let vault: FilePath?
    /// Below `home`, so that it is part of every snapshot; at another place, outside of it.
    let backup: FilePath
    var rule: BackupRule { BackupRule(keep: 9, directory: vault) }
    static let files = ["A0B1", "C2D3"]

    init(_ situation: Situation) throws {
      self.situation = situation
      world = try TestWorld(situation.kind, externalFiles: Self.files)
      var vault: FilePath?
      if situation.isElsewhere {
        var template = Array("/tmp/hopd-vault-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        vault = try world.plain.canonical(FilePath(platformString: template))
      }
      self.vault = vault
      let result = try world.migrate(files: LinuxFileSystem(), backup: BackupRule(keep: 9, directory: vault))
      backup = try #require(result.backup)
      for file in Self.files { try world.plain.unlink(world.location.externalDataDirectory.appending(file)) }
      if !situation.isThere { try world.plain.unlink(world.location.database) }
    }

    deinit { if let vault { try? run("/bin/rm", "-rf", vault.string) } }

    func restore(_ files: any DurableFileSystem, job: String = "ee55", observer: @escaping SwapObserver = { _ in })
      throws
    {
      var swap = StoreSwap(
        files: files, intents: try world.intents(files), identify: TestWorld.identify, observer: observer)
      swap.asksForOpeners = false  // snapshots are taken by another program, which opens the store
      _ = try Restore(swap: swap, lockDirectory: world.locks).restore(
        backup, to: world.location, job: job, backup: rule, now: 1_900_000_100)
    }

    func recover(_ files: any DurableFileSystem = LinuxFileSystem()) throws -> RecoveryOutcome {
      let runner = RecoveryRunner(
        files: files, intents: try world.intents(files), lockDirectory: world.locks, identify: TestWorld.identify)
      let outcome = try runner.recover(world.location, rule: rule)
      if case .completed = outcome.decision { try world.intents(files).remove(outcome.location) }
      return outcome
    }

    /// Checks what a user may find after a crash, and then the result of `hopctl restore`.
    func check(_ point: String, isReported: Bool = false) throws {
      let outcome = try recover()
      let isThere = try world.plain.status(world.location.database) != nil
      if isThere {
        let found = try world.content()
        #expect(["one", "two"].contains(found.version) && found.rows == TestWorld.rows, "\(point)")
        if isReported { #expect(found.version == "one", "\(point): success was reported") }
        if case .quarantine(let reason) = outcome.decision { Issue.record("\(point): quarantine \(reason)") }
        if found.version == "one" { try checkExternalFiles(point, areBack: true) }
      } else {
        #expect(!situation.isThere && !isReported, "\(point): the store is gone")
        switch outcome.decision {
        case .nothingToDo, .quarantine(.storeMissing): break
        default: Issue.record("\(point): \(outcome.decision) for a missing store")
        }
      }
      try checkExternalFiles(point, areBack: false)
      #expect(try world.content(of: backup).version == "one", "\(point): the backup")

      try restore(LinuxFileSystem(), job: "ff66")
      let now = try world.content()
      #expect(now.version == "one" && now.rows == TestWorld.rows, "\(point): after the second restore")
      try checkExternalFiles(point, areBack: true)
      #expect(!world.names.contains { $0.contains(".hop-") }, "\(point): \(world.names)")
      let after = try recover()
      #expect(after.decision == .nothingToDo, "\(point): \(after.decision)")
      let header = try world.plain.read(world.location.database, limit: 1 << 24)
      #expect(header[18] == (situation.kind.journalMode == .wal ? 2 : 1), "\(point)")
      for generation in try BackupSet(location: world.location, rule: rule, files: world.plain).generations() {
        #expect(try world.content(of: generation.database).rows == TestWorld.rows, "\(point)")
      }
    }

    /// Files under their own names are whole, and nothing else stays in the user's folder.
    private func checkExternalFiles(_ point: String, areBack: Bool) throws {
      let directory = world.location.externalDataDirectory
      let names = try world.plain.names(in: directory).map(\.string).filter { !$0.hasSuffix(".hopd-part") || areBack }
      #expect(Set(names).isSubset(of: Self.files), "\(point): \(names)")
      if areBack { #expect(names == Self.files, "\(point): \(names)") }
      for name in names where Self.files.contains(name) {
        let content = try world.plain.read(directory.appending(name), limit: 100)
        #expect(content == Array("content of \(name)".utf8), "\(point): \(name)")
      }
    }
  }

  @Test("Killed before each call and in the middle of each copy", arguments: killed)
  func kills(_ situation: Situation) throws {
    let counting = FaultyFileSystem()
    try Scene(situation).restore(counting)
    #expect(counting.calls.count > 8)
    for call in stride(from: Self.first(), through: counting.calls.count, by: Self.step) {
      let scene = try Scene(situation)
      nonisolated(unsafe) let world = scene.world
      let files = FaultyFileSystem(
        .init(before: { number, words in
          guard number == call else { return }
          // A copy that was cut: half of a file under the name that it was to have.
          var half: FilePath?
          if words.hasPrefix("copy "), let name = words.split(separator: " ").last.map(String.init) {
            let isStaged = name.contains(".hop-")
            let path = (isStaged ? world.stores : world.location.externalDataDirectory).appending(name)
            try world.plain.createFile(path, Array("cont".utf8), mode: 0o600)
            half = path
          }
          try world.snapshot("kill")
          if let half { try world.plain.unlink(half) }
        }))
      try scene.restore(files)
      try scene.world.reboot(into: "kill")
      try scene.check("killed at call \(call): \(counting.calls[call - 1])")
    }
    guard situation.isThere, SwapCrashTests.isFull else { return }
    for step in SwapStep.allCases {
      let scene = try Scene(situation)
      try scene.restore(LinuxFileSystem(), observer: { if $0 == step { try scene.world.snapshot("kill") } })
      try scene.world.reboot(into: "kill")
      try scene.check("killed after step \(step)")
    }
  }

  @Test(
    "An error at each call, once and from there on", arguments: failed, SwapCrashTests.isFull ? [false, true] : [false])
  func errors(_ situation: Situation, isSticky: Bool) throws {
    for call in stride(from: Self.first(), to: 10_000, by: Self.step) {
      let scene = try Scene(situation)
      let files = FaultyFileSystem(.init(failAt: call, isSticky: isSticky, errno: call % 2 == 0 ? ENOSPC : EIO))
      var isReported = false
      do {
        try scene.restore(files)
        isReported = true
      } catch let error as HopdError {
        #expect(error.code.isRetryable || error.code == .cannotReplace, "\(error)")
        if !isSticky, error.code != .replacementUnconfirmed {
          // Reserved space is released at once.
          #expect(!scene.world.names.contains { $0.contains(".hop-") }, "call \(call): \(scene.world.names)")
        }
      }
      if files.calls.count < call {
        #expect(isReported)
        return
      }
      try scene.check("error at call \(call) \(files.calls.last ?? "")", isReported: isReported)
    }
  }
}
