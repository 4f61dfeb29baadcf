// The one list of keys: what the reader asks for, what unknown keys are compared with, and what config/hopd.toml must
// show (a test compares them both ways).

import Diagnostics

/// A key of hopd.toml.
package struct ConfigurationKey: Hashable, Sendable {
  /// Path with dots; tables of an array without a number: `watch.migration.verify`.
  package let path: String
  /// The default as it is written in TOML; nil where the key must be set or has no default.
  package let defaultText: String?

  private init(_ path: String, _ defaultText: String?) {
    self.path = path
    self.defaultText = defaultText
  }

  /// All keys in the order of the sample file.
  package static let all: [ConfigurationKey] = [
    ConfigurationKey("daemon.log_level", "\"info\""),
    ConfigurationKey("daemon.jobs", "2"),
    ConfigurationKey("daemon.memory_limit", "\"64MiB\""),
    ConfigurationKey("daemon.metrics_file", "\"\""),
    ConfigurationKey("daemon.window", "\"\""),
    ConfigurationKey("daemon.time_zone", "\"\""),
    ConfigurationKey("throttle.io_pressure", "0"),
    ConfigurationKey("throttle.cpu_pressure", "0"),
    ConfigurationKey("throttle.memory_pressure", "0"),
    ConfigurationKey("control.socket", "\"/run/hopd/control.sock\""),
    ConfigurationKey("watch.name", nil),
    ConfigurationKey("watch.directory", nil),
    ConfigurationKey("watch.include", "[\"*.sqlite\", \"*.store\"]"),
    ConfigurationKey("watch.exclude", "[]"),
    ConfigurationKey("watch.recursive", "false"),
    ConfigurationKey("watch.models", nil),
    ConfigurationKey("watch.mappings", "[]"),
    ConfigurationKey("watch.versions", "[]"),
    ConfigurationKey("watch.target", "\"current\""),
    ConfigurationKey("watch.infer", "true"),
    ConfigurationKey("watch.renames", "[]"),
    ConfigurationKey("watch.no_rename", "false"),
    ConfigurationKey("watch.route", "\"progressive\""),
    ConfigurationKey("watch.settle", "\"2s\""),
    ConfigurationKey("watch.rescan", "\"10min\""),
    ConfigurationKey("watch.priority", "0"),
    ConfigurationKey("watch.window", "\"\""),
    ConfigurationKey("watch.time_zone", "\"\""),
    ConfigurationKey("watch.migration.chunk_time", "\"250ms\""),
    ConfigurationKey("watch.migration.chunk_rows_max", "50_000"),
    ConfigurationKey("watch.migration.fuse_hops", "true"),
    ConfigurationKey("watch.migration.invalid_rows", "\"fail\""),
    ConfigurationKey("watch.migration.unmapped_entities", "\"fail\""),
    ConfigurationKey("watch.migration.history", "\"migrate\""),
    ConfigurationKey("watch.migration.cloudkit", "\"refuse\""),
    ConfigurationKey("watch.migration.verify", "\"quick\""),
    ConfigurationKey("watch.migration.replace", "\"auto\""),
    ConfigurationKey("watch.migration.journal_mode", "\"keep\""),
    ConfigurationKey("watch.migration.join_tables", "[]"),
    ConfigurationKey("watch.migration.reference", "\"\""),
    ConfigurationKey("watch.migration.retry.attempts", "5"),
    ConfigurationKey("watch.migration.retry.backoff", "\"30s\""),
    ConfigurationKey("watch.migration.retry.max", "\"1h\""),
    ConfigurationKey("watch.backup.keep", "1"),
    ConfigurationKey("watch.backup.keep_for", "\"0s\""),
    ConfigurationKey("watch.backup.directory", "\"\""),
    ConfigurationKey("policies", nil),
  ]

  /// Names that may follow directly below `prefix` (empty for the top).
  static func names(below prefix: String) -> [String] {
    var names: [String] = []
    for key in all {
      let rest: Substring
      if prefix.isEmpty {
        rest = key.path[...]
      } else if key.path.hasPrefix(prefix + ".") {
        rest = key.path.dropFirst(prefix.count + 1)
      } else {
        continue
      }
      let name = String(rest.prefix { $0 != "." })
      if !names.contains(name) { names.append(name) }
    }
    return names
  }

  /// Is this the path of a table with known keys?
  static func isTable(_ path: String) -> Bool { all.contains { $0.path.hasPrefix(path + ".") } }

  /// What to do with a key that belongs to a table around the one it is in; nil for one that does not.
  static func home(of name: String, around prefix: String) -> String? {
    var table = prefix
    while let dot = table.lastIndex(of: ".") {
      table = String(table[..<dot])
      guard names(below: table).contains(name) else { continue }
      return "it is a key of \(table == "watch" ? "[[watch]]" : "[\(table)]"): move it above [\(prefix)]"
    }
    return nil
  }

  /// The known name that looks most like `name`, if any does.
  static func suggestion(for name: String, below prefix: String) -> String? {
    NearestName.among(names(below: prefix), to: name)
  }
}
