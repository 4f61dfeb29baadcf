// The daemon's metrics for Prometheus: a text file that node_exporter's textfile collector reads. Pure: it counts
// events and returns the text. No label names a store or an entity, so that the number of series stays small.

/// Counters of a run of the daemon, and the text of the file.
package struct Metrics: Sendable, Hashable {
  /// Values that are read when the file is written.
  package struct Gauges: Sendable {
    /// Stores by version and condition.
    package var stores: [(version: String, state: String, count: Int64)] = []
    /// Stores that wait for their migration or are migrated.
    package var queueDepth: Int64 = 0
    /// Seconds that the longest waiting store has waited.
    package var oldestWaiting: Int64 = 0
    /// Bytes of all backups; nil while they are not counted yet.
    package var backupBytes: Int64?
    /// Watches, and those that are not served.
    package var watches: Int64 = 0
    package var unavailable: Int64 = 0
    /// Whether there is any pause.
    package var isPaused = false
    /// Whether the machine's pressure halts migrations.
    package var isThrottled = false
  }

  /// Upper bounds of the buckets of `hopd_hop_seconds`.
  static let buckets: [Double] = [0.01, 0.1, 1, 10, 60, 600, 3600]
  /// Results that the file always contains, so that Prometheus can compute their rate from the first one on.
  static let results = ["migrated", "failed", "refused", "deferred", "interrupted"]

  private var migrations: [String: Int64] = [:]
  private var rows: Int64 = 0
  private var hops: [Int64] = Array(repeating: 0, count: buckets.count)
  private var hopCount: Int64 = 0
  private var hopSeconds: Double = 0
  private var overflows: Int64 = 0
  private var lastSuccess: Int64 = 0

  /// Counts a successful migration.
  package mutating func migrated(rows: Int64, hops: [Double], at seconds: Int64) {
    ended("migrated")
    self.rows = self.rows.addingReportingOverflow(max(0, rows)).partialValue
    lastSuccess = seconds
    for hop in hops where hop.isFinite && hop >= 0 {
      hopCount &+= 1
      hopSeconds += hop
      if let index = Self.buckets.firstIndex(where: { hop <= $0 }) { self.hops[index] &+= 1 }
    }
  }

  /// Counts a migration or an inspection with another result.
  package mutating func ended(_ result: String) { migrations[result, default: 0] &+= 1 }

  /// Counts an overflow of the kernel's event queue.
  package mutating func overflowed() { overflows &+= 1 }

  /// The text of the file.
  package func text(_ gauges: Gauges, version: String) -> String {
    var text = ""
    func metric(_ name: String, _ kind: String, _ help: String, _ samples: [(labels: String, value: String)]) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
      for sample in samples { text += "\(name)\(sample.labels) \(sample.value)\n" }
    }
    func one(_ value: some CustomStringConvertible) -> [(labels: String, value: String)] { [("", "\(value)")] }
    metric("hopd_build_info", "gauge", "Version of the running hopd.", [("{version=\(Self.quoted(version))}", "1")])
    metric(
      "hopd_stores", "gauge", "Stores by model version and state.",
      gauges.stores.map {
        ("{version=\(Self.quoted($0.version)),state=\(Self.quoted($0.state))}", String($0.count))
      })
    metric(
      "hopd_store_migrations_total", "counter", "Finished migrations by result.",
      Set(Self.results).union(migrations.keys).sorted().map {
        ("{result=\(Self.quoted($0))}", String(migrations[$0] ?? 0))
      })
    metric("hopd_rows_total", "counter", "Rows of migrated stores.", one(rows))
    text += "# HELP hopd_hop_seconds Duration of a hop.\n# TYPE hopd_hop_seconds histogram\n"
    var sum: Int64 = 0
    for (end, count) in zip(Self.buckets, hops) {
      sum &+= count
      text += "hopd_hop_seconds_bucket{le=\"\(end)\"} \(sum)\n"
    }
    text += "hopd_hop_seconds_bucket{le=\"+Inf\"} \(hopCount)\nhopd_hop_seconds_sum \(hopSeconds)\n"
    text += "hopd_hop_seconds_count \(hopCount)\n"
    metric("hopd_queue_depth", "gauge", "Stores that are waiting or being migrated.", one(gauges.queueDepth))
    metric(
      "hopd_oldest_waiting_seconds", "gauge", "Age of the oldest queued store in seconds.",
      one(gauges.oldestWaiting))
    if let bytes = gauges.backupBytes {
      metric("hopd_backup_bytes", "gauge", "Size of all backups in bytes, updated at least once an hour.", one(bytes))
    }
    metric("hopd_watches", "gauge", "Configured watches.", one(gauges.watches))
    metric("hopd_watches_unavailable", "gauge", "Watches that are unavailable.", one(gauges.unavailable))
    metric(
      "hopd_paused", "gauge", "Whether an operator has paused migrations (1) or not (0).", one(gauges.isPaused ? 1 : 0))
    metric(
      "hopd_throttled", "gauge", "Whether system pressure pauses migrations (1) or not (0).",
      one(gauges.isThrottled ? 1 : 0))
    metric(
      "hopd_watch_overflows_total", "counter", "Overflows of the inotify event queue.",
      one(overflows))
    metric(
      "hopd_last_success_timestamp_seconds", "gauge",
      "Time of the last migration in Unix seconds; 0 if none since the start.",
      one(lastSuccess))
    return text
  }

  /// A label's value, with backslash, quotation mark and newline escaped.
  private static func quoted(_ text: String) -> String {
    "\""
      + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n") + "\""
  }
}
