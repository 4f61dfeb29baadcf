// Inspects stores again after a change of the configuration or of models.

import HopdConfiguration
import SystemPackage

extension JobScheduler {
  /// Applies a new configuration: every store of a watch that still exists is inspected again; stores of other watches
  /// are forgotten. Running jobs continue.
  package mutating func configure(jobs: Int, rules: [String: RetryRule], priorities: [String: Int] = [:]) {
    self.jobs = max(1, jobs)
    self.rules = rules
    migrations.priorities = priorities
    wakeAllResting { _ in true }
    watchNames = []
    inspectAgain { _ in true }
  }

  /// Applies new models of a watch: each of its stores is inspected again, including refused ones.
  package mutating func modelsChanged(ofWatch watch: String) {
    wakeAllResting { $0 == watch }
    inspectAgain { $0 == watch }
  }

  private mutating func wakeAllResting(_ isMeant: (String) -> Bool) {
    let woken = resting.filter { isMeant(watchNames[Int($0.value.watch)]) }.sorted { $0.key.string < $1.key.string }
    if woken.count == resting.count { resting = [:] }
    for (key, known) in woken {
      let store = FoundStore(key: key, path: known.path ?? key, watch: watchNames[Int(known.watch)], mark: known.mark)
      wakeResting(store)
    }
  }

  private mutating func inspectAgain(_ isMeant: (String) -> Bool) {
    // In the order of their last turn, so that the store that has waited longest is still first.
    for (key, entry) in entries.sorted(by: { ($0.value.turn, $0.key.string) < ($1.value.turn, $1.key.string) })
    where isMeant(entry.store.watch) {
      let isWatched = rules[entry.store.watch] != nil
      switch entry.state {
      case .running:
        entries[key]?.mustInspectAgain = isWatched
        if !isWatched { entries[key]?.isGone = true }
      case _ where !isWatched: forget(key)
      case .waiting: break
      case .deferred, .done, .failed, .needsAttention, .pinned:
        entries[key]?.resetFailures()
        // `reported` stays, so that only a new result is reported. A deferred store keeps its job.
        var isDeferred = false
        if case .deferred = entry.state { isDeferred = true }
        enqueue(key, .inspect, newJob: !isDeferred)
      }
    }
  }
}
