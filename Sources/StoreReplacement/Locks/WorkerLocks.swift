// The locks of one worker: takes them, renews them while stores are migrated, and remembers since when the locks of
// others have not changed. Time is measured by this process's own clock alone, and decides only how long hopd waits for
// a silent worker: that two workers never replace one store follows from the names (WorkerLock.swift).

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import Synchronization
import SystemPackage

/// Takes and keeps the locks of the stores that a worker migrates.
package final class WorkerLocks: Sendable {
  private struct Kept {
    let lock: WorkerLock
    let onLoss: @Sendable () -> Void
    /// When it was last known to be this worker's.
    var renewed: Duration
  }

  /// The last observation of another worker's lock.
  private struct Sight {
    let name: String
    let since: Duration
    let lease: Duration
  }

  private struct State {
    var kept: [CanonicalStoreLocation: Kept] = [:]
    var seen: [CanonicalStoreLocation: Sight] = [:]
    var hasThread = false
    var hasEnded = false
  }

  /// How long a worker may be silent before another one takes its stores over.
  package let lease: Duration
  private let holder: LockHolder
  private let files: any DurableFileSystem
  private let clock: @Sendable () throws -> Duration
  /// Seconds since 1970, for people.
  private let date: @Sendable () -> Int64
  private let nonce: @Sendable () -> String
  private let state = Mutex(State())

  /// The locks of a run named `job`.
  package convenience init(lease: Duration, job: String) {
    let start = ContinuousClock.now
    let holder = LockHolder(
      process: .current(), host: ProcessIdentity.hostName(), job: job, lease: lease.milliseconds)
    self.init(
      lease: lease, holder: holder, files: LinuxFileSystem(), clock: { ContinuousClock.now - start },
      date: { Int64(time(nil)) }, nonce: { String(UInt64.random(in: 1 ... .max), radix: 16) })
  }

  /// With clocks and names of the caller's own: `nonce` returns another text each time, in any process.
  package init(
    lease: Duration, holder: LockHolder, files: any DurableFileSystem, clock: @escaping @Sendable () throws -> Duration,
    date: @escaping @Sendable () -> Int64, nonce: @escaping @Sendable () -> String
  ) {
    (self.lease, self.holder, self.files) = (lease, holder, files)
    (self.clock, self.date, self.nonce) = (clock, date, nonce)
  }

  /// Takes the lock of a store. `onLoss` is called on another thread when the lock is lost. Throws `.lockedByOther`,
  /// with the holder, where another worker has it and was not silent for a lease as far as this process has seen.
  package func take(
    _ location: CanonicalStoreLocation, renewing: Bool = true, onLoss: @escaping @Sendable () -> Void = {}
  ) throws -> WorkerLock {
    let attempt = try WorkerLock.take(
      location, as: holder, now: date(), nonce: nonce, files: files,
      mayTakeOver: { [self] in try isSilent($0, at: location) })
    switch attempt {
    case .held(let entry): throw WorkerLock.refusal(entry, location)
    case .taken(let lock):
      do {
        let now = try clock()
        if renewing { try startThread() }
        state.withLock { state in
          state.seen[location] = nil
          if renewing { state.kept[location] = Kept(lock: lock, onLoss: onLoss, renewed: now) }
        }
      } catch {
        lock.release()
        throw error
      }
      return lock
    }
  }

  /// Releases a lock.
  package func release(_ lock: WorkerLock) {
    state.withLock { $0.kept[lock.location] = nil }
    lock.release()
  }

  /// Whether the lock stayed the same for a whole lease, as far as this process has seen it. The longer of both leases
  /// counts.
  private func isSilent(_ entry: LockEntry, at store: CanonicalStoreLocation) throws -> Bool {
    let now = try clock()
    return state.withLock { state in
      if let sight = state.seen[store], sight.name == entry.name { return now - sight.since >= sight.lease }
      let theirs = Duration.milliseconds(min(max(0, entry.holder?.lease ?? 0), 86_400_000))
      state.seen[store] = Sight(name: entry.name, since: now, lease: max(lease, theirs))
      return false
    }
  }

  /// Whether another worker has a lock that was neither released nor renewed since it was seen, and is not yet silent
  /// for its lease. Then a wait is worthwhile before the next attempt at the store.
  package func hasUnsettledSight() -> Bool {
    guard let now = try? clock() else { return false }
    let seen = state.withLock { $0.seen }
    return seen.contains { store, sight in
      guard now - sight.since < sight.lease else { return false }
      return (try? WorkerLock.entry(of: store, files: files))??.name == sight.name
    }
  }

  // MARK: Renewing

  /// Renews every lock that is a quarter of the lease old. One that could not be renewed for a whole lease is lost.
  func renewAll() {
    for (store, kept) in state.withLock({ $0.kept }) {
      guard let now = try? clock(), now - kept.renewed >= lease / 4 else { continue }
      let isKept = try? kept.lock.renew()
      if isKept == true {
        state.withLock { state in
          if state.kept[store]?.lock === kept.lock { state.kept[store]?.renewed = now }
        }
      } else if isKept == false || now - kept.renewed >= lease {
        kept.lock.giveUp()
        let isMine = state.withLock { state in
          guard state.kept[store]?.lock === kept.lock else { return false }
          state.kept[store] = nil
          return true
        }
        if isMine { kept.onLoss() }
      }
    }
  }

  /// Stops the renewal of locks.
  package func end() { state.withLock { $0.hasEnded = true } }

  /// A thread that sleeps: the others work, some of them in long statements.
  private func startThread() throws {
    let isFirst = state.withLock { state in
      defer { state.hasThread = true }
      return !state.hasThread
    }
    guard isFirst else { return }
    var thread = pthread_t()
    let context = Unmanaged.passRetained(self)
    let code = pthread_create(
      &thread, nil,
      { context in
        if let context { Unmanaged<WorkerLocks>.fromOpaque(context).takeRetainedValue().renewUntilEnd() }
        return nil
      }, context.toOpaque())
    if code == 0 {
      _ = pthread_detach(thread)
      return
    }
    context.release()
    state.withLock { $0.hasThread = false }
    throw HopdError(
      .lockedByOther, "no thread can be started that renews the store's lock", cause: Errno(rawValue: code),
      hint: "raise the limit of processes (ulimit -u, pids.max), or use fewer --jobs")
  }

  private func renewUntilEnd() {
    let pause = min(max(lease.milliseconds / 32, 10), 250)
    while !state.withLock({ $0.hasEnded }) {
      var time = timespec(tv_sec: 0, tv_nsec: Int(pause) * 1_000_000)
      nanosleep(&time, nil)
      renewAll()
    }
  }
}

extension Duration {
  /// The whole duration in milliseconds.
  fileprivate var milliseconds: Int64 {
    let (whole, overflow) = components.seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? .max : whole &+ components.attoseconds / 1_000_000_000_000_000
  }
}
