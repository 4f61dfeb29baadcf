// The configuration as the rest of the program sees it: one immutable value, complete and valid. What is not set has
// its default here already; nobody else knows defaults, TOML, or files.

import MappingModel
import MigrationPlanning
import StoreReplacement
import StoreVerification
import SystemPackage

/// Everything an operator can set.
package struct Configuration: Sendable, Hashable {
  /// What concerns the daemon as a whole.
  package var daemon: Daemon
  /// What concerns the control socket.
  package var control = Control()
  /// How much pressure of the machine hopd works under.
  package var throttle = Throttle()
  /// The watched directories in the order of their first appearance.
  package var watches: [Watch]
  /// `[policies]`: programs that stand in for migration policy classes, by class name.
  package var policies: [Policy] = []

  /// Is there anything to do? Without a `[[watch]]` the daemon ends with status 6 (NOTCONFIGURED).
  package var isConfigured: Bool { !watches.isEmpty }

  /// The watch of that name.
  package func watch(named name: String) -> Watch? { watches.first { $0.name == name } }

  /// The watches whose stores may be in a directory: its own, and recursive ones above it.
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
    /// What is worth a look.
    case notice
    /// What went wrong and was dealt with.
    case warning
    /// What somebody must deal with.
    case error
  }

  /// `[daemon]`.
  package struct Daemon: Sendable, Hashable {
    /// `log_level`.
    package var logLevel: LogLevel
    /// `jobs`: stores migrated at once.
    package var jobs: Int
    /// `memory_limit` in bytes: what the chunks of all jobs together may use.
    package var memoryLimit: Int64
    /// `metrics_file`, absolute; nil for none.
    package var metricsFile: FilePath?
  }

  /// `[control]`.
  package struct Control: Sendable, Hashable {
    /// Where the socket is unless `socket` says otherwise.
    package static let standard: FilePath = "/run/hopd/control.sock"
    /// `socket`, absolute; nil for none.
    package var socket: FilePath? = standard
  }

  /// `[throttle]`: shares of time, in per cent, that others may wait for a resource; 0 for no limit.
  package struct Throttle: Sendable, Hashable {
    /// `io_pressure`.
    package var ioPressure = 0
    /// `cpu_pressure`.
    package var cpuPressure = 0
    /// `memory_pressure`.
    package var memoryPressure = 0

    /// Is there a limit?
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
    /// `versions`: the order that the operator declares; empty for the natural order.
    package var versions: [String]
    /// `target`: the version to migrate to; nil for the model's current one.
    package var target: String?
    /// `infer`: may hops be inferred where no mapping model is given?
    package var infer: Bool
    /// `renames` and `no_rename`: names that are decided where renaming identifiers contradict them.
    package var renames: RenameRules
    /// `route`: which of several ways through the versions is taken.
    package var route: RouteRule
    /// `settle`: how long a file must be quiet.
    package var settle: Duration
    /// `rescan`: how often everything is inspected again.
    package var rescan: Duration
    /// `priority`: stores of a watch with a higher one are migrated first.
    package var priority = 0
    /// `window` and `time_zone`, or those of `[daemon]`: when migrations begin; nil for always.
    package var window: TimeWindow?
    /// `[watch.migration]`.
    package var migration: Migration
    /// `[watch.backup]`; a `keep_for` of zero keeps backups however old they are.
    package var backup: BackupRule
  }

  /// One entry of `[policies]`.
  package struct Policy: Sendable, Hashable {
    /// The class, with or without its module.
    package var name: String
    /// `command`: the program, absolute, and its arguments.
    package var command: [String]
    /// `timeout`: longest time of one call.
    package var timeout: Duration
    /// `memory` in bytes.
    package var memory: Int64
  }

  /// `[watch.migration]`.
  package struct Migration: Sendable, Hashable {
    /// `chunk_time`: the chunk grows or shrinks to this.
    package var chunkTime: Duration
    /// `chunk_rows_max`.
    package var chunkRowsMax: Int
    /// `fuse_hops`: are hops that follow each other done as one pass over the rows, where the result is the same?
    package var fuseHops: Bool = true
    /// `invalid_rows`, for entities that it does not name.
    package var invalidRows: InvalidRowsRule = .fail
    /// `invalid_rows` by entity of the version that the rows come to.
    package var invalidRowsByEntity: [String: InvalidRowsRule] = [:]
    /// `unmapped_entities`.
    package var unmappedEntities: UnmappedEntitiesRule = .fail
    /// `history`.
    package var history: HistoryRule
    /// `cloudkit`.
    package var cloudKit: CloudKitRule = .refuse
    /// `verify`.
    package var verify: VerificationDepth
    /// `replace`: how the new store takes the old one's place; nil for a rename, or in place where that is not safe.
    package var replace: ReplacementMode?
    /// `journal_mode`.
    package var journalMode: JournalModeRule
    /// `join_tables`: ends ("Entity.relationship") that name many-to-many tables of an entity with itself.
    package var joinTables: [String]
    /// `reference`: a store of the target version that the app made, absolute; names of tables are read off it.
    package var reference: FilePath?
    /// `retry`.
    package var retry: Retry
  }

  /// `retry`: what happens after a failure that may pass.
  package struct Retry: Sendable, Hashable {
    /// `attempts`: tries in all.
    package var attempts: Int
    /// `backoff`: pause after the first failure; it doubles.
    package var backoff: Duration
    /// `max`: longest pause.
    package var max: Duration
  }
}
