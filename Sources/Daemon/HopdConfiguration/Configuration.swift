// The configuration as one complete, valid value for the rest of the program. Keys that are not set already have their
// defaults; no other target handles defaults, TOML or configuration files.

import MappingModel
import MigrationPlanning
import StoreReplacement
import StoreVerification
import SystemPackage

/// All settings of an operator.
package struct Configuration: Sendable, Hashable {
  /// `[daemon]`: settings of the daemon as a whole.
  package var daemon: Daemon
  /// `[control]`: settings of the control socket.
  package var control = Control()
  /// `[throttle]`: the machine's pressure above which hopd halts.
  package var throttle = Throttle()
  /// The watched directories in the order of their first appearance.
  package var watches: [Watch]
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
    package var logLevel: LogLevel
    /// `jobs`: stores migrated at the same time.
    package var jobs: Int
    /// `memory_limit` in bytes, for the chunks of all jobs together.
    package var memoryLimit: Int64
    /// `metrics_file`, absolute; nil for none.
    package var metricsFile: FilePath?
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
    package var name: String
    /// `directory`, absolute.
    package var directory: FilePath
    /// `include`: patterns for file names.
    package var include: [String]
    /// `exclude`: patterns for file names.
    package var exclude: [String]
    /// `recursive`: the directories below too.
    package var recursive: Bool
    /// `models`: models or folders of models, absolute.
    package var models: [FilePath]
    /// `mappings`: mapping models or folders of them, absolute; folders of `models` are searched too.
    package var mappings: [FilePath] = []
    /// `versions`: the declared order of versions; empty for the natural order.
    package var versions: [String]
    /// `target`: the version to migrate to; nil for the model's current one.
    package var target: String?
    /// `infer`: whether hops without a mapping model may be inferred.
    package var infer: Bool
    /// `renames` and `no_rename`: how names are matched if renaming identifiers contradict them.
    package var renames: RenameRules
    /// `route`: the choice between several chains of versions.
    package var route: RouteRule
    /// `settle`: how long a file must be quiet.
    package var settle: Duration
    /// `rescan`: how often everything is scanned again.
    package var rescan: Duration
    /// `priority`: stores of a watch with a higher priority are migrated first.
    package var priority = 0
    /// `window` and `time_zone`, or those of `[daemon]`: the hours in which migrations begin; nil for always.
    package var window: TimeWindow?
    /// `[watch.migration]`.
    package var migration: Migration
    /// `[watch.backup]`; with a `keep_for` of zero, backups do not expire.
    package var backup: BackupRule
  }

  /// One entry of `[policies]`.
  package struct Policy: Sendable, Hashable {
    /// The class, with or without its module.
    package var name: String
    /// `command`: the program, absolute, and its arguments.
    package var command: [String]
    /// `timeout`: the time limit of one call.
    package var timeout: Duration
    /// `memory` in bytes.
    package var memory: Int64
  }

  /// `[watch.migration]`.
  package struct Migration: Sendable, Hashable {
    /// `chunk_time`: the duration of a chunk, to which its size adapts.
    package var chunkTime: Duration
    /// `chunk_rows_max`.
    package var chunkRowsMax: Int
    /// `invalid_rows` for entities that the key does not name.
    package var invalidRows: InvalidRowsRule = .fail
    /// `invalid_rows` by entity of the destination version.
    package var invalidRowsByEntity: [String: InvalidRowsRule] = [:]
    /// `unmapped_entities`.
    package var unmappedEntities: UnmappedEntitiesRule = .fail
    /// `history`.
    package var history: HistoryRule
    /// `cloudkit`.
    package var cloudKit: CloudKitRule = .refuse
    /// `verify`.
    package var verify: VerificationDepth
    /// `replace`: the kind of replacement; nil for a rename, or in place if a rename is not safe.
    package var replace: ReplacementMode?
    /// `journal_mode`.
    package var journalMode: JournalModeRule
    /// `join_tables`: relationships ("Entity.relationship") that name the join tables between an entity and itself.
    package var joinTables: [String]
    /// `reference`: a store of the target version that the app made, absolute; hopd reads the names of tables from it.
    package var reference: FilePath?
    /// `retry`.
    package var retry: Retry
  }

  /// `retry`: how hopd retries after a temporary failure.
  package struct Retry: Sendable, Hashable {
    /// `attempts`: the number of attempts in all.
    package var attempts: Int
    /// `backoff`: the pause after the first failure; it doubles with each.
    package var backoff: Duration
    /// `max`: the longest pause.
    package var max: Duration
  }
}
