// The list of all keys. The reader finds unknown keys with it, and config/hopd.toml must contain exactly these keys (a
// test compares them both ways).

/// A key of hopd.toml.
package struct ConfigurationKey: Hashable, Sendable {
  /// Path with dots, without indexes of arrays: `watch.migration.verify`.
  package let path: String
  /// The default in TOML; nil if the key must be set or has no default.
  package let defaultText: String?

  /// All keys.
  package static let all = table.map { ConfigurationKey(path: $0, defaultText: $1) }

  /// Paths and defaults in the order of the sample file.
  private static let table: [(String, String?)] = [
    ("daemon.log_level", "\"info\""),
    ("daemon.jobs", "2"),
    ("daemon.memory_limit", "\"64MiB\""),
    ("daemon.metrics_file", "\"\""),
    ("daemon.window", "\"\""),
    ("daemon.time_zone", "\"\""),
    ("throttle.io_pressure", "0"),
    ("throttle.cpu_pressure", "0"),
    ("throttle.memory_pressure", "0"),
    ("control.socket", "\"/run/hopd/control.sock\""),
    ("watch.name", nil),
    ("watch.directory", nil),
    ("watch.include", "[\"*.sqlite\", \"*.store\"]"),
    ("watch.exclude", "[]"),
    ("watch.recursive", "false"),
    ("watch.models", nil),
    ("watch.mappings", "[]"),
    ("watch.versions", "[]"),
    ("watch.target", "\"current\""),
    ("watch.infer", "true"),
    ("watch.renames", "[]"),
    ("watch.no_rename", "false"),
    ("watch.route", "\"progressive\""),
    ("watch.settle", "\"2s\""),
    ("watch.rescan", "\"10min\""),
    ("watch.priority", "0"),
    ("watch.window", "\"\""),
    ("watch.time_zone", "\"\""),
    ("watch.migration.chunk_time", "\"250ms\""),
    ("watch.migration.chunk_rows_max", "50_000"),
    ("watch.migration.invalid_rows", "\"fail\""),
    ("watch.migration.unmapped_entities", "\"fail\""),
    ("watch.migration.history", "\"migrate\""),
    ("watch.migration.cloudkit", "\"refuse\""),
    ("watch.migration.verify", "\"quick\""),
    ("watch.migration.replace", "\"auto\""),
    ("watch.migration.journal_mode", "\"keep\""),
    ("watch.migration.join_tables", "[]"),
    ("watch.migration.reference", "\"\""),
    ("watch.migration.retry.attempts", "5"),
    ("watch.migration.retry.backoff", "\"30s\""),
    ("watch.migration.retry.max", "\"1h\""),
    ("watch.backup.keep", "1"),
    ("watch.backup.keep_for", "\"0s\""),
    ("watch.backup.directory", "\"\""),
    ("policies", nil),
  ]

  /// Names of keys directly below `prefix` (empty for the top level).
  static func names(below prefix: String) -> [String] {
    let start = prefix.isEmpty ? "" : prefix + "."
    var names: [String] = []
    for key in all where key.path.hasPrefix(start) {
      let name = String(key.path.dropFirst(start.count).prefix { $0 != "." })
      if !names.contains(name) { names.append(name) }
    }
    return names
  }

  /// The hint for a key that belongs to a table around the one it is in; nil for any other key.
  static func home(of name: String, around prefix: String) -> String? {
    var table = prefix
    while let dot = table.lastIndex(of: ".") {
      table = String(table[..<dot])
      guard names(below: table).contains(name) else { continue }
      return "it is a key of \(table == "watch" ? "[[watch]]" : "[\(table)]"): move it above [\(prefix)]"
    }
    return nil
  }
}
