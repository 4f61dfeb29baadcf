// A look as recovery has it, before it acts: the same findings and the same decision, and every byte stays.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import SQLite
import Synchronization
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("Recovery that only looks")
struct ExaminingTests {
  /// Every file below a directory with its content, indexes and locks among them.
  private func everything(_ folder: FilePath, _ prefix: String = "") throws -> [String: [UInt8]] {
    let files = LinuxFileSystem()
    var found: [String: [UInt8]] = [:]
    for name in try files.names(in: folder) {
      let path = folder.appending(name)
      let label = prefix + name.string
      if try files.status(path)?.kind == .directory {
        found[label + "/"] = []
        found.merge(try everything(path, label + "/")) { first, _ in first }
      } else {
        found[label] = try files.read(path, limit: 1 << 24)
      }
    }
    return found
  }

  private func runner(_ world: TestWorld) throws -> RecoveryRunner {
    RecoveryRunner(
      files: world.plain, intents: try world.intents(world.plain), lockDirectory: world.locks,
      identify: TestWorld.identify)
  }

  /// Looks, then acts, and compares.
  private func compare(_ world: TestWorld, _ rule: BackupRule, plan: String?, _ what: String) throws
    -> RecoveryDecision?
  {
    let before = try everything(world.home)
    let journal = before["stores/\(world.location.fileName)-journal"] ?? []
    // The magic of a journal whose begin is safe; before, the store has not been written to.
    let isHot = journal.starts(with: [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7])
    if isHot {
      // Only a writer can find out.
      let found = code { _ = try runner(world).examine(world.location, planFingerprint: plan, rule: rule) }
      #expect(found == .storeBusy, "\(what): \(found.map { "\($0)" } ?? "an answer")")
      #expect(try everything(world.home) == before, "\(what): a look changed something")
      return nil
    }
    let seen = try runner(world).examine(world.location, planFingerprint: plan, rule: rule)
    let after = try everything(world.home)
    #expect(after == before, "\(what): a look changed \(Set(after.keys).symmetricDifference(before.keys))")
    let done = try runner(world).recover(world.location, planFingerprint: plan, rule: rule)
    #expect(seen.decision == done.decision, "\(what): looked \(seen.decision), acted \(done.decision)")
    #expect(seen.findings == done.findings, "\(what): \(seen.findings.map { "\($0)" } ?? "nothing")")
    #expect(seen.location == done.location && seen.intent == done.intent, "\(what)")
    #expect(seen.error?.code == done.error?.code && seen.error?.hint == done.error?.hint, "\(what)")
    return seen.decision
  }

  @Test("In every situation on disk it says what recovery does")
  func situations() throws {
    let disk = try RecoveryOnDiskTests.Disk(try RecoveryOnDiskTests.Contents())
    for combination in RecoveryOnDiskTests.chosen(12) {
      try disk.make(combination)
      #expect(try compare(disk.world, disk.rule, plan: nil, "\(combination)") != nil, "a journal where none was made")
    }
  }

  /// Of the kinds the quick tier takes those that differ most.
  static let killed: [(SourceKind, ReplacementMode)] =
    SwapCrashTests.isFull
    ? SourceKind.allCases.flatMap { kind in ReplacementMode.allCases.map { (kind, $0) } }
    : [(.wal, .rename), (.rollback, .inPlace)]

  @Test("After a kill at every step it says what recovery does", arguments: killed)
  func kills(_ kind: SourceKind, _ mode: ReplacementMode) throws {
    var hot = 0
    let world = try TestWorld(kind, externalFiles: ["A0B1"])
    var names: [String] = []
    var pages = 0
    func keep(_ step: String) throws {
      guard !names.contains(step) else { return }
      names.append(step)
      try world.snapshot(step)
    }
    try world.migrate(
      files: LinuxFileSystem(), mode: mode,
      meanwhile: {
        // SQLite writes pages to the file before the commit, as it does with large stores.
        if mode == .inPlace { try $0.connection.execute("PRAGMA cache_size = 1") }
        try keep("built")
      }, observer: { try keep("\($0)") },
      inPlaceObserver: {
        if $0 == .writing { pages += 1 }
        try keep($0 == .writing ? "writing \(pages < 5 ? 1 : 5)" : "\($0)")
      })
    try keep("reported")
    #expect(names.count > 7)
    for name in names {
      try world.reboot(into: name)
      let decision = try compare(world, BackupRule(), plan: "plan", "\(kind), \(mode), killed when \(name)")
      if decision == nil { hot += 1 }
      let found = try world.content()
      #expect(found.rows == TestWorld.rows)
    }
    if kind == .rollback, mode == .inPlace { #expect(hot > 0, "no kill came between the first page and the commit") }
  }

  @Test("What is no file, is empty, or goes meanwhile is told as recovery tells it")
  func strange() throws {
    let world = try TestWorld(.rollback)
    _ = try StagingArea(location: world.location, job: "ab12", files: world.plain).create(hop: 0)
    let database = world.location.database
    let away = world.root.appending("away")
    // It is removed after the last check of its name.
    let inspections = Mutex(0)
    let files = HookedFileSystem(after: { call, path in
      if call == "status", path == database,
        inspections.withLock({
          $0 += 1
          return $0 == 2
        })
      {
        try LinuxFileSystem().rename(database, to: away)
      }
    })
    func examine(_ files: any DurableFileSystem) throws -> RecoveryOutcome {
      try RecoveryRunner(
        files: files, intents: try world.intents(files), lockDirectory: world.locks, identify: TestWorld.identify
      ).examine(world.location)
    }
    #expect(try examine(world.plain).decision == .startAgain([.dropStaged]))
    // Whichever look it is that comes too late.
    var last: RecoveryDecision?
    for late in 1...50 {
      inspections.withLock { $0 = 2 - late }
      last = try examine(files).decision
      guard try world.plain.status(away) != nil else { break }
      #expect(last == .quarantine(.storeMissing) || late > 2, "look \(late): \(last.map { "\($0)" } ?? "")")
      try world.plain.rename(away, to: database)
    }
    #expect(last == .startAgain([.dropStaged]))
    try world.plain.rename(database, to: away)
    #expect(try examine(world.plain).decision == .quarantine(.storeMissing))
    try world.plain.createFile(database, [], mode: 0o600)
    #expect(try examine(world.plain).decision == .quarantine(.storeDamaged))
    try world.plain.unlink(database)
    try world.plain.createFile(database, Array("a letter, and no database".utf8), mode: 0o600)
    #expect(try examine(world.plain).decision == .quarantine(.storeDamaged))
    try world.plain.unlink(database)
    #expect(symlink(away.string, database.string) == 0)
    #expect(try examine(world.plain).decision == .quarantine(.storeDamaged))
    #expect(world.names.count == 2, "nothing was removed")
  }

  // MARK: Long and broken inspections

  @Test("A long check shows life, and is given up on request; nothing is done then")
  func interrupted() throws {
    let world = try TestWorld(.rollback)
    try Ballast.add(to: world.location.database, rows: Ballast.many)
    let area = StagingArea(location: world.location, job: "ab12", files: world.plain)
    _ = try area.create(hop: 0)
    let names = world.names
    for answer in [false, true] {
      let calls = Mutex(0)
      let runner = RecoveryRunner(
        files: world.plain, intents: try world.intents(world.plain), lockDirectory: world.locks,
        identify: TestWorld.identify,
        keepAlive: {
          calls.withLock { $0 += 1 }
          return answer
        })
      for inspect in [runner.examine, runner.recover] {
        calls.withLock { $0 = 0 }
        var decision: RecoveryDecision?
        let found = code { decision = try inspect(world.location, nil, BackupRule()).decision }
        #expect(calls.withLock { $0 } > 0)
        #expect(found == (answer ? nil : .interrupted), "\(found.map { "\($0)" } ?? "no error")")
        #expect(decision == (answer ? .startAgain([.dropStaged]) : nil))
        if !answer { #expect(world.names == names) }
      }
    }
    // Without a callback it runs to its end.
    _ = try area.create(hop: 0)
    #expect(try world.recover().decision == .startAgain([.dropStaged]))
    #expect(world.names == ["Library.sqlite"])
  }

  @Test("What keeps the version from being read for a while is no verdict about the store")
  func passing() throws {
    let world = try TestWorld(.rollback)
    let source = try #require(try SourceFingerprint(of: world.location, files: world.plain))
    do {
      let store = try LockedStore(location: world.location, lockDirectory: world.locks)
      let area = StagingArea(location: store.location, job: "ab12", files: world.plain)
      try world.intents(world.plain).write(try world.intent(store, area, source: source))
      store.release()
    }
    // Busy, locked, out of memory, interrupted, a failing disk, a full one, too many open files.
    for number: Int32 in [5, 6, 7, 9, 10, 10 | 2 << 8, 13, 14] {
      let runner = RecoveryRunner(
        files: world.plain, intents: try world.intents(world.plain), lockDirectory: world.locks,
        identify: { _ in throw SQLiteError(extendedCode: number, message: "for now") })
      for inspect in [runner.examine, runner.recover] {
        let found = code { _ = try inspect(world.location, nil, BackupRule()) }
        #expect(found != nil, "error \(number) of SQLite was taken for a verdict")
      }
    }
    // These are about what is in the file.
    for number: Int32 in [1, 11, 26] {
      let runner = RecoveryRunner(
        files: world.plain, intents: try world.intents(world.plain), lockDirectory: world.locks,
        identify: { _ in throw SQLiteError(extendedCode: number, message: "no such table") })
      #expect(try runner.examine(world.location).decision == .quarantine(.unknownVersion))
      #expect(try runner.recover(world.location).decision == .quarantine(.unknownVersion))
    }
    #expect(try world.recover().decision == .startAgain([.removeIntent]))
  }
}
