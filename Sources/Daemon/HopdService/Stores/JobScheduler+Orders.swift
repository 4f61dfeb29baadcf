// An operator's orders: retry a store, put it first, or pause migrations.

import DequeModule
import SystemPackage

extension JobScheduler {
  /// Whether migrations of this store are paused.
  package func isPaused(_ store: FoundStore) -> Bool {
    pauses.all || pauses.watches.contains(store.watch) || pauses.stores.contains(store.key)
  }

  /// Whether the store has no work to do.
  func isSettled(_ key: FilePath) -> Bool {
    switch state(of: key) {
    case nil, .done?, .failed?, .needsAttention?, .pinned?: true
    case .waiting?, .running?, .deferred?: false
    }
  }

  /// Retries a store at once, as if it had never failed; `first` also puts it before all others. False if the store is
  /// not known or is being worked on.
  @discardableResult
  package mutating func order(_ key: FilePath, first: Bool) -> Bool {
    guard let store = store(key) else { return false }
    var step = JobStep.inspect
    switch state(of: key) {
    case .running(.inspect)? where first:
      // Its migration comes first after the inspection.
      prioritized.insert(key)
      return true
    case .running?, nil: return false
    case .waiting(let known)?, .deferred(let known, _)?: step = known
    case .done?:
      if entries[key] == nil { wakeResting(store) }
    case .failed?, .needsAttention?, .pinned?: break
    }
    if case .waiting? = state(of: key), !first { return true }
    // `reported` stays, so that only a new cause is reported.
    entries[key]?.resetFailures()
    if first { prioritized.insert(key) }
    enqueue(key, step, newJob: step == .inspect)
    return true
  }

  /// Stores that have failed, are retried later, or are held back.
  package var failing: [FilePath] {
    entries.compactMap { key, entry in
      switch entry.state {
      case .failed, .needsAttention, .deferred, .pinned: key
      case .waiting, .running, .done: nil
      }
    }.sorted { $0.string < $1.string }
  }

  /// Stores that wait for their migration.
  package var waitingForMigration: [FoundStore] {
    entries.values.filter { $0.state == .waiting(.migrate) }.map(\.store)
  }

  /// Changes the pauses. Migrations whose turn came during a pause return to their places in the queue, behind those
  /// that were put first.
  package mutating func changePauses<Result>(_ change: (inout Pauses) -> Result) -> Result {
    let result = change(&pauses)
    migrations.unpark()
    return result
  }

  /// Sets the watches whose migrations do not begin at this hour.
  package mutating func close(_ watches: Set<String>) {
    guard watches != closed else { return }
    closed = watches
    migrations.unpark()
  }

  /// Decides whether queued migrations may begin.
  struct Judge {
    fileprivate let entries: [FilePath: Entry]
    fileprivate let pauses: Pauses
    fileprivate let closed: Set<String>

    /// Whether migrations of a watch may not begin now.
    func standsStill(_ watch: String) -> Bool {
      pauses.all || pauses.watches.contains(watch) || closed.contains(watch)
    }

    /// Whether the migration of an item may begin.
    func verdict(_ item: Item) -> MigrationLine.Verdict {
      guard waits(item), let store = entries[item.key]?.store else { return .stale }
      return standsStill(store.watch) || pauses.stores.contains(store.key) ? .halted : .ready
    }

    func waits(_ item: Item) -> Bool {
      entries[item.key].map { $0.turn == item.turn && $0.state == .waiting(.migrate) } ?? false
    }
  }

  /// The judge of the current state.
  var judge: Judge { Judge(entries: entries, pauses: pauses, closed: closed) }

  /// Migrations whose turn came while they were halted.
  var parked: [Item] { migrations.parked.map(\.item) }

  /// Migrations that wait and may not begin now.
  var haltedCount: Int { migrations.halted(closed: judge.standsStill) }

  /// Closed watches with migrations that wait for the window to open.
  mutating func waitingForTheirHour() -> Set<String> {
    if closed.isEmpty { return [] }
    let judge = judge
    let waiting = migrations.watches { judge.waits($0) ? .ready : .stale }
    return waiting.union(migrations.parked.compactMap { entries[$0.item.key]?.store.watch }).intersection(closed)
  }

  /// Sets the number of migrations that run at the same time.
  package mutating func setJobs(_ number: Int) { jobs = max(1, number) }
}
