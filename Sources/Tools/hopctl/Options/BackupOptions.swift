// Shared by the commands about backups: the options for the backup rule, the target of the command, and orphaned
// backups.

import ArgumentParser
import Diagnostics
import DurableFiles
import HopdConfiguration
import MigrationPipeline
import PersistentStore
import StoreReplacement
import SystemPackage

/// The options for the backup rule.
struct BackupOptions: ParsableArguments {
  @Option(
    name: .customLong("backup-directory"), help: "Backup directory (default: next to the stores)",
    completion: .directory)
  var backupDirectory: String?

  @Option(help: "Number of migration backups to keep; backups by a restore do not count")
  var keep: Int?

  @Option(name: .customLong("keep-for"), help: "Maximum age of backups, e.g. 30d or 12h; 0s = no limit")
  var keepFor: String?

  @Option(
    help: "Use the directory and rules of a watch in this file", completion: .file(extensions: ["toml"]))
  var config: String?

  @Option(help: "Watch of --config, if it has several")
  var watch: String?

  @Flag(help: "Also search subdirectories")
  var recursive = false

  func validate() throws {
    if let keep, keep < 0 { throw ValidationError("--keep expects a number from 0.") }
    if let keepFor, Quantity.duration(keepFor) == nil {
      throw ValidationError("--keep-for expects a time, e.g. 30d, 12h or 5min, not \"\(keepFor)\".")
    }
    if watch != nil, config == nil { throw ValidationError("--watch requires --config.") }
  }

  /// Whether the command line gives a rule for removing backups.
  var hasRule: Bool { keep != nil || keepFor != nil || config != nil }

  /// The rule for the stores of a directory. The command line overrides the watch; without either, all backups are
  /// kept, or one if `keepsOne`.
  func rule(for directory: FilePath, keepsOne: Bool = false) throws -> (rule: BackupRule, recursive: Bool) {
    let watch = try watch(for: directory)
    var rule = watch?.migration.backup ?? BackupRule(keep: keepsOne ? 1 : .max)
    if let keep { rule.keep = keep }
    if let keepFor { rule.keepFor = Quantity.duration(keepFor) }
    if let backupDirectory { rule.directory = try FilePath(backupDirectory).resolved() }
    return (rule, recursive || watch?.recursive == true)
  }

  private func watch(for directory: FilePath) throws -> Configuration.Watch? {
    guard let config else { return nil }
    let configuration = try ConfigurationLoader.load(file: FilePath(config).resolved()).configuration
    if let found = try configuration.watch(watch, around: directory, file: config) { return found }
    let names = configuration.watches.map(\.name).joined(separator: ", ")
    throw HopdError(
      .usage, "the configuration has several watches", at: Place(file: FilePath(config)),
      hint: "choose one with --watch: \(names)")
  }
}

/// The kind of a path on the command line.
enum BackupTarget {
  /// A folder of stores.
  case directory(CanonicalDirectory)
  /// A store, which may be missing.
  case store(CanonicalStoreLocation)
  /// A backup of a store.
  case generation(FilePath, of: CanonicalStoreLocation)

  /// Finds out what is at a path.
  init(_ text: String) throws {
    let files = LinuxFileSystem()
    guard let given = try? CanonicalDirectory(resolving: FilePath(text)) else {
      self = .store(try StoreArgument.location(of: text))
      return
    }
    let path = given.path
    // A backup is …/.NAME.hopd-backups/TIME-JOB/NAME, or the same in a backup directory; its label names its store.
    for folder in [path, path.removingLastComponent()] {
      guard folder.removingLastComponent().lastComponent?.string.hasSuffix(".hopd-backups") == true else { continue }
      guard let store = BackupSet.store(ofGeneration: folder, files: files) else {
        throw HopdError(
          .notFound, "not a backup, or its label is unreadable", at: Place(file: folder),
          hint: "list backups with `hopctl backups`")
      }
      self = .generation(folder, of: store)
      return
    }
    if try files.status(path)?.kind == .directory {
      // The folder of a store's backups means the store.
      if let store = BackupSet.store(ofBackups: path, files: files) {
        self = .store(store)
        return
      }
      self = .directory(given)
    } else {
      self = .store(try StoreArgument.location(of: text))
    }
  }

  /// The directory whose rule applies.
  var directory: FilePath {
    switch self {
    case .directory(let directory): directory.path
    case .store(let location), .generation(_, let location): location.directory
    }
  }
}

/// Returns the Z_UUID of the store at a path; nil if no readable store is there.
func livingUUID(_ location: CanonicalStoreLocation) -> String? {
  try? StoreReader.withUnchangedStore(at: location.store) { try $0.metadata().uuid }
}

extension BackupGeneration {
  /// Whether its store is missing, or another store has its name.
  func isOrphaned(storeIsThere: Bool, uuid: String?) -> Bool {
    guard storeIsThere else { return true }
    guard let uuid, let own = record?.storeUUID else { return false }
    return uuid != own
  }
}
