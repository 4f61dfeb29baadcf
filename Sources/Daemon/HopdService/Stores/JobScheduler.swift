// Decides which store is worked on next, and what follows after each result. The scheduler is a pure value: its input
// is found files, ended work and the time; it uses no clock, no disk and no task. Its owner is `DaemonCoordinator`.

import DequeModule
import DurableFiles
import HeapModule
import HopdConfiguration
import StoreReplacement
import SystemPackage

/// The queue of stores: one owner per store, first come first served, a limit of jobs, pauses after failures, and a
/// record of refused stores.
package struct JobScheduler: Sendable {
  /// A point in time.
  package typealias Instant = ContinuousClock.Instant

  /// What was last reported about a store.
  struct Report: Hashable {
    var cause: String
    var inode: UInt64
    /// Whether it was reported that the store needs attention.
    var isFinal: Bool
    /// Number of results in a row with this cause.
    var times: Int
  }

  @dynamicMemberLookup
  struct Entry {
    var store: FoundStore
    var state: JobState
    var job: UInt64
    /// Number of its item in a queue: items with another number are stale.
    var turn: UInt64 = 0
    /// The configuration changed during the work, so the store must be inspected again.
    var mustInspectAgain = false
    var isGone = false
    /// The store's past, which few stores have.
    private var past: [Past] = []

    init(store: FoundStore, state: JobState, job: UInt64) {
      self.store = store
      self.state = state
      self.job = job
    }

    /// Earlier results of a store. It is kept in an array so that an entry without a past is small.
    struct Past: Equatable {
      /// Temporary failures in a row.
      var failures = 0
      /// Number of times in a row that the store was in use.
      var busyTimes = 0
      /// The store as found again during the work on it.
      var foundAgain: FoundStore?
      /// The last report about the store.
      var reported: Report?
    }

    subscript<Value>(dynamicMember member: WritableKeyPath<Past, Value>) -> Value {
      get { (past.first ?? Past())[keyPath: member] }
      set {
        var new = past.first ?? Past()
        new[keyPath: member] = newValue
        past = new == Past() ? [] : [new]
      }
    }

    /// Resets the counters: the next attempt is the first one again.
    mutating func resetFailures() { (self.failures, self.busyTimes) = (0, 0) }

    /// Whether the store is at its target and has no past.
    var isAtRest: Bool { state == .done && past.isEmpty && !mustInspectAgain && !isGone }
  }

  /// A store at its target. There may be a hundred thousand of them.
  struct Resting {
    var mark: StoreMark
    /// Its path, if that differs from its key.
    var path: FilePath?
    /// Position in `watchNames`.
    var watch: UInt32
  }

  struct Item {
    var key: FilePath
    var turn: UInt64
  }

  /// When a deferred store is queued again; the smaller alarm is the earlier one.
  struct Alarm: Comparable {
    var until: Instant
    var item: Item

    static func == (left: Alarm, right: Alarm) -> Bool { left.item.turn == right.item.turn }
    static func < (left: Alarm, right: Alarm) -> Bool {
      (left.until, left.item.turn) < (right.until, right.item.turn)
    }
  }

  var jobs: Int
  var rules: [String: RetryRule]
  /// Stores with work to do, or with failed work.
  var entries: [FilePath: Entry] = [:]
  /// All other stores.
  var resting: [FilePath: Resting] = [:]
  /// Names of watches that stores at rest belong to.
  var watchNames: [String] = []
  var inspections: Deque<Item> = []
  var migrations = MigrationLine()
  /// Stale items are skipped.
  var alarms = Heap<Alarm>()
  private var lastTurn: UInt64 = 0
  private var lastJob: UInt64 = 0
  var runningInspections = 0
  /// Watches and stores whose migrations are paused.
  var pauses = Pauses()
  /// Watches whose migrations do not begin at this hour.
  var closed: Set<String> = []
  /// Stores that an operator put first.
  var prioritized: Set<FilePath> = []
  var lastOrdinal = 0
  /// How many stores are in which state.
  package var counts = Counts()

  /// An empty queue for these watches; up to `jobs` migrations run at the same time.
  package init(jobs: Int, rules: [String: RetryRule]) {
    self.jobs = max(1, jobs)
    self.rules = rules
  }

  // MARK: Scheduling

  /// Takes in a settled file. Returns true if it was queued.
  ///
  /// A file that was settled or refused is skipped until it changes, so that rescans cost and log nothing.
  @discardableResult
  package mutating func found(_ store: FoundStore, step: JobStep = .inspect, now: Instant) -> Bool {
    if let known = resting[store.key] {
      let watch = watchNames[Int(known.watch)]
      guard watch == store.watch || rules[watch] == nil else { return false }
      guard known.mark != store.mark else {
        resting[store.key] = rest(store)
        return false
      }
      resting[store.key] = nil
      entries[store.key] = Entry(store: store, state: .done, job: 0)
      enqueue(store.key, step, newJob: true)
      return true
    }
    guard var entry = entries[store.key] else {
      entries[store.key] = Entry(store: store, state: .done, job: 0)
      counts.known += 1
      enqueue(store.key, step, newJob: true)
      return true
    }
    // The first watch that found the file owns it.
    guard entry.store.watch == store.watch || rules[entry.store.watch] == nil else { return false }
    let isSame = entry.store.mark == store.mark
    entry.isGone = false
    if case .running = entry.state {
      if !isSame { entry.foundAgain = store }
      entries[store.key] = entry
      return false
    }
    entry.store = store
    entries[store.key] = entry
    switch entry.state {
    case .running, .waiting: return false
    case .deferred(let step, let until):
      // If an app keeps writing, hopd does not retry at each change, but at the earliest after the shortest pause.
      let soon = now.advanced(by: rule(of: entry).pause(after: 1))
      if !isSame, soon < until { postpone(store.key, step, until: soon) }
      return false
    case .done, .failed, .needsAttention, .pinned:
      guard !isSame else { return false }
      if entry.state == .needsAttention { entries[store.key]?.reported = nil }
      entries[store.key]?.resetFailures()
      enqueue(store.key, step, newJob: true)
      return true
    }
  }

  /// Notes that a job put this file in place. The job may still be running or may just have ended; in both cases the
  /// event of its own rename is not a change. Any other change noticed meanwhile counts.
  package mutating func replaced(_ key: FilePath, by fingerprint: SourceFingerprint) {
    if let known = resting[key] {
      resting[key]?.mark = known.mark.replaced(by: fingerprint)
      return
    }
    guard let entry = entries[key] else { return }
    let mark = entry.store.mark.replaced(by: fingerprint)
    switch entry.state {
    case .running:
      entries[key]?.store.mark = mark
      if entry.foundAgain?.mark == mark { entries[key]?.foundAgain = nil }
    case .done: entries[key]?.store.mark = mark
    default: break
    }
  }

  /// The file no longer exists.
  package mutating func vanished(_ key: FilePath) {
    if resting.removeValue(forKey: key) != nil {
      counts.known -= 1
      return
    }
    guard let entry = entries[key] else { return }
    if case .running = entry.state {
      entries[key]?.isGone = true
      entries[key]?.foundAgain = nil
    } else {
      forget(key)
    }
  }

  // MARK: State queries

  /// The state of a store; nil if it is not known.
  package func state(of key: FilePath) -> JobState? { entries[key]?.state ?? resting[key].map { _ in .done } }

  /// The store as last found; nil if it is not known.
  package func store(_ key: FilePath) -> FoundStore? {
    entries[key]?.store
      ?? resting[key].map {
        FoundStore(key: key, path: $0.path ?? key, watch: watchNames[Int($0.watch)], mark: $0.mark)
      }
  }

  /// Migrations begun since the queue was last empty plus those that wait: the 120 of "store 3/120".
  package var batch: Int { lastOrdinal + counts.waiting }

  // MARK: Private helpers

  func rule(of entry: Entry) -> RetryRule {
    rules[entry.store.watch] ?? RetryRule(attempts: 1, backoff: .seconds(30), longest: .seconds(3600))
  }

  /// The verdict on a job whose store was removed or is not watched any more: only a result that is worth reporting
  /// counts.
  func verdictOfGone(_ outcome: JobOutcome) -> JobVerdict {
    switch outcome {
    case .migrated, .current: .settled
    case .refused: .refused(isNews: true)
    case .behind, .interrupted, .gone, .busy, .failed, .outside, .pinned: .forgotten
    }
  }

  /// Notes a result of a store; false if the same cause was already reported of the same file, at least as urgently.
  mutating func report(_ key: FilePath, _ cause: String, isFinal: Bool = true) -> Bool {
    guard let entry = entries[key] else { return false }
    let inode = entry.store.mark.inode
    guard let known = entry.reported, known.cause == cause, known.inode == inode else {
      entries[key]?.reported = Report(cause: cause, inode: inode, isFinal: isFinal, times: 1)
      return true
    }
    entries[key]?.reported = Report(
      cause: cause, inode: inode, isFinal: isFinal || known.isFinal, times: known.times &+ 1)
    return isFinal && !known.isFinal
  }

  /// Number of results in a row with the same cause; 0 for a store without a failure.
  func times(_ key: FilePath) -> Int { entries[key]?.reported?.times ?? 0 }

  mutating func settle(_ key: FilePath, _ state: JobState, inspectAgain: Bool) {
    set(key, state)
    prioritized.remove(key)
    if inspectAgain {
      entries[key]?.failures = 0
      enqueue(key, .inspect, newJob: true)
    } else if let entry = entries[key], entry.isAtRest {
      resting[key] = rest(entry.store)
      remove(key)
    }
  }

  /// Gives a resting store a full entry again.
  mutating func wakeResting(_ store: FoundStore) {
    resting[store.key] = nil
    entries[store.key] = Entry(store: store, state: .done, job: 0)
  }

  private mutating func rest(_ store: FoundStore) -> Resting {
    let known = watchNames.firstIndex(of: store.watch)
    if known == nil { watchNames.append(store.watch) }
    return Resting(
      mark: store.mark, path: store.path == store.key ? nil : store.path,
      watch: UInt32(clamping: known ?? watchNames.count - 1))
  }

  /// Removes an entry; a table that has become nearly empty is rebuilt to free its memory.
  private mutating func remove(_ key: FilePath) {
    entries[key] = nil
    if entries.capacity > 1024, entries.count < entries.capacity / 16 {
      entries = Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
    }
  }

  mutating func enqueue(_ key: FilePath, _ step: JobStep, newJob: Bool) {
    lastTurn += 1
    if newJob {
      lastJob += 1
      entries[key]?.job = lastJob
    }
    entries[key]?.turn = lastTurn
    set(key, .waiting(step))
    let item = Item(key: key, turn: lastTurn)
    let isFirst = prioritized.contains(key)
    switch step {
    case .inspect where isFirst: inspections.prepend(item)
    case .inspect: inspections.append(item)
    case .migrate where isFirst: migrations.putFirst(item)
    case .migrate: migrations.append(item, of: entries[key]?.store.watch ?? "")
    }
  }

  mutating func postpone(_ key: FilePath, _ step: JobStep, until: Instant) {
    lastTurn += 1
    entries[key]?.turn = lastTurn
    set(key, .deferred(step, until: until))
    alarms.insert(Alarm(until: until, item: Item(key: key, turn: lastTurn)))
  }

  static func next(_ line: inout Deque<Item>, _ step: JobStep, _ entries: [FilePath: Entry]) -> FilePath? {
    while let item = line.popFirst() {
      if let entry = entries[item.key], entry.turn == item.turn, entry.state == .waiting(step) { return item.key }
    }
    line = []  // Frees the memory of a long queue.
    return nil
  }

  mutating func begin(_ key: FilePath, _ step: JobStep, ordinal: Int) -> JobTicket? {
    set(key, .running(step))
    return entries[key].map { JobTicket(store: $0.store, step: step, job: $0.job, ordinal: ordinal) }
  }

  mutating func forget(_ key: FilePath) {
    guard let entry = entries[key] else { return }
    prioritized.remove(key)
    remove(key)
    count(entry.state, -1)
    counts.known -= 1
  }

  private mutating func set(_ key: FilePath, _ state: JobState) {
    guard let entry = entries[key] else { return }
    count(entry.state, -1)
    count(state, 1)
    entries[key]?.state = state
  }

  private mutating func count(_ state: JobState, _ change: Int) {
    switch state {
    case .waiting(.inspect), .running(.inspect): counts.inspecting += change
    case .waiting(.migrate): counts.waiting += change
    case .running(.migrate): counts.migrating += change
    case .deferred: counts.deferred += change
    case .failed, .needsAttention: counts.attention += change
    case .pinned: counts.pinned += change
    case .done: break
    }
  }
}
