// Writes what happens to stores to the state database. It collects changes and writes them together on a queue of its
// own, so that the loop never waits for a disk. Changes that cannot be written are kept and retried; migrations never
// depend on them.

import Diagnostics
import Dispatch
import Logging
import ServiceState
import Synchronization
import SystemPackage
import SystemdSupport

/// Collects changes and writes them.
package final class StateRecorder: Sendable {
  private struct Pending {
    /// The latest change of each store.
    var stores: [String: StateChange] = [:]
    var others: [StateChange] = []
    /// The last facts about the daemon.
    var facts: [ServiceFact: String] = [:]
    var isScheduled = false
    /// Whether the last batch failed; reported once.
    var hasFailed = false
  }

  private let stateDirectory: FilePath
  private let logger: Logger
  private let wallClock: @Sendable () -> Int64
  private let pending = Mutex(Pending())
  private let database: Mutex<StateDatabase?>
  private let loss = Mutex<(@Sendable () -> Void)?>(nil)
  private let queue = DispatchQueue(label: "hopd.state")

  /// How long changes are collected before a write, and the pause after a failed write.
  private static let delay = DispatchTimeInterval.milliseconds(150)
  private static let delayAfterFailure = DispatchTimeInterval.seconds(5)
  /// The maximum number of changes, other than those of stores, that are kept while nothing can be written.
  private static let mostOthers = 10_000

  /// Opens the database of a state directory. Throws only if a newer hopd made it; any other error is logged, and each
  /// write tries to open it again.
  package init(stateDirectory: FilePath, logger: Logger, wallClock: @escaping @Sendable () -> Int64) throws(HopdError) {
    self.stateDirectory = stateDirectory
    self.logger = logger
    self.wallClock = wallClock
    do {
      let opened = try StateDatabase(stateDirectory: stateDirectory)
      database = Mutex(opened)
      if let error = opened.replaced { report(replaced: error) }
    } catch let error as HopdError where error.code == .stateNewer {
      throw error
    } catch {
      database = Mutex(nil)
      pending.withLock { $0.hasFailed = true }
      report(unwritable: error)
    }
  }

  /// Sets the call for a database that was lost while the daemon runs: `body` must note everything again.
  func onLoss(_ body: @escaping @Sendable () -> Void) { loss.withLock { $0 = body } }

  /// Takes a change, which is written soon.
  package func note(_ change: StateChange) {
    let mustSchedule = pending.withLock { pending -> Bool in
      switch change {
      case .store(let store): pending.stores[store.path] = Self.merged(pending.stores[store.path], store)
      case .gone(let path): pending.stores[path] = change
      case .job, .service, .unseen, .onlyWatches:
        pending.others.append(change)
        if pending.others.count > Self.mostOthers { pending.others.removeFirst(Self.mostOthers / 10) }
      }
      defer { pending.isScheduled = true }
      return !pending.isScheduled
    }
    if mustSchedule { schedule(after: Self.delay) }
  }

  /// Takes all facts about the daemon; those that have changed are written soon.
  func note(_ facts: [ServiceFact: String]) {
    let changed = pending.withLock { pending in
      defer { pending.facts = facts }
      return ServiceFact.allCases.filter { facts[$0] != pending.facts[$0] }
    }
    for fact in changed { note(.service(fact, facts[fact])) }
  }

  /// Merges two changes of a store: the later one keeps the versions of the earlier one, which may not be written yet.
  private static func merged(_ earlier: StateChange?, _ store: StoreRecord) -> StateChange {
    guard case .store(let old)? = earlier else { return .store(store) }
    var new = store
    new.version = new.version ?? old.version
    new.target = new.target ?? old.target
    if new.failure == nil, new.condition != .current { new.failure = old.failure }
    return .store(new)
  }

  /// Writes pending changes, and returns when they are written or have failed, at the latest after `limit`. Returns at
  /// once while nothing can be written.
  package func flush(within limit: Duration) {
    if pending.withLock({ $0.hasFailed }) { return }
    let done = DispatchSemaphore(value: 0)
    queue.async { [self] in
      write()
      done.signal()
    }
    _ = done.wait(timeout: .now() + .milliseconds(Int(limit / .milliseconds(1))))
  }

  private func schedule(after delay: DispatchTimeInterval) {
    queue.asyncAfter(deadline: .now() + delay) { [self] in write() }
  }

  private func write() {
    let (stores, others) = pending.withLock { pending in
      pending.isScheduled = false
      defer { (pending.stores, pending.others) = ([:], []) }
      return (pending.stores, pending.others)
    }
    if stores.isEmpty, others.isEmpty { return }
    do {
      let database = try opened()
      let changes = stores.sorted { $0.key < $1.key }.map(\.value) + others
      let (isNew, failure) = try database.write(changes, now: wallClock())
      pending.withLock { $0.hasFailed = false }
      if isNew, let failure {
        report(replaced: failure)
        pending.withLock { $0.facts = [:] }
        loss.withLock { $0 }?()
      }
    } catch {
      let isFirst = pending.withLock { pending -> Bool in
        pending.stores.merge(stores) { new, _ in new }
        pending.others = others + pending.others
        if pending.others.count > Self.mostOthers { pending.others.removeFirst(pending.others.count - Self.mostOthers) }
        pending.isScheduled = true
        defer { pending.hasFailed = true }
        return !pending.hasFailed
      }
      if isFirst { report(unwritable: error) }
      schedule(after: Self.delayAfterFailure)
    }
  }

  private func opened() throws -> StateDatabase {
    try database.withLock { database in
      if let database { return database }
      let opened = try StateDatabase(stateDirectory: stateDirectory)
      database = opened
      return opened
    }
  }

  private func report(replaced error: HopdError) {
    logger.event(
      .stateReplaced, "recreated the state database: \(error); job history is lost, stores are not affected",
      fields: [.error: error.code.name, .directory: stateDirectory.printable])
  }

  private func report(unwritable error: any Error) {
    let error = error as? HopdError ?? HopdError(.inputOutput, "\(error)", at: Place(file: stateDirectory))
    logger.event(
      .stateUnwritable,
      "cannot write the state database; migrations continue, but hopctl shows outdated state: "
        + "\(error)",
      fields: [
        .error: error.code.name, .directory: stateDirectory.printable,
        .hint: error.firstHint ?? "check free space and permissions: df -h -i \(stateDirectory.quotedForShell)",
      ])
  }
}
