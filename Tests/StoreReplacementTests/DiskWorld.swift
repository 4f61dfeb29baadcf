// The little machine of TestWorld on a simulated disk: one store, hopd's state directory, and the migration path to
// version 2. A run is recorded, and every image that a power cut could leave of it is judged by the promise
// (docs/formats/replacement.md, "Promise").

import Diagnostics
import DurableFiles
import Glibc
import OtherPrograms
import PersistentStore
import SQLite
import SimulatedDisk
import SystemPackage

@testable import StoreReplacement
@testable import StoreVerification

/// The kind of store that is replaced, and the mode.
struct DiskScenario: Sendable, CustomStringConvertible {
  var kind: SourceKind
  var hasExternalData = false
  /// Objects were set aside: their file is published before the swap.
  var hasQuarantine = false
  var keep = 1
  var mode = ReplacementMode.rename
  /// Backups go to a directory of their own.
  var isElsewhere = false

  var description: String {
    let words = [
      "\(kind)", hasExternalData ? "external data" : nil, hasQuarantine ? "quarantine" : nil,
      keep == 0 ? "no backup" : nil, mode == .inPlace ? "in place" : nil, isElsewhere ? "backups elsewhere" : nil,
    ]
    return words.compactMap { $0 }.joined(separator: ", ")
  }
}

/// The machine.
final class DiskWorld {
  let disk: SimulatedDisk
  let scenario: DiskScenario
  /// A call failed, and so may have the cleaning up: a file too many is allowed where nothing is lost.
  var hasFailed = false
  /// Locks are the kernel's: they lie on the real file system and go with the process.
  let locks: LockDirectory
  /// Called when the staged store is complete, before it takes its place.
  var beforeSwap: () throws -> Void = {}
  var observer: SwapObserver = { _ in }
  var inPlaceObserver: InPlaceObserver = { _ in }
  let location: CanonicalStoreLocation
  var stores: FilePath { disk.root.appending("stores") }
  var state: FilePath { disk.root.appending("state") }
  var vault: FilePath { disk.root.appending("vault") }
  static let external = ["A0B1", "C2D3"]
  static let quarantined = Array("what was set aside".utf8)

  /// A machine with a store of version 1 on it, everything safe.
  convenience init(_ scenario: DiskScenario) throws {
    try self.init(SimulatedDisk(), scenario, LockDirectory())
    try disk.mounted {
      for directory in [stores, state, vault] { try disk.makeDirectory(directory, mode: 0o755) }
      try makeStore()
      if scenario.hasExternalData {
        for directory in [location.supportDirectory, location.externalDataDirectory] {
          try disk.makeDirectory(directory, mode: 0o755)
        }
        for name in DiskWorld.external {
          try disk.createFile(
            location.externalDataDirectory.appending(name), Array("content of \(name)".utf8), mode: 0o644)
        }
      }
    }
    disk.settle()
  }

  private init(_ disk: SimulatedDisk, _ scenario: DiskScenario, _ locks: LockDirectory) throws {
    self.disk = disk
    self.scenario = scenario
    self.locks = locks
    location = CanonicalStoreLocation(unresolved: disk.root.appending("stores/Library.sqlite"))
  }

  /// The same machine with another disk: a copy, or an image of a power cut.
  func with(_ disk: SimulatedDisk) throws -> DiskWorld {
    let world = try DiskWorld(disk, scenario, locks)
    world.hasFailed = hasFailed
    return world
  }

  private func makeStore() throws {
    let draft = StoreLocation(database: stores.appending("draft"))
    var pairs = [(draft.database, location.database)]
    do {
      let connection = try Connection.ofApp(draft.database, .create)
      if scenario.kind != .rollback { _ = try connection.text("PRAGMA journal_mode = WAL") }
      try connection.execute(
        """
        PRAGMA wal_autocheckpoint = 0;
        CREATE TABLE version(digest TEXT); INSERT INTO version VALUES('one');
        CREATE TABLE book(id INTEGER PRIMARY KEY, title TEXT);
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) INSERT INTO book \
        SELECT i, 'title ' || i FROM n;
        PRAGMA wal_checkpoint;
        WITH n(i) AS (SELECT 51 UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO book \
        SELECT i, 'title ' || i FROM n;
        """)
      let isHot = scenario.kind == .hotLog || scenario.kind == .hotLogWithoutIndex
      if isHot { pairs.append((draft.writeAheadLog, location.writeAheadLog)) }
      if scenario.kind == .hotLog { pairs.append((draft.sharedMemory, location.sharedMemory)) }
      if scenario.kind == .wal { _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)") { _ in } }
      for (from, to) in pairs { try disk.copyFile(from: from, to: to) }
    }
    for file in [draft.database] + draft.sideFiles { try disk.unlinkIfPresent(file) }
  }

  // MARK: The migration path

  func intents() throws -> IntentStore { try IntentStore(stateDirectory: state, files: disk) }

  var rule: BackupRule { BackupRule(keep: scenario.keep, directory: scenario.isElsewhere ? vault : nil) }

  /// The whole way of one store, as the pipeline goes it; what comes back is the report of success.
  @discardableResult
  func migrate(job: String = "ab12", now: Int64 = 1_900_000_000) throws -> ReplacedStore {
    let intents = try intents()
    guard let source = try SourceFingerprint(of: location, files: disk) else {
      throw HopdError(.notFound, "there is no store", at: Place(store: location.database))
    }
    let store = try LockedStore(location: location, lockDirectory: locks.path, files: disk)
    defer { store.release() }
    let area = StagingArea(location: store.location, job: job, files: disk)
    let intent = ReplacementIntent(
      location: store.location, job: job, planFingerprint: "plan", source: source,
      bootIdentifier: try disk.bootIdentifier(), staged: area.path(hop: nil), journalMode: store.journalMode,
      from: StoreVersionMark(name: "One", digest: "one"), to: StoreVersionMark(name: "Two", digest: "two"),
      storeUUID: nil, startedAt: now)
    try intents.write(intent)
    let verified = VerifiedStore(staged: try stage(store, area), checks: [])
    let quarantine = QuarantineFile(area: area, files: disk)
    do {
      if scenario.hasQuarantine {
        try disk.createUnsyncedFile(quarantine.staged, DiskWorld.quarantined, mode: 0o600)
        _ = try quarantine.publish(attributesOf: store.location.database)
      }
      try beforeSwap()
      let result = try swap().replace(store, with: verified, intent: intent, backup: rule, now: now)
      try? intents.remove(store.location, afterSuccess: true)
      return result
    } catch {
      // As the pipeline does where the old store stays.
      if (error as? HopdError)?.code != .replacementUnconfirmed { try? quarantine.withdraw() }
      throw error
    }
  }

  func swap() throws -> StoreSwap {
    // Step by step: pages may reach the disk before the commit.
    var swap = StoreSwap(
      files: disk, intents: try intents(), identify: TestWorld.identify, mode: scenario.mode, observer: observer,
      inPlaceObserver: inPlaceObserver, pagesPerStep: 1)
    // This disk's files are not the kernel's, and no other program has them open.
    swap.asksForOpeners = false
    return swap
  }

  /// Version 2 of the store, written beside it as scratch.
  func stage(_ store: LockedStore, _ area: StagingArea) throws -> FilePath {
    let path = try area.create(hop: nil)
    let target = try HopdError.sqlite("build", path) { try Connection(path: path, access: .create) }
    try HopdError.sqlite("build", path) {
      try target.execute(
        """
        PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; BEGIN;
        CREATE TABLE shelf(name TEXT); INSERT INTO shelf VALUES('so that no page is as it was');
        CREATE TABLE version(digest TEXT); INSERT INTO version VALUES('two');
        CREATE TABLE book(id INTEGER PRIMARY KEY, title TEXT, pages INTEGER DEFAULT 0);
        """)
      let rows = try store.connection.rows("SELECT id, title FROM book", [], { ($0.integer(at: 0), $0.text(at: 1)) })
      for row in rows {
        try target.run("INSERT INTO book(id, title) VALUES(?, ?)", [.integer(row.0), .text(row.1 ?? "")])
      }
      try target.execute("COMMIT")
    }
    return path
  }

  /// The next start, and the report after it.
  @discardableResult
  func recover() throws -> RecoveryOutcome {
    let runner = RecoveryRunner(
      files: disk, intents: try intents(), lockDirectory: locks.path, identify: TestWorld.identify)
    let outcome = try runner.recover(location, planFingerprint: "another", rule: rule)
    if case .completed = outcome.decision { try intents().remove(outcome.location, afterSuccess: true) }
    return outcome
  }

  // MARK: What a user sees

  /// The version of a store, read as any program would read it; throws when it is damaged or lacks a row.
  func version(of database: FilePath? = nil) throws -> String {
    let connection = try Connection.ofApp(database ?? location.database)
    guard try connection.text("PRAGMA integrity_check") == "ok" else { throw Finding("integrity_check finds damage") }
    let rows = try connection.integer("SELECT count(*) FROM book WHERE title = 'title ' || id AND id BETWEEN 1 AND 60")
    guard rows == TestWorld.rows else { throw Finding("\(rows ?? -1) rows of \(TestWorld.rows) are left") }
    return try TestWorld.identify(connection)
  }

  /// Throws unless the external data of a store is complete.
  func requireExternalData(of store: StoreLocation) throws {
    guard scenario.hasExternalData else { return }
    for name in DiskWorld.external {
      let file = store.externalDataDirectory.appending(name)
      guard try disk.status(file) != nil, try disk.read(file, limit: 1000) == Array("content of \(name)".utf8) else {
        throw Finding("the external file \(name) is missing or damaged")
      }
    }
  }

  /// Names beside the store that only an unfinished job has.
  func leftovers() throws -> [String] {
    var found = try disk.names(in: stores).map(\.string).filter { $0.contains(".hop-") }
    found += try BackupSet(location: location, rule: rule, files: disk).unfinished().map(\.string)
    found += try intents().all().map(\.file.string)
    return found
  }
}

/// A failure that a user would report.
struct Finding: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A directory of the real file system, in memory where there is one, that goes with the value.
final class LockDirectory {
  let path: FilePath

  init() throws {
    var template = Array("\(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp")/hopd-locks-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Errno(rawValue: errno) }
    path = FilePath(platformString: template)
  }

  deinit { try? run("/bin/rm", "-rf", path.string) }
}
