// The results of a fleet: counts, versions, causes of failures, shards. `FleetReportBuilder` makes it.

import Diagnostics

/// The results of a fleet.
package struct FleetReport: Encodable, Sendable {
  /// Runs of workers that reported; without one, nothing is known of the fleet.
  package internal(set) var runs = 0
  /// Stores in the manifest, as far as a run reported it.
  package internal(set) var fleet = 0
  package internal(set) var migrated = 0
  package internal(set) var current = 0
  package internal(set) var failed = 0
  package internal(set) var waiting = 0
  /// Stores of the manifest that have no line.
  package internal(set) var withoutResult = 0
  /// Stores that two runs migrated to the same version.
  package internal(set) var migratedTwice = 0
  /// Objects and bytes of migrated stores, and the seconds that they took, each for itself.
  package internal(set) var rows: Int64 = 0
  package internal(set) var bytes: Int64 = 0
  package internal(set) var seconds = 0.0
  package internal(set) var versions: [Versions] = []
  package internal(set) var failures: [Cause] = []
  package internal(set) var slowest: [Slow] = []
  package internal(set) var shards: [ShardState] = []

  /// Stores that had one version and have another now.
  package struct Versions: Encodable, Sendable, Hashable {
    package var model: String?
    package var before: String?
    package var after: String?
    package var stores: Int
  }

  /// One reason for which stores are not migrated.
  package struct Cause: Encodable, Sendable, Hashable {
    package var error: LineError
    /// Whether the same command helps later.
    package var isRetryable: Bool
    package var stores: Int
    package var example: String
    /// The next step: a command for a closer inspection of the example, or to start the workers again.
    package var next: String
  }

  /// A store that took long.
  package struct Slow: Encodable, Sendable, Hashable {
    package var store: String
    package var seconds: Double
    package var rows: Int64?
    package var bytes: Int64?
  }

  /// The state of one shard.
  package struct ShardState: Encodable, Sendable, Hashable {
    package var shard: Int
    package var shards: Int
    package var state: State
    package var runs: Int
    package var host: String?
    package var exit: Int32?

    package enum State: String, Encodable, Sendable, Hashable {
      /// Its last run finished.
      case ended
      /// Its last run stopped early, and gives the reason.
      case stopped
      /// Its last run has no last line: it was killed, or still runs.
      case unfinished
      /// No run of it reported.
      case missing
    }
  }

  /// Objects that one job writes in a second; 0 where nothing was migrated.
  package var rowsPerSecond: Int64 { rate(rows) }
  /// Bytes of old stores that one job works through in a second; 0 where nothing was migrated.
  package var bytesPerSecond: Int64 { rate(bytes) }

  private func rate(_ amount: Int64) -> Int64 {
    // Any user may have written the results: a sum may have wrapped, and a time may be almost zero.
    guard seconds > 0, amount > 0 else { return 0 }
    return Int64(exactly: (Double(amount) / seconds).rounded()) ?? 0
  }

  /// The contract with schedulers: 75 where workers should run again, 65 where only a person can help.
  package var exit: ExitStatus {
    if runs == 0 || waiting + withoutResult > 0 { return .temporaryFailure }
    if shards.contains(where: { $0.state == .missing || $0.state == .unfinished }) { return .temporaryFailure }
    return failed > 0 ? .dataError : .success
  }
}
