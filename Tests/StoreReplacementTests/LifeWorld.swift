// A store with its backups on a simulated disk over a long time: an app writes rows, hopd migrates, an operator
// restores and prunes, the power fails. Versions are one, two and three; each row has a number that is never used
// twice.

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

/// A machine that lives through many steps.
final class LifeWorld {
  private(set) var disk: SimulatedDisk
  let locks: LockDirectory
  /// The rule that the operator has configured.
  var rule: BackupRule
  var mode = ReplacementMode.rename
  /// The clock of the machine.
  var now: Int64 = 1_900_000_000
  private var jobs = 0
  static let versions = ["one", "two", "three"]

  var stores: FilePath { disk.root.appending("stores") }
  var vault: FilePath { disk.root.appending("vault") }
  private var state: FilePath { disk.root.appending("state") }
  var location: CanonicalStoreLocation { CanonicalStoreLocation(unresolved: stores.appending("Library.sqlite")) }

  init(hasVault: Bool) throws {
    disk = SimulatedDisk()
    locks = try LockDirectory()
    rule = BackupRule()
    try disk.mounted {
      for directory in [stores, state, vault] { try disk.makeDirectory(directory, mode: 0o755) }
    }
    if hasVault { rule.directory = vault }
    disk.settle()
  }

  /// Another image of the disk takes its place: the machine starts again.
  func reboot(into image: SimulatedDisk) { disk = image }

  func job() -> String {
    jobs += 1
    return "a\(jobs)"
  }

  // MARK: The app and the user

  /// Makes a store of version one with its own identifier.
  func create(uuid: String) throws {
    let connection = try Connection(path: location.database, access: .create)
    try connection.execute(
      """
      CREATE TABLE version(digest TEXT); INSERT INTO version VALUES('one'); CREATE TABLE book(id INTEGER PRIMARY KEY);
      CREATE TABLE Z_METADATA(Z_VERSION INTEGER PRIMARY KEY, Z_UUID TEXT, Z_PLIST BLOB);
      INSERT INTO Z_METADATA VALUES(1, '\(uuid)', NULL);
      """)
  }

  /// Commits a row.
  func write(_ id: Int64) throws {
    try Connection.ofApp(location.database).execute("INSERT INTO book VALUES(\(id))")
  }

  /// Takes the store away with its side files, or gives it another name.
  func takeAway(to name: FilePath? = nil) throws {
    let away = name.map { StoreLocation(database: $0) }
    for (index, file) in ([location.database] + location.sideFiles).enumerated() where try disk.status(file) != nil {
      if let away {
        try disk.rename(file, to: ([away.database] + away.sideFiles)[index])
      } else {
        try disk.unlink(file)
      }
    }
    try disk.syncDirectory(stores)
  }

  var hasStore: Bool { get throws { try disk.status(location.database) != nil } }

  // MARK: hopd and the operator

  func backups() throws -> BackupSet { try BackupSet(location: location, rule: rule, files: disk) }

  private func swap() throws -> StoreSwap {
    var swap = StoreSwap(
      files: disk, intents: try IntentStore(stateDirectory: state, files: disk), identify: TestWorld.identify,
      mode: mode,
      pagesPerStep: 1)
    swap.asksForOpeners = false  // a simulated disk gives no leases
    return swap
  }

  func mark(_ version: String) -> StoreVersionMark { StoreVersionMark(name: version, digest: version) }

  /// The migration to a version, by hopd or with `asked` by a person. Returns the removed backups; nil where the store
  /// is held back.
  func migrate(to target: String, asked: Bool) throws -> [BackupRemoval]? {
    let intents = try IntentStore(stateDirectory: state, files: disk)
    guard let source = try SourceFingerprint(of: location, files: disk) else { return [] }
    let store = try LockedStore(location: location, lockDirectory: locks.path, files: disk)
    defer { store.release() }
    let from = try TestWorld.identify(store.connection)
    guard let here = Self.versions.firstIndex(of: from), let there = Self.versions.firstIndex(of: target), here < there
    else { return [] }
    let pins = PinStore(location: location, files: disk)
    let pin = try pins.pin(
      against: mark(target), storeUUID: store.storeUUID, digest: from, rule: .newVersion)
    if !asked, pin != nil { return nil }
    let area = StagingArea(location: store.location, job: job(), files: disk)
    let intent = ReplacementIntent(
      location: store.location, job: area.job, planFingerprint: "plan", source: source,
      bootIdentifier: try disk.bootIdentifier(), staged: area.path(hop: nil), journalMode: store.journalMode,
      from: mark(from), to: mark(target), storeUUID: store.storeUUID, startedAt: now)
    try intents.write(intent)
    let staged = try stage(store, area, target)
    let result = try swap().replace(
      store, with: VerifiedStore(staged: staged, checks: []), intent: intent, backup: rule, now: now)
    try pins.remove()
    try intents.remove(store.location, afterSuccess: true)
    return result.removedBackups
  }

  private func stage(_ store: LockedStore, _ area: StagingArea, _ target: String) throws -> FilePath {
    let path = try area.create(hop: nil)
    try HopdError.sqlite("build", path) {
      let connection = try Connection(path: path, access: .create)
      try connection.execute(
        """
        PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; BEGIN;
        CREATE TABLE shelf(name TEXT); INSERT INTO shelf VALUES('so that no page is as it was');
        CREATE TABLE version(digest TEXT); INSERT INTO version VALUES('\(target)');
        CREATE TABLE book(id INTEGER PRIMARY KEY);
        CREATE TABLE Z_METADATA(Z_VERSION INTEGER PRIMARY KEY, Z_UUID TEXT, Z_PLIST BLOB);
        INSERT INTO Z_METADATA VALUES(1, '\(store.storeUUID ?? "")', NULL);
        """)
      for id in try store.connection.rows("SELECT id FROM book", [], { $0.integer(at: 0) }) {
        try connection.execute("INSERT INTO book VALUES(\(id))")
      }
      try connection.execute("COMMIT")
    }
    return path
  }

  func restore(_ database: FilePath, pins: Bool, anyway: Bool) throws -> RestoredStore {
    try Restore(swap: swap(), lockDirectory: locks.path).restore(
      database, to: location, job: job(), backup: rule, now: now,
      options: RestoreOptions(pins: pins, force: anyway))
  }

  func recover() throws -> RecoveryOutcome {
    let intents = try IntentStore(stateDirectory: state, files: disk)
    let outcome = try RecoveryRunner(
      files: disk, intents: intents, lockDirectory: locks.path, identify: TestWorld.identify
    ).recover(location, planFingerprint: "another", rule: rule)
    if case .completed = outcome.decision { try intents.remove(outcome.location, afterSuccess: true) }
    return outcome
  }

  func sweep() throws -> [BackupRemoval] {
    var removed: [BackupRemoval] = []
    _ = try BackupSweep(
      BackupSurvey(of: CanonicalDirectory(resolving: stores, files: disk), rule: rule, files: disk), rule: rule
    ).run(
      now: now, removed: { removed.append($1) }, problem: { _ in })
    return removed
  }

  // MARK: What there is

  /// Numbers of the rows in a database, which must be sound.
  func rows(_ database: FilePath) throws -> Set<Int64> {
    let connection = try Connection.ofApp(database)
    guard try connection.text("PRAGMA integrity_check") == "ok" else { throw Finding("\(database) is damaged") }
    return Set(try connection.rows("SELECT id FROM book", [], { $0.integer(at: 0) }))
  }

  /// Every complete backup of any store, with its rows.
  func generations() throws -> [FilePath: (generation: BackupGeneration, rows: Set<Int64>)] {
    var found: [FilePath: (BackupGeneration, Set<Int64>)] = [:]
    var anywhere = rule
    anywhere.directory = vault
    var problem: HopdError?
    try BackupSurvey(of: CanonicalDirectory(resolving: stores, files: disk), rule: anywhere, files: disk).forEach(
      { backups in
        for generation in try backups.generations() {
          found[generation.directory] = (generation, try rows(generation.database))
        }
        return true
      }, problem: { problem = $0 })
    if let problem { throw problem }
    return found
  }

  /// Rows of every store under whatever name.
  func living() throws -> Set<Int64> {
    try disk.names(in: stores).filter { $0.string.hasSuffix(".sqlite") && !$0.string.hasPrefix(".") }
      .reduce(into: []) { $0.formUnion(try rows(stores.appending($1))) }
  }
}
