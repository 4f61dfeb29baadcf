// The scheduler's input and output: stores, tickets, outcomes and verdicts. Plain values, so that the scheduler needs
// neither clock nor disk nor task.

import DurableFiles
import StoreReplacement
import SystemPackage

/// A store as the watcher found it.
package struct FoundStore: Sendable, Hashable {
  /// Its path with the links of its directory resolved, so that a file that two watches find has only one owner.
  package var key: FilePath
  /// Its path as the configuration names it; used in the log.
  package var path: FilePath
  /// Name of the watch that found it.
  package var watch: String
  /// Identity, size and times of the file.
  package var mark: StoreMark

  /// Names a store.
  package init(key: FilePath, path: FilePath, watch: String, fingerprint: SourceFingerprint, place: FoundPlace? = nil) {
    self.init(key: key, path: path, watch: watch, mark: StoreMark(fingerprint, place: place))
  }

  init(key: FilePath, path: FilePath, watch: String, mark: StoreMark) {
    self.key = key
    // The two paths are nearly always equal; then they share their bytes.
    self.path = key == path ? key : path
    self.watch = watch
    self.mark = mark
  }
}

/// Where a file was found, and its fingerprint as a hash: small enough for a hundred thousand stores at rest, and
/// enough to detect whether the file is still the same.
package struct StoreMark: Sendable, Hashable {
  /// The file.
  package let inode: UInt64
  /// The file and its directory; nil where they are not known.
  package let place: FoundPlace?
  /// Everything else, as a keyed hash of 64 bits, valid in this process only: of 2^64 changes it misses one.
  private let digest: Int

  /// The mark of a file whose status could not be read; the mark of every other file differs from it.
  static let unknown = StoreMark(inode: 0, place: nil, digest: 0)

  init(_ fingerprint: SourceFingerprint, place: FoundPlace? = nil) {
    self.init(inode: fingerprint.database.file.inode, place: place, digest: fingerprint.hashValue)
  }

  private init(inode: UInt64, place: FoundPlace?, digest: Int) {
    self.inode = inode
    self.place = place
    self.digest = digest
  }

  /// The mark after a job put another file there.
  func replaced(by fingerprint: SourceFingerprint) -> StoreMark {
    StoreMark(fingerprint, place: place.map { FoundPlace(folder: $0.folder, file: fingerprint.database.file) })
  }

  /// The mark of a file that is known to be there and whose content counts as changed.
  var changed: StoreMark { StoreMark(inode: inode, place: place, digest: ~digest) }
}

/// A kind of work on a store. Inspections have their own slots, so that a long migration never delays the inspection of
/// a new store.
package enum JobStep: String, Sendable, Hashable, CaseIterable {
  /// Identify the store's version, without a change of its data.
  case inspect
  /// Migrate the store to its target.
  case migrate
}

/// A piece of work that the scheduler has started.
package struct JobTicket: Sendable, Hashable {
  /// The store, as last found.
  package let store: FoundStore
  package let step: JobStep
  /// Number of the job: the same from the first inspection until the store is at its target or hopd gives up.
  package let job: UInt64
  /// Position among the migrations since the queue was last empty, from 1; 0 for an inspection.
  package let ordinal: Int
}

/// How a piece of work ended.
package enum JobOutcome: Sendable, Hashable {
  /// The store is at its target.
  case current
  /// An inspection found that the store needs a migration.
  case behind
  /// The store was migrated.
  case migrated
  /// Stopped on request at a checkpoint.
  case interrupted
  /// The file no longer exists.
  case gone
  /// Another program uses the store.
  case busy(code: String)
  /// A temporary failure.
  case failed(code: String)
  /// The cause is outside the store: retried without limit.
  case outside(code: String)
  /// A restore pinned the store to its version.
  case pinned
  /// A lasting failure, until the file, the models or the configuration change; `reason` distinguishes refusals.
  case refused(reason: String)
}

/// The scheduler's decision after an outcome. `isNews` is false if the same was already reported of the same file.
package enum JobVerdict: Sendable, Hashable {
  /// No more work to do.
  case settled
  /// The store is queued.
  case queued
  /// The store is in use; retried at `until`, without limit.
  case deferred(until: ContinuousClock.Instant, isNews: Bool)
  /// The store failed; retried at `until`. `attempt` attempts were made; `attempts` is the limit, nil for none.
  case retry(until: ContinuousClock.Instant, attempt: Int, attempts: Int?, isNews: Bool)
  /// The store failed for a reason outside it as often as `attempts` of the configuration: an operator should inspect
  /// it. It is still retried.
  case lasting(until: ContinuousClock.Instant, attempt: Int, isNews: Bool = true)
  /// Not retried until its pin is removed.
  case pinned(isNews: Bool)
  /// Not retried until the file, the models or the configuration change.
  case refused(isNews: Bool)
  /// The attempts are used up; otherwise as `refused`.
  case gaveUp(attempts: Int, isNews: Bool = true)
  /// The store was forgotten.
  case forgotten
}

/// The state of a store.
package enum JobState: Sendable, Hashable {
  case waiting(JobStep)
  case running(JobStep)
  /// In use or failed; retried at `until`.
  case deferred(JobStep, until: ContinuousClock.Instant)
  /// At its target.
  case done
  /// Refused.
  case failed
  /// Failed too often.
  case needsAttention
  /// A restore pinned it to its version.
  case pinned
}

extension JobScheduler {
  /// How many stores are in which state.
  package struct Counts: Sendable, Hashable {
    /// Stores known.
    package var known = 0
    /// Stores that wait for an inspection or are being inspected.
    package var inspecting = 0
    /// Stores that wait for their migration.
    package var waiting = 0
    /// Stores in migration.
    package var migrating = 0
    /// Stores in use or failed, which are retried.
    package var deferred = 0
    /// Stores refused or given up.
    package var attention = 0
    /// Stores that a restore pinned.
    package var pinned = 0
    /// Stores that wait for a migration, are migrated, or are retried.
    package var toDo: Int { waiting + migrating + deferred }
  }
}
