// A little machine in a temporary directory: one store, hopd's state and lock directories, and a migration path that
// writes version 2 of the store from its rows. Copies of the whole machine stand for what a kill leaves behind.

import Diagnostics
import DurableFiles
import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import StoreReplacement
@testable import StoreVerification

/// How the store of a world is kept.
enum SourceKind: CaseIterable, CustomTestStringConvertible {
  case rollback
  /// WAL mode, cleanly closed.
  case wal
  /// WAL mode, left by a killed writer: committed rows are in the log only.
  case hotLog
  /// The same, with the killed writer's -shm gone.
  case hotLogWithoutIndex

  var journalMode: JournalMode { self == .rollback ? .delete : .wal }
  var testDescription: String { "\(self)" }
}

final class TestWorld {
  let root: FilePath
  let kind: SourceKind
  let location: CanonicalStoreLocation
  var home: FilePath { root.appending("home") }
  var stores: FilePath { home.appending("stores") }
  var state: FilePath { home.appending("state") }
  var locks: FilePath { home.appending("locks") }
  /// Rows that were committed before the migration path.
  static let rows: Int64 = 60
  let plain = LinuxFileSystem()

  /// Lies in memory where there is a file system for that: what is simulated here are kills, which lose nothing that
  /// the kernel has; syncs only cost time. `onDisk` is for what memory does not keep.
  init(
    _ kind: SourceKind, name: String = "Library.sqlite", externalFiles: [String] = [], onDisk: Bool = false
  ) throws {
    let isInMemory = !onDisk && access("/dev/shm", W_OK) == 0
    var template = Array("\(isInMemory ? "/dev/shm" : "/tmp")/hopd-swap-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Errno(rawValue: errno) }
    root = try plain.canonical(FilePath(platformString: template))
    self.kind = kind
    location = CanonicalStoreLocation(unresolved: root.appending("home/stores").appending(name))
    for directory in [home, stores, state, locks] { try plain.makeDirectory(directory, mode: 0o755) }
    try makeStore()
    if !externalFiles.isEmpty {
      try plain.makeDirectory(location.supportDirectory, mode: 0o755)
      try plain.makeDirectory(location.externalDataDirectory, mode: 0o755)
      for file in externalFiles {
        try plain.createFile(
          location.externalDataDirectory.appending(file), Array("content of \(file)".utf8), mode: 0o644)
      }
    }
  }

  deinit { try? run("/bin/rm", "-rf", root.string) }

  private func makeStore() throws {
    let draft = StoreLocation(database: stores.appending("draft"))
    let connection = try Connection.ofApp(draft.database, .create)
    if kind != .rollback { _ = try connection.text("PRAGMA journal_mode = WAL") }
    try connection.execute(
      """
      PRAGMA wal_autocheckpoint = 0;
      CREATE TABLE version(digest TEXT); INSERT INTO version VALUES('one');
      CREATE TABLE book(id INTEGER PRIMARY KEY, title TEXT);
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) INSERT INTO book
        SELECT i, 'title ' || i || hex(zeroblob(150)) FROM n;
      PRAGMA wal_checkpoint;
      WITH n(i) AS (SELECT 51 UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO book \
      SELECT i, 'late ' || i FROM n;
      """)
    var pairs = [(draft.database, location.database)]
    if kind == .hotLog || kind == .hotLogWithoutIndex { pairs.append((draft.writeAheadLog, location.writeAheadLog)) }
    if kind == .hotLog { pairs.append((draft.sharedMemory, location.sharedMemory)) }
    if kind == .wal { _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)") { _ in } }
    for (from, to) in pairs { try plain.copyFile(from: from, to: to) }
    for file in [draft.database] + draft.sideFiles { try plain.unlinkIfPresent(file) }
  }

  // MARK: The migration path

  func intents(_ files: any DurableFileSystem) throws -> IntentStore {
    try IntentStore(stateDirectory: state, files: files)
  }

  static func identify(_ connection: Connection) throws -> String {
    try connection.text("SELECT digest FROM version") ?? ""
  }

  /// Version 2 of the store, written beside it.
  func stage(_ store: LockedStore, _ area: StagingArea) throws -> VerifiedStore {
    let path = try area.create(hop: nil)
    let target = try Connection(path: path, access: .create)
    try target.execute(
      """
      PRAGMA synchronous = OFF; BEGIN;
      CREATE TABLE version(digest TEXT); INSERT INTO version VALUES('two');
      CREATE TABLE book(id INTEGER PRIMARY KEY, title TEXT, pages INTEGER DEFAULT 0);
      """)
    for row in try store.connection.rows("SELECT id, title FROM book", [], { ($0.integer(at: 0), $0.text(at: 1)) }) {
      try target.run("INSERT INTO book(id, title) VALUES(?, ?)", [.integer(row.0), .text(row.1 ?? "")])
    }
    try target.execute("COMMIT")
    return VerifiedStore(staged: path, checks: [])
  }

  /// A staged file as an interrupted run leaves one, with three bytes.
  func leave(_ area: StagingArea, hop: Int) throws -> FilePath {
    let path = area.path(hop: hop)
    try plain.createUnsyncedFile(path, [1, 2, 3], mode: 0o600)
    return path
  }

  func intent(_ store: LockedStore, _ area: StagingArea, source: SourceFingerprint) throws -> ReplacementIntent {
    ReplacementIntent(
      location: store.location, job: area.job, planFingerprint: "plan", source: source,
      bootIdentifier: try plain.bootIdentifier(), staged: area.path(hop: nil), journalMode: store.journalMode,
      from: StoreVersionMark(name: "One", digest: "one"), to: StoreVersionMark(name: "Two", digest: "two"),
      storeUUID: store.storeUUID, startedAt: 1_900_000_000)
  }

  /// Holds the store. A program that another test starts has this process's files open for the instant before it runs.
  private func hold(_ files: any DurableFileSystem) throws -> LockedStore {
    let end = ContinuousClock.now + .seconds(2)
    while true {
      do {
        return try LockedStore(location: location, lockDirectory: locks, files: files)
      } catch let error as HopdError where error.code == .storeBusy && ContinuousClock.now < end {
        usleep(10_000)
      }
    }
  }

  /// The whole way of one store, as the pipeline goes it. `meanwhile` runs when everything is ready for the swap.
  @discardableResult
  func migrate(
    files: any DurableFileSystem, job: String = "ab12", backup: BackupRule = BackupRule(),
    journalMode: JournalModeRule = .keep, now: Int64 = 1_900_000_000, mode: ReplacementMode? = .rename,
    patience: Duration? = nil, meanwhile: (LockedStore) throws -> Void = { _ in },
    observer: @escaping SwapObserver = { _ in },
    inPlaceObserver: @escaping InPlaceObserver = { _ in }, keepAlive: @escaping () -> Void = {}
  ) throws -> ReplacedStore {
    let intents = try intents(files)
    let source = try #require(try SourceFingerprint(of: location, files: files))
    let store = try hold(files)
    defer { store.release() }
    let area = StagingArea(location: store.location, job: job, files: files)
    let intent = try intent(store, area, source: source)
    try intents.write(intent)
    let verified = try stage(store, area)
    try meanwhile(store)
    var swap = StoreSwap(
      files: files, intents: intents, identify: TestWorld.identify, mode: mode, keepAlive: keepAlive,
      observer: observer,
      inPlaceObserver: inPlaceObserver, pagesPerStep: 1)
    // Snapshots are taken by another program, which opens the store; who does not ask for patience does not mean that.
    swap.asksForOpeners = patience != nil
    swap.patience = patience ?? swap.patience
    let result = try swap.replace(
      store, with: verified, intent: intent, backup: backup, journalMode: journalMode, now: now)
    try intents.remove(store.location)
    return result
  }

  func recover(
    _ files: any DurableFileSystem = LinuxFileSystem(), plan: String? = "another"
  ) throws -> RecoveryOutcome {
    let runner = RecoveryRunner(
      files: files, intents: try intents(files), lockDirectory: locks, identify: TestWorld.identify)
    let outcome = try runner.recover(location, planFingerprint: plan)
    if case .completed = outcome.decision { try intents(files).remove(outcome.location) }
    return outcome
  }

  // MARK: What a user sees

  /// Version and number of rows, read as any program would read the store; integrity is checked on the way.
  func content(of database: FilePath? = nil) throws -> (version: String, rows: Int64) {
    let connection = try Connection.ofApp(database ?? location.database)
    #expect(try connection.text("PRAGMA integrity_check") == "ok")
    return (try TestWorld.identify(connection), try connection.integer("SELECT count(*) FROM book") ?? -1)
  }

  /// The names in the store's directory.
  var names: [String] { (try? plain.names(in: stores).map(\.string)) ?? [] }

  /// Every file below the store's directory with its content, -shm left out: it is an index SQLite makes anew.
  func everything() throws -> [String: [UInt8]] {
    var found: [String: [UInt8]] = [:]
    for name in names where !name.hasSuffix("-shm") {
      let path = stores.appending(name)
      if try plain.status(path)?.kind == .regular { found[name] = try plain.read(path, limit: 1 << 24) }
    }
    return found
  }

  /// Old or new and whole; recovery reports which; a retry finishes; hopd leaves no file behind, and the old store is
  /// kept once, unless `keeps` is false.
  func checkRecovery(
    _ point: String, mode: ReplacementMode = .rename, keeps: Bool = true, successReported: Bool = false
  ) throws {
    let outcome = try recover()
    let found = try content()
    #expect(found.rows == TestWorld.rows, "\(point)")
    switch outcome.decision {
    case .completed: #expect(found.version == "two", "\(point)")
    case .quarantine(let reason): Issue.record("\(point): quarantine \(reason)")
    default: break
    }
    if successReported { #expect(found.version == "two", "\(point): success was reported") }
    #expect(
      !names.contains { $0.contains(".hop-") },
      "\(point): \(outcome.decision) \(outcome.findings.map { "\($0)" } ?? "") \(names)")
    #expect(try recover().decision == .nothingToDo, "\(point)")
    let set = try BackupSet(location: location, rule: BackupRule(), files: plain)
    if found.version == "one" {
      #expect(try plain.status(location.database)?.links == 1, "\(point)")
      #expect(try set.generations().isEmpty, "\(point): a backup of what the store still holds")
      try migrate(files: LinuxFileSystem(), job: "cd34", backup: keeps ? BackupRule() : .none, mode: mode)
      let after = try content()
      #expect(after.version == "two" && after.rows == TestWorld.rows, "\(point)")
    }
    let backups = try set.generations()
    #expect(backups.count == (keeps ? 1 : 0), "\(point): how often the old store is kept")
    if let backup = backups.first {
      let old = try content(of: backup.database)
      #expect(old.version == "one" && old.rows == TestWorld.rows, "\(point)")
      if try plain.status(location.externalDataDirectory) != nil {
        let here = try plain.names(in: location.externalDataDirectory)
        let kept = try plain.names(in: StoreLocation(database: backup.database).externalDataDirectory)
        #expect(kept == here, "\(point): external files of the backup")
      }
    }
  }

  // MARK: Kills

  /// Copies the machine as it is at this moment, hard links and all; by another process, so that no lock is lost.
  func snapshot(_ name: String) throws { try run("/bin/cp", "-a", home.string, root.appending(name).string) }

  /// The machine starts again as it was at the snapshot.
  func reboot(into name: String) throws {
    try run("/bin/rm", "-rf", home.string)
    try plain.rename(root.appending(name), to: home)
  }
}

/// Runs a program to its end.
func run(_ program: String, _ arguments: String...) throws {
  var pid: pid_t = 0
  var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
  words.append(nil)
  defer { for word in words { free(word) } }
  let code = posix_spawn(&pid, program, nil, nil, words, nil)
  guard code == 0 else { throw Errno(rawValue: code) }
  var status: Int32 = 0
  while waitpid(pid, &status, 0) == -1, errno == EINTR {}
  guard status == 0 else { throw HopdError(.internalError, "\(program) failed with status \(status)") }
}

/// The code of the error `body` throws; nil when it throws none.
func code(of body: () throws -> Void) -> HopdError.Code? {
  do {
    try body()
    return nil
  } catch {
    return (error as? HopdError)?.code ?? HopdError.Code("\(error)", exit: .software)
  }
}
