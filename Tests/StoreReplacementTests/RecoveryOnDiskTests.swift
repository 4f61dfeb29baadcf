// Every combination of what may be found on disk, really made in a directory and recovered: what
// docs/formats/replacement.md, "Intent record and recovery", says is done, nothing of the user's is touched, a second
// run finds nothing to do, and a run that is cut off anywhere leads to the same end. HOPD_TESTS=full takes all
// combinations; else a part of them that differs from run to run by its seed, which is printed (HOPD_SEED sets it).

import Diagnostics
import DurableFiles
import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite("Recovery on disk")
struct RecoveryOnDiskTests {
  enum Store: CaseIterable { case missing, damaged, old, new, other, empty, folder }
  /// `older` is a record as the first hopd wrote it: without the fields that came later.
  enum Intent: CaseIterable { case none, readable, older, unreadable, newer, ofAnotherStore }
  enum Staged: CaseIterable { case none, resumable, stale, sideFileOnly, severalHops, withHolder, otherBoot }
  enum Backup: CaseIterable { case none, ownInode, halfMade, complete, unlabelled, part }
  enum Log: CaseIterable { case rollback, wal, lost }

  struct Combination: CustomStringConvertible {
    var store: Store
    var intent: Intent
    var staged: Staged
    var backup: Backup
    var log: Log
    /// Whether work that could continue is to go.
    var discards = false

    var description: String { "store \(store), intent \(intent), staged \(staged), backup \(backup), log \(log)" }
    var isKnown: Bool { intent == .readable || intent == .older }
    /// Work of this record, this source, this plan and this boot.
    var mayResume: Bool {
      !discards && isKnown && store == .old && [.resumable, .sideFileOnly, .severalHops, .withHolder].contains(staged)
    }
    var hasUnfinishedBackup: Bool {
      // The name of a store that is not there is no second one.
      backup == .halfMade || backup == .part || (backup == .ownInode && store != .missing && store != .folder)
    }

    /// By the text of docs/formats/replacement.md, "Intent record and recovery", not by the code.
    var expected: Expectation {
      if intent == .none, staged == .none, !hasUnfinishedBackup { return .nothing }
      if intent == .newer { return .quarantine(.newerIntent) }
      switch store {
      case .missing: return .quarantine(.storeMissing)
      case .damaged, .folder, .empty: return .quarantine(.storeDamaged)
      case .other: return isKnown ? .quarantine(.unknownVersion) : .cleaned
      case .old: return mayResume ? .resume : .cleaned
      case .new: return isKnown ? .completed : .cleaned
      }
    }
  }

  enum Expectation: Equatable {
    case nothing, cleaned, resume, completed
    case quarantine(QuarantineReason)
  }

  static let all: [Combination] = Store.allCases.flatMap { store in
    Intent.allCases.flatMap { intent in
      Staged.allCases.flatMap { staged in
        Backup.allCases.flatMap { backup in
          Log.allCases.map { Combination(store: store, intent: intent, staged: staged, backup: backup, log: $0) }
        }
      }
    }
  }

  /// The combinations of this run.
  static func chosen(_ part: Int) -> [Combination] {
    if SwapCrashTests.isFull { return all }
    let given = getenv("HOPD_SEED").flatMap { UInt64(String(cString: $0)) }
    let seed = given ?? UInt64.random(in: 0..<1_000_000)
    print("recovery on disk: \(part) of \(all.count) combinations, HOPD_SEED=\(seed)")
    var state = seed
    func next() -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33)
    }
    // One of each end, and the rest at random.
    let ends = Dictionary(grouping: all) { "\($0.expected)" }.sorted { $0.key < $1.key }
    let rest = (0..<max(0, part - ends.count)).map { _ in all[next() % all.count] }
    return ends.map { $0.value[next() % $0.value.count] } + rest
  }

  /// Contents of the kinds of files, made once.
  struct Contents {
    var stores: [String: [UInt8]] = [:]

    init() throws {
      let world = try TestWorld(.rollback)
      for version in ["one", "two", "three"] {
        for mode in ["delete", "wal"] {
          let path = world.root.appending("\(version)-\(mode)")
          do {
            let connection = try Connection.ofApp(path, .create)
            try #require(try connection.text("PRAGMA journal_mode = \(mode)") == mode)
            try connection.execute(
              """
              CREATE TABLE version(digest TEXT); INSERT INTO version VALUES('\(version)');
              CREATE TABLE book(id INTEGER PRIMARY KEY, title TEXT); INSERT INTO book VALUES(1, 'a'), (2, 'b');
              """)
          }
          stores["\(version)-\(mode)"] = try world.plain.read(path, limit: 1 << 20)
        }
      }
    }
  }

  /// A directory in which a combination is made.
  final class Disk {
    let world: TestWorld
    let contents: Contents
    var plain: LinuxFileSystem { world.plain }
    var location: CanonicalStoreLocation { world.location }
    var vault: FilePath { world.home.appending("vault") }
    var rule: BackupRule { BackupRule(keep: 3, directory: vault) }

    init(_ contents: Contents) throws {
      world = try TestWorld(.rollback)
      self.contents = contents
    }

    func make(_ combination: Combination) throws {
      try run("/bin/rm", "-rf", world.home.string)
      for directory in [world.home, world.stores, world.state, world.locks, vault] {
        try plain.makeDirectory(directory, mode: 0o755)
      }
      // The user's, and other stores'.
      for name in [
        "notes.txt", "Library.sqlite.bak", ".Library.sqlite.txt", ".Other.sqlite.hop-ab12-0.tmp", "Library.sqlite.tmp",
      ] {
        try write(world.stores.appending(name), Array(name.utf8))
      }
      try plain.makeDirectory(world.stores.appending(".Other.sqlite.hopd-backups"), mode: 0o700)
      let mode = combination.log == .wal ? "wal" : "delete"
      switch combination.store {
      case .missing: break
      case .damaged:
        var bytes = contents.stores["one-\(mode)"] ?? []
        for index in bytes.indices where index >= 4096 { bytes[index] = 0xff }
        try write(location.database, bytes)
      case .old: try write(location.database, contents.stores["one-\(mode)"] ?? [])
      case .new: try write(location.database, contents.stores["two-\(mode)"] ?? [])
      case .other: try write(location.database, contents.stores["three-\(mode)"] ?? [])
      case .empty: try write(location.database, [])
      case .folder: try plain.makeDirectory(location.database, mode: 0o755)
      }
      try make(combination.backup, combination)
      try make(combination.staged)
      try make(combination.intent, combination)
    }

    private func write(_ path: FilePath, _ bytes: [UInt8]) throws {
      try plain.createUnsyncedFile(path, bytes, mode: 0o644)
    }

    private func make(_ staged: Staged) throws {
      func file(_ name: String) throws { try write(world.stores.appending(".Library.sqlite.hop-\(name)"), [1, 2, 3]) }
      switch staged {
      case .none: break
      case .resumable, .otherBoot: try file("ab12-0.tmp")
      case .stale: try file("cd34-0.tmp")
      case .sideFileOnly: try file("ab12-0.tmp-journal")
      case .severalHops:
        for name in ["ab12-0.tmp", "ab12-0.tmp-journal", "ab12-1.tmp"] { try file(name) }
      case .withHolder:
        for name in ["ab12-0.tmp", "ab12-reserve.tmp"] { try file(name) }
      }
    }

    private func make(_ backup: Backup, _ combination: Combination) throws {
      let set = try BackupSet(location: location, rule: rule, files: plain)
      let folder = set.directory.appending("20300102T030405Z-ab12")
      func label() throws {
        let label =
          #"{"format":1,"store":"\#(PathText.encode(location.database))","job":"ab12","from":{"name":"One","#
          + #""digest":"one"},"to":{"name":"Two","digest":"two"},"createdAt":1900000000,"journalMode":"delete"}"#
        try write(folder.appending("backup.json"), Array(label.utf8))
      }
      if backup == .none { return }
      if backup == .part {
        let elsewhere = try #require(set.elsewhere)
        try plain.makeDirectory(elsewhere, mode: 0o700)
        let part = elsewhere.appending("20300102T030405Z-ab12.part")
        try plain.makeDirectory(part, mode: 0o700)
        return try write(part.appending("Library.sqlite"), [1, 2])
      }
      try plain.makeDirectory(set.directory, mode: 0o700)
      try plain.makeDirectory(folder, mode: 0o700)
      if backup != .unlabelled { try label() }
      switch backup {
      case .ownInode:
        if combination.store != .missing, combination.store != .folder {
          try plain.link(location.database, as: folder.appending("Library.sqlite"))
        } else {
          try write(folder.appending("Library.sqlite"), contents.stores["one-delete"] ?? [])
        }
      case .complete, .unlabelled: try write(folder.appending("Library.sqlite"), contents.stores["one-delete"] ?? [])
      case .halfMade, .none, .part: break
      }
    }

    private func make(_ intent: Intent, _ combination: Combination) throws {
      let intents = try world.intents(plain)
      let path = intents.directory.appending(PathText.digest(PathText.bytes(of: location.database)) + ".json")
      switch intent {
      case .none: return
      case .unreadable: return try write(path, Array("{ \"format\": 1".utf8))
      case .newer: return try write(path, Array("{ \"format\": 99, \"anything\": [] }".utf8))
      case .readable, .older, .ofAnotherStore: break
      }
      let there = try SourceFingerprint(of: location, files: plain)
      let dummy = SourceFingerprint(
        database: SourceFingerprint.Stamp(try #require(try plain.status(world.state))), log: nil)
      let named = intent == .ofAnotherStore ? world.stores.appending("Another.sqlite") : location.database
      let boot = combination.staged == .otherBoot ? "another boot" : try plain.bootIdentifier()
      if intent == .older {
        // Written by hand, as the first release wrote it.
        let stamp = (there ?? dummy).database
        let text = """
          {"format":1,"store":"\(PathText.encode(named))","job":"ab12","planFingerprint":"plan","stage":"building",
           "source":{"database":{"file":{"device":\(stamp.file.device),"inode":\(stamp.file.inode)},\
          "size":\(stamp.size),
           "modified":\(stamp.modified)}},"bootIdentifier":"\(boot)",\
          "journalMode":"\(combination.log == .rollback ? "delete" : "wal")",
           "from":{"name":"One","digest":"one"},"to":{"name":"Two","digest":"two"},"startedAt":1900000000}
          """
        return try write(path, Array(text.utf8))
      }
      let record = ReplacementIntent(
        location: CanonicalStoreLocation(unresolved: named), job: "ab12", planFingerprint: "plan",
        source: there ?? dummy,
        bootIdentifier: boot, staged: nil, journalMode: combination.log == .rollback ? .delete : .wal,
        from: StoreVersionMark(name: "One", digest: "one"), to: StoreVersionMark(name: "Two", digest: "two"),
        storeUUID: nil, startedAt: 1_900_000_000)
      try intents.write(record)
      if intent == .ofAnotherStore {
        let written = intents.directory.appending(PathText.digest(PathText.bytes(of: named)) + ".json")
        try plain.rename(written, to: path)
      }
    }

    func runner(_ files: any DurableFileSystem = LinuxFileSystem()) throws -> RecoveryRunner {
      RecoveryRunner(
        files: files, intents: try world.intents(files), lockDirectory: world.locks, identify: TestWorld.identify)
    }

    func recover(_ files: any DurableFileSystem = LinuxFileSystem(), discards: Bool = false) throws -> RecoveryOutcome {
      var runner = try runner(files)
      runner.discardsCheckpoints = discards
      return try runner.recover(location, rule: rule)
    }

    /// Every file below the machine's directories with its content; locks and indexes of logs are left out.
    func everything() throws -> [String: [UInt8]] {
      var found: [String: [UInt8]] = [:]
      func walk(_ folder: FilePath, _ prefix: String) throws {
        for name in try plain.names(in: folder) where !name.string.hasSuffix("-shm") && !name.string.hasSuffix(".lock")
        {
          let path = folder.appending(name)
          let label = prefix + name.string
          switch try plain.status(path)?.kind {
          case .directory:
            found[label + "/"] = []
            try walk(path, label + "/")
          case .regular: found[label] = try plain.read(path, limit: 1 << 20)
          default: break
          }
        }
      }
      try walk(world.home, "")
      return found
    }
  }

  /// Checks what one recovery has made of a combination.
  private func check(_ combination: Combination, _ disk: Disk, _ outcome: RecoveryOutcome, _ before: [String: [UInt8]])
    throws
  {
    let after = try disk.everything()
    let what = "\(combination): \(outcome.decision)"
    switch (combination.expected, outcome.decision) {
    case (.nothing, .nothingToDo), (.cleaned, .startAgain), (.resume, .resume), (.completed, .completed): break
    case (.quarantine(let wanted), .quarantine(let reason)):
      #expect(reason == wanted, "\(what)")
      #expect(outcome.error?.hint != nil && outcome.error?.place.store == disk.location.database, "\(what)")
    default: Issue.record("\(what): expected \(combination.expected)")
    }
    // The user's: never touched, whatever was found.
    for name in [
      "notes.txt", "Library.sqlite.bak", ".Library.sqlite.txt", ".Other.sqlite.hop-ab12-0.tmp", "Library.sqlite.tmp",
    ] {
      #expect(after["stores/\(name)"] == Array(name.utf8), "\(what): \(name)")
    }
    #expect(after["stores/.Other.sqlite.hopd-backups/"] != nil, "\(what)")
    switch combination.expected {
    case .nothing, .quarantine:
      #expect(after == before, "\(what): \(Set(after.keys).symmetricDifference(before.keys))")
      return
    case .cleaned, .resume, .completed: break
    }
    // The store is what it was; only its journal mode may be set back.
    let (old, new) = (before["stores/Library.sqlite"] ?? [], after["stores/Library.sqlite"] ?? [])
    let isBack =
      combination.log == .lost && combination.isKnown && combination.store == .old && combination.expected == .cleaned
    #expect(isBack ? new.count == old.count && new[18] == 2 && new[19] == 2 : new == old, "\(what): the store")
    // What is hopd's.
    let staged = after.keys.filter { $0.hasPrefix("stores/.Library.sqlite.hop-") }
    let stagedBefore = before.keys.filter { $0.hasPrefix("stores/.Library.sqlite.hop-") }
    #expect(Set(staged) == (combination.expected == .resume ? Set(stagedBefore) : []), "\(what): \(staged)")
    let hasRecord = after.keys.contains { $0.hasPrefix("state/intents/") && $0.hasSuffix(".json") }
    #expect(hasRecord == [.resume, .completed].contains(combination.expected), "\(what): record")
    let backups = after.keys.filter {
      $0.contains(".hopd-backups/2") && !$0.hasSuffix("/") && $0.hasSuffix("Library.sqlite")
    }
    let keepsBackup = combination.backup == .complete || combination.backup == .unlabelled
    #expect(backups.count == (keepsBackup ? 1 : 0), "\(what): \(backups)")
    #expect(!after.keys.contains { $0.contains(".part") }, "\(what)")
    #expect(try disk.plain.status(disk.location.database)?.links == 1, "\(what)")
  }

  @Test func everyCombination() throws {
    #expect(Self.all.count == 5292)
    let disk = try Disk(try Contents())
    var seen: Set<String> = []
    for combination in Self.chosen(50) {
      try disk.make(combination)
      let before = try disk.everything()
      let outcome = try disk.recover()
      try check(combination, disk, outcome, before)
      seen.insert("\(combination.expected)")
      // Again: the same result where something is left to report or for others to do, and no change at all.
      let between = try disk.everything()
      let again = try disk.recover()
      switch combination.expected {
      case .nothing, .cleaned: #expect(again.decision == .nothingToDo, "\(combination): \(again.decision)")
      case .resume: #expect(again.decision == .resume([]), "\(combination): \(again.decision)")
      case .completed:
        #expect(again.decision == .completed([.syncDirectory]), "\(combination): \(again.decision)")
      case .quarantine: #expect(again.decision == outcome.decision, "\(combination)")
      }
      #expect(try disk.everything() == between, "\(combination): a second recovery changes something")
    }
    #expect(seen.count == 8, "\(seen)")
  }

  @Test("On request a checkpoint goes as stale work does, and nothing else is done otherwise")
  func discarding() throws {
    let disk = try Disk(try Contents())
    let resumable = Self.all.filter(\.mayResume).enumerated().filter { $0.offset % 5 == 0 }.map(\.element)
    #expect(resumable.count > 20)
    for var combination in resumable + Self.chosen(10) {
      combination.discards = true
      try disk.make(combination)
      let before = try disk.everything()
      var examiner = try disk.runner()
      examiner.discardsCheckpoints = true
      let seen = try examiner.examine(disk.location, rule: disk.rule)
      #expect(try disk.everything() == before, "\(combination): a look changes something")
      let outcome = try disk.recover(discards: true)
      #expect(seen.decision == outcome.decision, "\(combination)")
      try check(combination, disk, outcome, before)
      guard combination.expected == .cleaned else { continue }
      #expect(try disk.recover().decision == .nothingToDo, "\(combination)")
    }
  }

  @Test("A discard that is cut off leaves the store, and the next run removes the rest")
  func discardCutOff() throws {
    let disk = try Disk(try Contents())
    guard var combination = Self.all.first(where: { $0.mayResume && $0.staged == .severalHops && $0.log == .wal })
    else {
      Issue.record("no such combination")
      return
    }
    combination.discards = true
    try disk.make(combination)
    let counting = FaultyFileSystem()
    _ = try disk.recover(counting, discards: true)
    for call in 1...max(1, counting.calls.count) {
      try disk.make(combination)
      let before = try disk.everything()
      _ = try? disk.recover(FaultyFileSystem(.init(failAt: call, isSticky: true)), discards: true)
      let outcome = try disk.recover(discards: true)
      if outcome.decision != .nothingToDo { try check(combination, disk, outcome, before) }
      let after = try disk.everything()
      #expect(after["stores/Library.sqlite"] == before["stores/Library.sqlite"], "at \(call)")
      #expect(!after.keys.contains { $0.hasPrefix("stores/.Library.sqlite.hop-") }, "at \(call)")
    }
  }

  @Test("Cut off at each call, once and for good, it comes to the same end the next time")
  func cutOff() throws {
    let disk = try Disk(try Contents())
    for combination in Self.chosen(4) {
      try disk.make(combination)
      let counting = FaultyFileSystem()
      _ = try disk.recover(counting)
      guard !counting.calls.isEmpty else { continue }
      for call in 1...counting.calls.count {
        for isSticky in [true, false] {
          try disk.make(combination)
          let before = try disk.everything()
          let first = try? disk.recover(FaultyFileSystem(.init(failAt: call, isSticky: isSticky)))
          let outcome = try disk.recover()
          // The first may have come far enough that there is nothing more to do.
          if outcome.decision == .nothingToDo {
            #expect(
              combination.expected == .cleaned, "\(combination) at \(call), \(String(describing: first?.decision))")
          } else {
            try check(combination, disk, outcome, before)
          }
          #expect(try disk.plain.status(disk.location.database)?.links == 1 || combination.store == .folder)
          let rest = try disk.everything().keys.filter { $0.hasPrefix("stores/.Library.sqlite.hop-") }
          #expect(rest.isEmpty || combination.expected == .resume, "\(combination) at \(call): \(rest)")
        }
      }
    }
  }
}
