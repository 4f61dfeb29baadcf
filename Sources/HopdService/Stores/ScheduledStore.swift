// The words the scheduler speaks: what it is told of a store, what it hands out, what it answers. Plain values, so that
// the scheduler needs neither clock nor disk nor task.

import DurableFiles
import StoreReplacement
import SystemPackage

/// A store as the watcher found it.
package struct FoundStore: Sendable, Hashable {
  /// Its path with the links of its directory resolved: two watches that reach one file have one owner.
  package var key: FilePath
  /// Its path as the configuration names it; what is logged.
  package var path: FilePath
  /// Name of the watch that found it.
  package var watch: String
  /// Which file it is, how large and how old.
  package var mark: StoreMark

  /// Names a store.
  package init(key: FilePath, path: FilePath, watch: String, fingerprint: SourceFingerprint) {
    self.init(key: key, path: path, watch: watch, mark: StoreMark(fingerprint))
  }

  init(key: FilePath, path: FilePath, watch: String, mark: StoreMark) {
    self.key = key
    // The two are the same nearly always: then they share their bytes.
    self.path = key == path ? key : path
    self.watch = watch
    self.mark = mark
  }
}

/// A fingerprint as it is kept for each of a hundred thousand stores that nothing happens to: enough to say whether the
/// file is still the same, in 16 bytes.
package struct StoreMark: Sendable, Hashable {
  /// The file.
  package let inode: UInt64
  /// Everything else, as a keyed hash of 64 bits that holds in this process: of 2^64 changes it misses one.
  private let digest: Int

  /// Of a file that could not be asked about; that of every other file differs from it.
  static let unknown = StoreMark(inode: 0, digest: 0)

  init(_ fingerprint: SourceFingerprint) {
    self.init(inode: fingerprint.database.file.inode, digest: fingerprint.hashValue)
  }

  private init(inode: UInt64, digest: Int) {
    self.inode = inode
    self.digest = digest
  }
}

/// What is done with a store. Looks have slots of their own, so that a long migration never keeps a new store from
/// being seen and counted.
package enum JobStep: String, Sendable, Hashable, CaseIterable {
  /// Which version is it? Changes and locks nothing.
  case look
  /// Take it to its target.
  case migrate
}

/// A piece of work that is handed out.
package struct JobTicket: Sendable, Hashable {
  /// The store, as last found.
  package let store: FoundStore
  package let step: JobStep
  /// Number of the job: the same from the first look until the store is at its target or given up.
  package let job: UInt64
  /// Position among the migrations since the queue was last empty, from 1; 0 for a look.
  package let ordinal: Int
}

/// How often and after which pauses a failure is tried again.
package struct RetryRule: Sendable, Hashable {
  /// Tries in all.
  package var attempts: Int
  /// First pause; it doubles.
  package var backoff: Duration
  /// Longest pause.
  package var longest: Duration

  /// Pause after the `failures`-th failure in a row, from 1.
  package func pause(after failures: Int) -> Duration {
    var pause = min(backoff, longest)
    for _ in 1..<max(2, min(failures, 64)) where failures > 1 {
      if pause >= longest { break }
      pause = min(pause + pause, longest)
    }
    return max(pause, .milliseconds(1))
  }
}

/// How a piece of work ended.
package enum JobOutcome: Sendable, Hashable {
  /// The store is at its target.
  case current
  /// A look found that it needs a migration.
  case behind
  /// It is migrated.
  case migrated
  /// Stopped on request at a checkpoint.
  case interrupted
  /// The file is gone.
  case gone
  /// Somebody else uses it.
  case busy(code: String)
  /// A failure that may pass.
  case failed(code: String)
  /// The cause lies outside of the store: it is tried again for ever.
  case outside(code: String)
  /// A failure that stays until somebody changes something; the reason tells two refusals apart.
  case refused(reason: String)
}

/// What the scheduler makes of an outcome. `isNews` says whether this was not yet told of the same file under the same
/// configuration.
package enum JobVerdict: Sendable, Hashable {
  /// Nothing more to do.
  case settled
  /// It waits for its migration.
  case queued
  /// It is in use; tried again then, without limit.
  case deferred(until: ContinuousClock.Instant, isNews: Bool)
  /// It failed; tried again then. `attempt` tries are made; `attempts` is how many there will be, nil for no end.
  case retry(until: ContinuousClock.Instant, attempt: Int, attempts: Int?, isNews: Bool)
  /// It failed once more for a reason outside of it, as often now as the configuration has patience for: somebody
  /// should look. It is tried again all the same.
  case lasting(until: ContinuousClock.Instant, attempt: Int)
  /// Not tried again until the file, the models or the configuration change.
  case refused(isNews: Bool)
  /// The tries are used up; as refused.
  case gaveUp(attempts: Int)
  /// The store is no longer known.
  case forgotten
}

/// Where a store stands.
package enum JobState: Sendable, Hashable {
  case waiting(JobStep)
  case running(JobStep)
  /// In use or failed; waits for its time.
  case deferred(JobStep, until: ContinuousClock.Instant)
  /// At its target.
  case done
  /// Refused.
  case failed
  /// Failed too often.
  case needsAttention
}

extension JobScheduler {
  /// How many stores are in which state.
  package struct Counts: Sendable, Hashable {
    /// Stores known.
    package var known = 0
    /// Stores that are to be looked at, or are.
    package var looking = 0
    /// Stores that wait for their migration.
    package var waiting = 0
    /// Stores in migration.
    package var migrating = 0
    /// Stores in use or failed, to be tried again.
    package var deferred = 0
    /// Stores refused or given up.
    package var attention = 0
    /// Stores that are to be migrated or are.
    package var toDo: Int { waiting + migrating + deferred }
  }
}
