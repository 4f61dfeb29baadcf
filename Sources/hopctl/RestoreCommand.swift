import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import ManagedObjectModel
import MigrationPipeline
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl restore STORE`.
struct RestoreCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Puts a kept old store back in its place.",
    discussion: "The store that is there now becomes a backup itself, so that a restore can be taken back too.")

  @OptionGroup var store: StoreArgument

  @Option(help: "The backup: its database file or its folder; else the newest one.", completion: .file())
  var backup: String?

  @Option(
    name: .customLong("backup-directory"), help: "Where backups are kept, if not beside the store.",
    completion: .directory)
  var backupDirectory: String?

  @Flag(help: "Do not ask. Needed where there is no terminal.")
  var yes = false

  @OptionGroup var replacement: ReplaceOptions

  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let location = try store.location()
    let files = LinuxFileSystem()
    // One more than usual is kept, so that the store that is replaced does not push its own backup out.
    var rule = BackupRule(directory: backupDirectory.map { FilePath($0) })
    let generations = try BackupSet(location: location, rule: rule, files: files).generations()
    rule.keep = generations.count + 1
    let chosen = try chosen(location, generations, files)
    try ask(location, chosen)

    let stateDirectory = try state.directory()
    // A run that crashed is put in order first: its record speaks of the store that is about to go.
    let outcome = try MigrationPipeline().recover(location, stateDirectory: stateDirectory, backup: rule)
    if let outcome, case .completed = outcome.decision, outcome.intent?.planFingerprint == Restore.planFingerprint {
      try IntentStore(stateDirectory: stateDirectory, files: files).remove(location)
      // The newest backup is what that restore has replaced: putting it back would undo what was asked for.
      if backup == nil { return try tellFinished(location, outcome) }
    }
    let lockDirectory = stateDirectory.appending("locks")
    try files.ensureDirectory(lockDirectory)
    var swap = StoreSwap(
      files: files, intents: try IntentStore(stateDirectory: stateDirectory, files: files),
      identify: { connection in
        VersionHash.digest(of: try StoreReader(connection: connection).metadata().versionHashes)
      }, mode: replacement.mode())
    swap.mayFallBack = !replacement.isChosen()
    let result = try Restore(swap: swap, lockDirectory: lockDirectory).restore(
      chosen.database, to: location, job: RequestOptions.jobName(), backup: rule, now: Int64(time(nil)))

    output.warn(result.warnings)
    try output.line("restored \(store.text): \(result.version.name), from \(chosen.database.printable)")
    if let kept = result.backup { try output.line("  the store that was there is kept: \(kept.printable)") }
    try output.object(
      RestoreShape(
        store: location.database.string, restored: OrNull(wrappedValue: chosen.database.string),
        version: result.version.name,
        backup: OrNull(wrappedValue: result.backup?.string), warnings: result.warnings.map(ErrorShape.init)))
  }

  /// An interrupted restore had come to its end.
  private func tellFinished(_ location: StoreLocation, _ outcome: RecoveryOutcome) throws {
    let version = outcome.intent?.to.name ?? "the backup"
    try output.line("restored \(store.text): \(version); an interrupted restore was complete")
    if let kept = outcome.backups.first { try output.line("  the store that was there is kept: \(kept.printable)") }
    try output.object(
      RestoreShape(
        store: location.database.string, restored: OrNull(wrappedValue: outcome.backups.dropFirst().first?.string),
        version: version, backup: OrNull(wrappedValue: outcome.backups.first?.string), warnings: []))
  }

  // MARK: Choosing

  private struct Choice {
    let database: FilePath
    /// Its version, where its label says so.
    let version: String?
  }

  private func chosen(
    _ location: StoreLocation, _ generations: [BackupGeneration], _ files: LinuxFileSystem
  ) throws -> Choice {
    guard let backup else {
      guard let newest = generations.first else {
        throw HopdError(
          .notFound, "no backup of this store is kept", at: Place(store: location.database),
          hint: "name one with --backup FILE, or the folder of backups with --backup-directory")
      }
      return Choice(database: newest.database, version: newest.record?.from.name)
    }
    let path = try files.canonical(FilePath(backup))
    let database =
      try files.status(path)?.kind == .directory ? path.appending(location.fileName) : path
    guard try files.status(database)?.kind == .regular else {
      throw HopdError(
        .notFound, "there is no store in the backup", at: Place(file: database),
        hint: "name the backup's database file")
    }
    let known = generations.first { $0.database == database }
    return Choice(database: database, version: known?.record?.from.name)
  }

  /// Restoring takes what was changed since away, so a person says yes, or a script says --yes.
  private func ask(_ location: StoreLocation, _ choice: Choice) throws(HopdError) {
    if yes { return }
    let version = choice.version.map { " (\($0))" } ?? ""
    guard isatty(0) == 1, StandardStreams.Stream.error.isTerminal else {
      throw HopdError(
        .usage, "restoring replaces the store by its backup\(version), and nobody can be asked",
        at: Place(store: location.database), hint: "give --yes; the store that is there now is kept as a backup")
    }
    try StandardStreams.write(
      "Replace \(store.text) by \(choice.database.printable)\(version)? What was changed since is lost to the app; the "
        + "store that is there now is kept as a backup. [y/N] ", to: .error)
    let answer = readLine(strippingNewline: true)?.lowercased()
    guard answer == "y" || answer == "yes" else {
      throw HopdError(.usage, "not restored", at: Place(store: location.database))
    }
  }
}
