// The options of `hopctl restore` for a set: which directory, and which backups of its stores.

import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import MigrationPipeline
import PersistentStore
import StoreReplacement
import StoreWatching
import SystemPackage

/// `--watch`, `--since`, `--from-version`, `--to-version`, `--config`, `--recursive`.
struct RestoreSetOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Restore the stores of this watch or directory",
      discussion: "Requires --since, --from-version or --to-version; all that are given must match.",
      valueName: "name|dir"), completion: .directory)
  var watch: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Select stores that were migrated since then",
      discussion: "In local time: \(PointInTime.forms).", valueName: "time"))
  var since: String?

  @Option(
    name: .customLong("from-version"),
    help: ArgumentHelp("Select stores that had this version before their migration", valueName: "version"))
  var fromVersion: String?

  @Option(
    name: .customLong("to-version"),
    help: ArgumentHelp("Select stores that were migrated to this version", valueName: "version"))
  var toVersion: String?

  @Option(
    help: "Configuration file with the watch (default: the installed ones)",
    completion: .file(extensions: ["toml"]))
  var config: String?

  @Flag(help: "Also search subdirectories")
  var recursive = false

  /// Whether backups are selected.
  var selects: Bool { since != nil || fromVersion != nil || toVersion != nil }

  /// Throws if options contradict each other. The argument parser must not check this: after a mistake it takes the h
  /// of `--since -1h` for a request for help, and ends with status 0.
  func requireConsistent() throws(HopdError) {
    if watch == nil, selects || config != nil || recursive {
      throw HopdError(
        .usage, "--since, --from-version, --to-version, --config and --recursive require --watch",
        hint: "add --watch NAME or --watch DIRECTORY")
    }
    if watch != nil, !selects {
      throw HopdError(
        .usage, "--watch requires --since, --from-version or --to-version",
        hint: "run `hopctl restore --watch NAME --since -1h`"
      )
    }
  }

  /// Returns which backups are meant.
  func selection() throws(HopdError) -> RestoreSelection {
    let now = Int64(time(nil))
    let moment = since.flatMap { PointInTime.seconds($0, now: now) }
    if let since, moment == nil {
      throw HopdError(
        .usage, "--since expects a time, not \"\(since.printableLine)\"",
        hint: "pass one of the forms \(PointInTime.forms)")
    }
    if let moment, moment > now {
      throw HopdError(
        .usage, "--since is in the future: \(BackupRecord.time(moment))",
        hint: "pass a date too, e.g. --since \"yesterday\"")
    }
    return RestoreSelection(since: moment, from: fromVersion, to: toVersion)
  }

  /// Returns the watch or folder that `--watch` names.
  func place(_ name: String) throws -> SetPlace {
    var configuration: Configuration?
    do {
      configuration =
        try config.map { try ConfigurationLoader.load(file: FilePath($0).resolved()) }?.configuration
        ?? ConfigurationLoader().load().configuration
    } catch {
      // A folder needs no configuration; without one, backups elsewhere are named by --backup-directory.
      guard config == nil, name.contains("/") else { throw error }
    }
    if !name.contains("/"), let found = configuration?.watch(named: name) { return try SetPlace(found) }
    guard let directory = try? CanonicalDirectory(resolving: FilePath(name)),
      try LinuxFileSystem().status(directory.path)?.kind == .directory
    else {
      let names = configuration?.watches.map(\.name.printableLine).joined(separator: ", ") ?? ""
      throw HopdError(
        .usage, "no such watch or directory: \(name.printableLine)",
        hint: names.isEmpty ? "pass a directory, or --config FILE" : "pass a directory, or one of the watches: \(names)"
      )
    }
    let around = configuration?.watches(around: directory.path) ?? []
    let watch = around.count == 1 ? around.first : nil
    return SetPlace(
      name: directory.path.lastComponent?.string ?? "root", directory: directory, recursive: recursive,
      rule: BackupRule(keep: .max, directory: watch?.migration.backup.directory))
  }
}

/// The stores among which a set is selected.
struct SetPlace {
  /// Name of the watch, or of the folder.
  let name: String
  let directory: CanonicalDirectory
  let recursive: Bool
  /// Where backups are kept.
  var rule: BackupRule
  /// Patterns of the watch.
  private var include: [Glob]?
  private var exclude: [Glob] = []

  init(name: String, directory: CanonicalDirectory, recursive: Bool, rule: BackupRule) {
    self.name = name
    self.directory = directory
    self.recursive = recursive
    self.rule = rule
  }

  /// The stores of a watch.
  init(_ watch: Configuration.Watch) throws {
    self.init(
      name: watch.name, directory: try CanonicalDirectory(resolving: watch.directory), recursive: watch.recursive,
      rule: BackupRule(keep: .max, directory: watch.migration.backup.directory))
    include = watch.include.map { Glob($0) }
    exclude = watch.exclude.map { Glob($0) }
  }

  /// Calls `body` with the backups of each store that has any, or a pin. Reports what cannot be read to `problem`.
  func forEach(_ body: (BackupSet) throws -> Void, problem: (HopdError) -> Void) throws {
    let survey = try BackupSurvey(of: directory, recursive: recursive, rule: rule, files: LinuxFileSystem())
    try survey.forEach(
      { backups in
        if isMeant(backups.location.fileName) { try body(backups) }
        return true
      }, problem: problem)
  }

  private func isMeant(_ name: String) -> Bool {
    guard let include else { return true }
    let bytes = Array(name.utf8)
    return include.contains { $0.matches(bytes) } && !exclude.contains { $0.matches(bytes) }
  }
}

/// Which migrations a set undoes: all conditions must hold.
struct RestoreSelection {
  /// Seconds since 1970.
  let since: Int64?
  /// Name of the version before the migration.
  let from: String?
  /// Name of the version after it.
  let to: String?

  /// Whether the migration that made a backup is meant.
  func takes(_ record: BackupRecord) -> Bool {
    record.origin == .migration && since.map { record.createdAt >= $0 } ?? true
      && from.map { record.from.name == $0 } ?? true && to.map { record.to.name == $0 } ?? true
  }

  /// Whether a backup without a readable label may be meant.
  func mayTake(_ generation: BackupGeneration) -> Bool {
    guard let since, let made = BackupSet.time(of: generation.directory) else { return true }
    return made >= since
  }

  /// The conditions in words.
  var words: String {
    let parts = [
      since.map { "since \(BackupRecord.time($0))" }, from.map { "from \($0.printableLine)" },
      to.map { "to \($0.printableLine)" },
    ]
    return parts.compactMap { $0 }.joined(separator: " ")
  }
}
