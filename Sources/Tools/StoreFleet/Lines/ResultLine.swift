// The lines that a worker writes: one when its run begins, one for each store, one when the run ends. A run without a
// last line was killed, and `hopctl fleet report` reports that.

import Glibc

/// How the work on one store ended.
package enum StoreResult: String, Codable, Sendable, Hashable, CaseIterable {
  /// The store is at the target now.
  case migrated
  /// It was at the target before this run.
  case current
  /// A person has to decide: a retry does not help.
  case failed
  /// Busy, stopped on request, no space: the same command again may migrate it.
  case waiting
}

/// A store's line in a results file.
package struct ResultLine: Codable, Sendable, Hashable {
  /// Path of the store's database, as the manifest has it.
  package var store: String
  package var result: StoreResult
  /// The version it had, and the version it was to reach.
  package var from: String?
  package var to: String?
  package var model: String?
  package var storeUUID: String?
  /// Bytes before.
  package var size: Int64?
  /// Objects written.
  package var rows: Int64?
  /// Time that the store took, in seconds.
  package var seconds: Double
  /// When that was.
  package var time: Moment
  /// The backup of the old store.
  package var backup: String?
  /// Values and rows that the new version cannot hold.
  package var dropped: Int64?
  /// The same by entity and property: "Book.shelfMark"; "Customer" where the entity goes with its rows.
  package var drops: [String: Int64]?
  package var error: LineError?
  /// The run that did it: the `id` of a `RunLine`.
  package var run: String
}

/// The bounds of a line's numbers. They are added up and compared, so numbers that no worker writes are refused where
/// they are read.
enum LineBounds {
  /// Stores, objects and bytes: more than any disk holds.
  static let counts = 0...(1 << 50)
  /// Seconds: thirty years.
  static let seconds = 0...1e9
}

extension ResultLine {
  /// Whether a worker can have written it.
  var isPlausible: Bool {
    let counts = [size ?? 0, rows ?? 0, dropped ?? 0] + (drops ?? [:]).values
    return counts.allSatisfy { LineBounds.counts.contains(Int($0)) } && LineBounds.seconds.contains(seconds)
  }
}

/// The first or the last line of a run.
package struct RunLine: Codable, Sendable, Hashable {
  /// "begin" or "end".
  package var event: Event
  /// Name of the run: random hexadecimal digits.
  package var run: String
  /// The run's share: shard `shard` of `shards`, counted from 1.
  package var shard: Int
  package var shards: Int
  /// Stores of the share, and of the whole manifest.
  package var stores: Int
  package var fleet: Int
  package var host: String
  /// When it began or ended.
  package var time: Moment
  /// Whether only a sample is migrated.
  package var canary: Bool
  /// The options for models and rules, as words of a shell: a closer inspection of a store needs them, too.
  package var options: String
  /// How the run ended; nil at the beginning.
  package var outcome: RunOutcome?

  package enum Event: String, Codable, Sendable, Hashable {
    case begin, end
  }

  /// The name of this machine in its network; empty where it has none. For people.
  package static func hostName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The first line of a run.
  package init(
    run: String, shard: Shard, stores: Int, fleet: Int, host: String, time: Moment, canary: Bool, options: String = ""
  ) {
    (event, self.run, self.shard, shards) = (.begin, run, shard.index, shard.count)
    (self.stores, self.fleet, self.host, self.time, self.canary) = (stores, fleet, host, time, canary)
    self.options = options
  }
}

extension RunLine {
  /// Whether a worker can have written it.
  var isPlausible: Bool {
    Shard(index: shard, count: shards) != nil && LineBounds.counts.contains(stores) && LineBounds.counts.contains(fleet)
  }
}

/// How a run ended.
package struct RunOutcome: Codable, Sendable, Hashable {
  /// Exit status of the worker.
  package var exit: Int32
  /// Why it stopped before all stores were tried; nil where it did not.
  package var stopped: Stop?
  /// Stores by result; `untried` are those that it did not reach.
  package var migrated: Int
  package var current: Int
  package var failed: Int
  package var waiting: Int
  package var untried: Int
  package var seconds: Double
  /// What all stores have lost, by entity and property; nil where that is nothing.
  package var drops: [String: Int64]?

  package enum Stop: String, Codable, Sendable, Hashable {
    /// SIGTERM or SIGINT.
    case signal
    /// `--deadline`.
    case deadline
    /// `--max-failures`.
    case failures
    /// `--canary`: the sample is done, and a person decides.
    case canary
  }
}
