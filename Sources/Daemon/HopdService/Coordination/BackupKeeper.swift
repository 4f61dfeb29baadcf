// Sweeps the backups of each watch, no more often than a backup can have become too old, and checks the pins of stores
// that are pinned. Both happen at a rescan, on a thread of their own.

import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import Logging
import MigrationPipeline
import PersistentStore
import StoreReplacement
import StoreWatching
import Synchronization
import SystemPackage
import SystemdSupport

/// Sweeps backups and checks pins.
package final class BackupKeeper: Sendable {
  private struct State {
    /// Time of the next sweep of each watch; a watch without an entry is due.
    var due: [String: ContinuousClock.Instant] = [:]
    var atWork: Set<String> = []
    var pinned: [FilePath: FoundStore] = [:]
    let started = ContinuousClock.now
    /// Wall clock and monotonic time at the last sweep, to detect a clock that jumps ahead.
    var clock: (wall: Int64, time: ContinuousClock.Instant)
    /// The clock jumped ahead, so no backup counts as too old until then.
    var distrust: ContinuousClock.Instant?
  }

  /// The watch to sweep, and where to report.
  struct Work: Sendable {
    var watch: Configuration.Watch
    var root: WatchRoot
    var rule: BackupRule
    var logger: Logger
    var stop: StopSignal
    /// Called for each store whose pin was removed.
    var released: @Sendable (FoundStore) -> Void
  }

  private let state: Mutex<State>
  private let wallClock: @Sendable () -> Int64
  /// How long no backup is removed by age after the clock has jumped ahead, and at most after the start.
  private static let doubt = Duration.seconds(3600)
  private let doubtAtStart: Duration

  /// Creates a keeper for which every watch is due. `wallClock` returns seconds since 1970. For `doubtAtStart`, or for
  /// the rule's age limit if that is shorter, no backup counts as too old: a machine may boot with a clock that is
  /// ahead, and correct it in its first minutes.
  package init(
    doubtAtStart: Duration = doubt, wallClock: @escaping @Sendable () -> Int64 = { Int64(time(nil)) }
  ) {
    self.doubtAtStart = doubtAtStart
    self.wallClock = wallClock
    state = Mutex(State(clock: (wallClock(), .now)))
  }

  /// Notes that a store is pinned: its pin is checked at each rescan.
  func pinned(_ store: FoundStore) { state.withLock { $0.pinned[store.key] = store } }

  /// Whether no sweep or check of pins is running.
  var isIdle: Bool { state.withLock { $0.atWork.isEmpty } }

  /// Makes every watch due, because other rules may be in force.
  func configured() {
    state.withLock {
      $0.due = [:]
      $0.pinned = [:]
    }
  }

  /// Does what is due after a rescan of the watch, on a thread of its own.
  func scanned(_ work: Work) {
    let now = ContinuousClock.now
    let name = work.watch.name
    let (isDue, pinned) = state.withLock { state -> (Bool, [FoundStore]) in
      let pinned = state.pinned.values.filter { $0.watch == name }
      let isDue = state.due[name].map { $0 <= now } ?? true
      guard isDue || !pinned.isEmpty, state.atWork.insert(name).inserted else { return (false, []) }
      return (isDue, pinned)
    }
    guard isDue || !pinned.isEmpty else { return }
    BlockingWork.run("backups") { [self] in
      checkPins(pinned, work)
      if isDue { sweep(work) }
      state.withLock { _ = $0.atWork.remove(name) }
    }
  }

  /// Releases stores whose pin was removed, so that they are inspected again.
  private func checkPins(_ pinned: [FoundStore], _ work: Work) {
    for store in pinned where !work.stop.isStopping {
      let pins = PinStore(location: CanonicalStoreLocation(unresolved: store.key), files: LinuxFileSystem())
      if (try? pins.read()) != nil { continue }
      state.withLock { $0.pinned[store.key] = nil }
      work.released(store)
    }
  }

  private func sweep(_ work: Work) {
    let name = work.watch.name
    var rule = work.rule
    let wall = wallClock()
    if !trustsAge(wall, rule, work.logger) { rule.keepFor = nil }
    var reported = 0
    func problem(_ error: HopdError) {
      reported += 1
      // The same folder fails at each sweep; `hopctl backups` lists all problems.
      if reported <= 3 { work.logger.warning("cannot read all backups of \(name): \(error)") }
    }
    var next: Int64?
    do {
      let survey = try BackupSurvey(
        of: CanonicalDirectory(work.root.open()), recursive: work.watch.recursive, rule: rule,
        files: LinuxFileSystem())
      next = try BackupSweep(survey, rule: rule).run(
        now: wall, isStopped: { work.stop.isStopping },
        removed: { location, removal in
          MigrationReporter(
            MigrationReporter.Subject(store: location.database, watch: name, job: ""), logger: work.logger
          ).removed(removal, .backupExpired)
        }, problem: problem)
    } catch is WatchRoot.Failure {
      // The watcher reports a directory that is missing, or elsewhere.
    } catch {
      problem(HopdError.of(error))
    }
    let pause = Self.pause(rule: work.rule, next: next, now: wall)
    state.withLock { $0.due[name] = .now.advanced(by: pause) }
  }

  /// The time until the next sweep: until the oldest backup is too old, but long enough to remove several that expire
  /// one after the other together; at most a day, to find backups that were put there by hand.
  static func pause(rule: BackupRule, next: Int64?, now: Int64) -> Duration {
    let day: Int64 = 86_400
    guard let longest = rule.longestAge else { return .seconds(day) }
    let wait = (next ?? .max).subtractingReportingOverflow(now).partialValue
    return .seconds(max(min(wait, longest, day), min(longest / 24, 3600)))
  }

  /// Whether to remove backups by age. A clock that jumps ahead makes every backup old at once, so it is trusted only
  /// after an hour.
  private func trustsAge(_ wall: Int64, _ rule: BackupRule, _ logger: Logger) -> Bool {
    let now = ContinuousClock.now
    let (isTrusted, ahead) = state.withLock { state -> (Bool, Int64) in
      let passed = (now - state.clock.time).components.seconds
      let ahead = wall.subtractingReportingOverflow(state.clock.wall).partialValue.subtractingReportingOverflow(passed)
        .partialValue
      state.clock = (wall, now)
      if ahead > Self.doubt.components.seconds { state.distrust = now.advanced(by: Self.doubt) }
      if now - state.started < min(doubtAtStart, rule.keepFor ?? .zero) { return (false, ahead) }
      if let until = state.distrust, now < until { return (false, ahead) }
      state.distrust = nil
      return (true, ahead)
    }
    if ahead > Self.doubt.components.seconds {
      logger.notice("the clock jumped ahead by \(ahead) seconds: no backup is deleted by age for an hour")
    }
    return isTrusted
  }
}

extension DaemonCoordinator {
  /// After a rescan: sweeps the backups of the watch if that is due, and checks pins.
  func keepBackups(ofWatch name: String) {
    guard phase == .ready, let watch = setup.configuration.watch(named: name),
      let rule = setup.backupRule(ofWatch: name), let root = setup.root(ofWatch: name)
    else { return }
    backups.scanned(
      BackupKeeper.Work(watch: watch, root: root, rule: rule, logger: logger, stop: stopSignal) { [self] store in
        // With a mark that no file has, the store counts as changed.
        post(
          .watch(
            .settled(SettledFile(watch: store.watch, path: store.path, key: store.key, size: 0)),
            FoundStore(key: store.key, path: store.path, watch: store.watch, mark: store.mark.changed)))
      })
  }
}

extension MigrationReporter {
  /// Reports that the rule removed a backup.
  func removed(_ removal: BackupRemoval, _ kind: JournalMessage) {
    let folder = removal.generation.directory.printable
    let why =
      switch removal.reason {
      case .keep: "exceeds `keep`"
      case .keepFor: "older than `keep_for`"
      case .orphaned, .named: "on request"
      }
    let version = removal.generation.record.map { " (\($0.from.name))" } ?? ""
    logger.event(
      kind, "\(name): deleted backup \(folder)\(version) (\(why))",
      fields: fields([
        .storeUUID: removal.generation.record?.storeUUID, .backup: folder, .from: removal.generation.record?.from.name,
        .to: removal.generation.record?.to.name, .result: removal.reason.rawValue,
      ]))
  }

  /// Reports that the migration removed the pin of a restore.
  func released(_ pin: RestorePin, _ report: MigrationReport) {
    logger.event(
      .pinReleased, "\(name) was unpinned by its migration to \(report.to): it was \(pin.account)",
      fields: fields([.storeUUID: report.storeUUID, .from: report.from, .to: report.to]))
  }
}
