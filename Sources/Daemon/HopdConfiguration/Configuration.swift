// The configuration as one complete, valid value for the rest of the program. The initial value of a property is the
// default of its key; no other target handles defaults, TOML or configuration files.

import MigrationPipeline
import SystemPackage

/// All settings of an operator.
package struct Configuration: Sendable, Hashable {
  /// `[daemon]`: settings of the daemon as a whole.
  package var daemon = Daemon()
  /// `[control]`: settings of the control socket.
  package var control = Control()
  /// `[throttle]`: the machine's pressure above which hopd halts.
  package var throttle = Throttle()
  /// The watched directories in the order of their first appearance.
  package var watches: [Watch] = []
  /// `[policies]`: programs that replace migration policy classes.
  package var policies: [Policy] = []

  /// Whether there is a `[[watch]]`. Without one the daemon exits with status 6 (NOTCONFIGURED).
  package var isConfigured: Bool { !watches.isEmpty }

  /// The watch of that name.
  package func watch(named name: String) -> Watch? { watches.first { $0.name == name } }

  /// The watches whose stores may be in a directory: its own watch, and recursive ones above it.
  package func watches(around directory: FilePath) -> [Watch] {
    watches.filter { $0.recursive ? directory.starts(with: $0.directory) : directory == $0.directory }
  }

  /// Lowest level that is logged.
  package enum LogLevel: String, CaseIterable, Sendable {
    /// Every decision.
    case trace
    /// SQL statements and timings.
    case debug
    /// One line per store.
    case info
    /// Normal but notable events.
    case notice
    /// Problems that hopd handles itself.
    case warning
    /// Problems that need an operator.
    case error
  }

  /// `[daemon]`.
  package struct Daemon: Sendable, Hashable {
    /// `log_level`.
    package var logLevel = LogLevel.info
    /// `jobs`: stores migrated at the same time.
    package var jobs = 2
    /// `memory_limit` in bytes, for the chunks of all jobs together.
    package var memoryLimit: Int64 = 64 << 20
    /// `metrics_file`, absolute; nil for none.
    package var metricsFile: FilePath?
    /// `on_failure` and `on_migrated`, for watches that do not set them.
    package var commands = Commands()
    /// `window` and `time_zone`, for watches that do not set them.
    var hours = Hours()
  }

  /// Programs with their arguments that run after work on a store; empty for none.
  package struct Commands: Sendable, Hashable {
    /// `on_failure`: when a store needs an operator.
    package var onFailure: [String] = []
    /// `on_migrated`: after a migration.
    package var onMigrated: [String] = []

    /// Creates commands.
    package init(onFailure: [String] = [], onMigrated: [String] = []) {
      (self.onFailure, self.onMigrated) = (onFailure, onMigrated)
    }
  }

  /// The hours in which migrations begin, as written in a table.
  struct Hours: Sendable, Hashable {
    /// `window`: "22:00-06:00"; empty for always.
    var window = ""
    /// `time_zone`: the name of a zone; empty for the system's.
    var timeZone = ""
  }

  /// `[control]`.
  package struct Control: Sendable, Hashable {
    /// The default of `socket`.
    package static let standard: FilePath = "/run/hopd/control.sock"
    /// `socket`, absolute; nil for none.
    package var socket: FilePath? = standard
  }

  /// `[throttle]`: the share of time, in per cent, that programs may wait for a resource; 0 for no limit.
  package struct Throttle: Sendable, Hashable {
    /// `io_pressure`.
    package var ioPressure = 0
    /// `cpu_pressure`.
    package var cpuPressure = 0
    /// `memory_pressure`.
    package var memoryPressure = 0

    /// Whether any limit is set.
    package var isSet: Bool { ioPressure > 0 || cpuPressure > 0 || memoryPressure > 0 }
  }

  /// One `[[watch]]`.
  package struct Watch: Sendable, Hashable {
    /// `name`, unique.
    package var name = ""
    /// `directory`, absolute.
    package var directory: FilePath = "/"
    /// `include`: patterns for file names.
    package var include = ["*.sqlite", "*.store"]
    /// `exclude`: patterns for file names.
    package var exclude: [String] = []
    /// `recursive`: the directories below too.
    package var recursive = false
    /// `models`: models or folders of models, absolute.
    package var models: [FilePath] = []
    /// `mappings`: mapping models or folders of them, absolute; folders of `models` are searched too.
    package var mappings: [FilePath] = []
    /// `versions`: the declared order of versions; empty for the natural order.
    package var versions: [String] = []
    /// `target`: the version to migrate to; nil for the model's current one.
    package var target: String?
    /// `settle`: how long a file must be quiet.
    package var settle = Duration.seconds(2)
    /// `rescan`: how often everything is scanned again.
    package var rescan = Duration.seconds(600)
    /// `priority`: stores of a watch with a higher priority are migrated first.
    package var priority = 0
    /// `on_failure` and `on_migrated`, or those of `[daemon]`.
    package var commands = Commands()
    /// `window` and `time_zone`, or those of `[daemon]`: the hours in which migrations begin; nil for always.
    package var window: TimeWindow?
    var hours = Hours()
    /// `infer`, `renames`, `no_rename`, `route`, `[watch.backup]`, and most of `[watch.migration]`.
    package var migration = MigrationSettings()
    /// `join_tables`: relationships ("Entity.relationship") that name the join tables between an entity and itself.
    package var joinTables: [String] = []
    /// `reference`: a store of the target version that the app made, absolute; hopd reads the names of tables from it.
    package var reference: FilePath?
    /// `retry`.
    package var retry = RetryRule()
  }

  /// One entry of `[policies]`.
  package struct Policy: Sendable, Hashable {
    /// The class, with or without its module.
    package var name: String
    /// `command`: the program, absolute, and its arguments.
    package var command: [String] = []
    /// `timeout`: the time limit of one call.
    package var timeout = Duration.seconds(30)
    /// `memory` in bytes.
    package var memory: Int64 = 256 << 20
  }
}
