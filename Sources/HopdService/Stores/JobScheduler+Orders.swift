// What an operator orders: a store is tried again, put in front, or its migration does not begin.

import DequeModule
import SystemPackage

extension JobScheduler {
  /// Does no migration of this store begin?
  package func isPaused(_ store: FoundStore) -> Bool {
    pauses.all || pauses.watches.contains(store.watch) || pauses.stores.contains(store.key)
  }

  /// Is nothing to be done with it?
  func isSettled(_ key: FilePath) -> Bool {
    switch state(of: key) {
    case nil, .done?, .failed?, .needsAttention?: true
    case .waiting?, .running?, .deferred?: false
    }
  }

  /// Tries a store again at once, as if it had never failed; `first` also puts it in front. False for one that is not
  /// known or in work.
  @discardableResult
  package mutating func order(_ key: FilePath, first: Bool) -> Bool {
    guard let store = store(key) else { return false }
    var step = JobStep.look
    switch state(of: key) {
    case .running(.look)? where first:
      // Its migration is in front once the look is through.
      hurried.insert(key)
      return true
    case .running?, nil: return false
    case .waiting(let known)?, .deferred(let known, _)?: step = known
    case .done?:
      if entries[key] == nil { wakeResting(store) }
    case .failed?, .needsAttention?: break
    }
    if case .waiting? = state(of: key), !first { return true }
    entries[key]?.forgive()
    entries[key]?.reported = nil
    if first { hurried.insert(key) }
    enqueue(key, step, newJob: step == .look)
    return true
  }

  /// Stores that have failed, or are tried again later.
  package var troubled: [FilePath] {
    entries.compactMap { key, entry in
      switch entry.state {
      case .failed, .needsAttention, .deferred: key
      case .waiting, .running, .done: nil
      }
    }.sorted { $0.string < $1.string }
  }

  /// Stores that wait for their migration.
  package var waitingForMigration: [FoundStore] {
    entries.values.filter { $0.state == .waiting(.migrate) }.map(\.store)
  }

  /// Changes the pauses. Migrations whose turn came meanwhile have it now, in their old order,
  /// behind those that were put in front.
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

  /// Says of migrations in line whether they may begin.
  struct Judge {
    fileprivate let entries: [FilePath: Entry]
    fileprivate let pauses: Pauses
    fileprivate let closed: Set<String>

    /// Does the line of a watch stand still?
    func standsStill(_ watch: String) -> Bool {
      pauses.all || pauses.watches.contains(watch) || closed.contains(watch)
    }

    /// May the migration of an item begin?
    func verdict(_ item: Item) -> MigrationLine.Verdict {
      guard waits(item), let store = entries[item.key]?.store else { return .stale }
      return standsStill(store.watch) || pauses.stores.contains(store.key) ? .held : .ready
    }

    func waits(_ item: Item) -> Bool {
      entries[item.key].map { $0.turn == item.turn && $0.state == .waiting(.migrate) } ?? false
    }
  }

  /// The judge of this moment.
  var judge: Judge { Judge(entries: entries, pauses: pauses, closed: closed) }

  /// Migrations whose turn came while they were held.
  var parked: [Item] { migrations.parked.map(\.item) }

  /// Migrations that wait and may not begin now.
  var heldCount: Int { migrations.held(closed: judge.standsStill) }

  /// Watches that wait for nothing but their hour.
  mutating func waitingForTheirHour() -> Set<String> {
    if closed.isEmpty { return [] }
    let judge = judge
    let waiting = migrations.watches { judge.waits($0) ? .ready : .stale }
    return waiting.union(migrations.parked.compactMap { entries[$0.item.key]?.store.watch }).intersection(closed)
  }

  /// How many migrations are at work at once from now on.
  package mutating func setJobs(_ number: Int) { jobs = max(1, number) }
}
