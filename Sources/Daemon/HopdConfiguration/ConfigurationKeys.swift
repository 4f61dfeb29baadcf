// All keys of hopd.toml, one row each. Tests compare the rows with config/hopd.toml and docs/man/hopd.toml.5.

import MappingModel
import MigrationEngine
import MigrationPipeline
import StoreReplacement
import SystemPackage

extension Configuration {
  static let keys: [Key<Configuration>] = [
    .table(
      "daemon",
      [
        Key("jobs", \.daemon.jobs, .integer(1...256), isSettable: true),
        Key("memory_limit", \.daemon.memoryLimit, .size((1 << 20)...(1 << 46)), isSettable: true),
        Key("log_level", \.daemon.logLevel, .choice, isSettable: true),
        Key("metrics_file", \.daemon.metricsFile, path),
        Key("on_failure", \.daemon.commands.onFailure, .command),
        Key("on_migrated", \.daemon.commands.onMigrated, .command),
        Key("window", \.daemon.hours.window, .string),
        Key("time_zone", \.daemon.hours.timeZone, .string),
      ]),
    .table(
      "throttle",
      [
        Key("io_pressure", \.throttle.ioPressure, .integer(0...100), isSettable: true),
        Key("cpu_pressure", \.throttle.cpuPressure, .integer(0...100), isSettable: true),
        Key("memory_pressure", \.throttle.memoryPressure, .integer(0...100), isSettable: true),
      ]),
    .table("control", [Key("socket", \.control.socket, path)]),
    // Read after all others: the loader merges watches by their names, and policies have names too.
    Key("watch", list: { ConfigurationKey.list(Watch.keys, of: Watch(), below: $1) }),
    Key("policies", list: { [ConfigurationKey($1, nil)] }),
  ]
}

extension Configuration.Watch {
  static let keys: [Key<Self>] = [
    Key("name", \.name, .string, required: "\"library\""),
    Key("directory", \.directory, .path, required: "\"/srv/stores\""),
    Key("include", \.include, .patterns.notEmpty("matches no file", write: "[\"*.sqlite\"]")),
    Key("exclude", \.exclude, .patterns),
    Key("recursive", \.recursive, .boolean),
    Key("models", \.models, .paths.notEmpty("names no model", write: model), required: model),
    Key("mappings", \.mappings, .paths),
    Key("versions", \.versions, .strings),
    Key("target", \.target, KeyType.version.or("current")),
    Key("infer", \.migration.infer, .boolean),
    Key("renames", \.migration.renames.renames, .renames),
    Key("no_rename", \.migration.renames.namesCount, .boolean),
    Key("route", \.migration.route, .choice),
    Key("settle", \.settle, .duration(.milliseconds(1) ... .seconds(86_400))),
    Key("rescan", \.rescan, .duration(.seconds(1) ... .seconds(30 * 86_400))),
    Key("priority", \.priority, .integer(-1000...1000)),
    Key("on_failure", \.commands.onFailure, .command),
    Key("on_migrated", \.commands.onMigrated, .command),
    Key("window", \.hours.window, .string),
    Key("time_zone", \.hours.timeZone, .string),
    .table(
      "migration",
      [
        Key("chunk_time", \.migration.engine.chunkTime, .duration(.milliseconds(1) ... .seconds(60))),
        Key("chunk_rows_max", \.migration.engine.chunkRowsMax, .integer(1...10_000_000)),
        Key("invalid_rows", \.migration.engine.invalidRows, .invalidRows),
        Key("unmapped_entities", \.migration.unmappedEntities, .choice),
        Key("history", \.migration.history, .choice),
        Key("cloudkit", \.migration.cloudKit, .choice),
        Key("verify", \.migration.verification, .choice),
        Key("replace", \.migration.replacement, KeyType<ReplacementMode>.choice(of: ["auto"]).or("auto")),
        Key("journal_mode", \.migration.journalMode, .choice),
        Key("join_tables", \.joinTables, .relationships),
        Key("reference", \.reference, path),
        .table(
          "retry",
          [
            Key("attempts", \.retry.attempts, .integer(1...1000)),
            Key("backoff", \.retry.backoff, .duration(.milliseconds(1) ... .seconds(86_400))),
            Key("max", \.retry.longest, .duration(.milliseconds(1) ... .seconds(30 * 86_400))),
          ]),
      ]),
    .table(
      "backup",
      [
        Key("keep", \.migration.backup.keep, .integer(0...10_000)),
        Key("keep_for", \.migration.backup.keepFor, KeyType.duration(.zero ... .seconds(36_600 * 86_400)).or("0s")),
        Key("directory", \.migration.backup.directory, path),
        Key("release_pins", \.migration.pinRule, .choice),
      ]),
  ]

  private static let model = "[\"/srv/models/Library.momd\"]"
}

extension Configuration.Policy {
  static let keys: [Key<Self>] = [
    Key("command", \.command, .strings),
    Key("timeout", \.timeout, .duration(.milliseconds(100) ... .seconds(86_400))),
    Key("memory", \.memory, .size((1 << 20)...(1 << 46))),
  ]
}

/// The type of paths that may be left out.
private let path = KeyType<FilePath>.path.or("")
