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

/// `hopctl restore STORE`, and `hopctl restore --watch NAME` for a set.
struct RestoreCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Restore a store from a backup",
    discussion: """
      Restores the newest backup of a migration or import. A pinned store that has this backup already is unchanged, \
      so the command can be repeated. The current store becomes a backup, which is restored only with --backup and \
      deleted only by `keep_for` or `hopctl prune`. The restored store is pinned: hopd does not migrate it until you \
      run `hopctl migrate` or `hopctl resume`, or, with release_pins = "new-version", the target of the watch changes.

      With --watch, restores many stores: each from its newest backup selected by --since, --from-version and \
      --to-version, pinned as one group. Stores that are already restored are skipped, so the command can be repeated. \
      Exit status: 0 all are restored; 65 some failed; 66 none was selected; 75 incomplete, run again (stopped, or \
      stores in use).
      """)

  @Argument(help: ArgumentHelp("SQLite file of the store", valueName: "store"), completion: .file())
  var paths: [String] = []

  private var path: String? { paths.first }

  @OptionGroup(title: "Options for a set") var set: RestoreSetOptions

  @Option(
    help: "The backup: its database file or its directory (default: the newest one that no restore made)",
    completion: .file())
  var backup: String?

  @Option(
    name: .customLong("backup-directory"), help: "Backup directory (default: next to the store)",
    completion: .directory)
  var backupDirectory: String?

  @Flag(help: "Do not ask for confirmation")
  var yes = false

  @Flag(name: .customLong("dry-run"), help: "Show which backup would replace the store")
  var dryRun = false

  @Flag(name: .customLong("no-pin"), help: "Do not pin the restored store: hopd migrates it again")
  var noPin = false

  @Flag(
    help: """
      Restore also a backup of another store or of another version than its label says, and also if external files \
      differ from the backup's.
      """)
  var anyway = false

  @OptionGroup(title: "Migration options") var replacement: ReplaceOptions

  @OptionGroup var state: StateOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  private var store: StoreArgument {
    var argument = StoreArgument()
    argument.store = path ?? ""
    return argument
  }

  /// Throws if options contradict each other (see `RestoreSetOptions.requireConsistent`).
  private func requireConsistent() throws(HopdError) {
    if dryRun, yes { throw HopdError(.usage, "pass either --dry-run or --yes, not both") }
    if (path == nil) == (set.watch == nil) {
      throw HopdError(
        .usage, "pass either a store, or --watch for a set of stores", hint: "run `hopctl restore --help`")
    }
    guard paths.count < 2 else {
      throw HopdError(
        .usage, "\(paths.count) stores specified, expected one",
        hint:
          "run `hopctl restore --watch DIR --since -1h` to restore all stores of a directory that were migrated since")
    }
    try set.requireConsistent()
    if path == nil, backup != nil || anyway { throw HopdError(.usage, "--backup and --anyway require one store") }
  }

  func execute() throws {
    try requireConsistent()
    if let watch = set.watch { return try restoreSet(watch) }
    let location = try store.location()
    let files = LinuxFileSystem()
    if try files.status(location.database)?.kind == .directory {
      throw HopdError(
        .notAStore, "is a directory; restore requires a store", at: Place(store: location.database),
        hint:
          "pass --watch for a set: `hopctl restore --watch \(location.database.quotedForShell) --since -1h --dry-run`; "
          + "list the backups of its stores: `hopctl backups \(location.database.quotedForShell)`")
    }
    let rule = BackupRule(keep: .max, directory: backupDirectory.map { FilePath($0) })
    func choose() throws -> Choice {
      try self.chosen(location, BackupSet(location: location, rule: rule, files: files), files)
    }
    if dryRun || !yes {
      let choice = try choose()
      if let pin = choice.pin { return try reportRestored(choice, pin, location) }
      if dryRun { return try report(choice, location) }
      try requireTerminal(location, choice)
    }

    let restorer = StoreRestorer(
      stateDirectory: try state.directory(), rule: rule, mode: replacement.replace,
      options: RestoreOptions(pins: !noPin, force: anyway))
    // The newest backup is the store that an interrupted restore replaced: restoring it would undo that restore.
    if let outcome = try restorer.recover(location), backup == nil { return try reportFinished(location, outcome) }
    let chosen = try choose()
    if let pin = chosen.pin { return try reportRestored(chosen, pin, location) }
    try ask(chosen)
    let restored = try restorer.restore(chosen.database, to: location)
    let result = restored.replaced
    let warnings = result.warnings + differences(restored.differingFiles, location)
    output.warn(warnings)
    try output.line("restored \(store.text): \(result.version.name), from \(chosen.database.printable)")
    if let kept = result.backup {
      try output.line("  backup: \(kept.printable)")
      try output.line("  to undo: `hopctl restore \(store.text.quotedForShell) --backup \(kept.quotedForShell)`")
    }
    try report(restored.pin)
    try output.object([
      "store": location.database.string, "restored": chosen.database.string, "version": result.version.name,
      "backup": result.backup?.string, "pin": restored.pin.map { PinShape($0) },
      "differingExternalFiles": restored.differingFiles, "warnings": warnings.map(\.json),
    ])
  }

  /// Prints what a restore would do.
  private func report(_ choice: Choice, _ location: CanonicalStoreLocation) throws {
    let version = choice.version.map { ": \($0)" } ?? ""
    try output.line("would restore \(store.text)\(version), from \(choice.database.printable)")
    try output.line(
      "  the current store would become a backup"
        + (noPin ? "" : ", and the restored one would be pinned until `hopctl migrate` or `hopctl resume`"))
    try output.object([
      "store": location.database.string, "restored": choice.database.string, "version": choice.version,
      "dryRun": true,
    ])
  }

  /// Reports that the store has its newest backup already, and is pinned to it: restoring it again would lose what was
  /// written since, and the backup that the restore made is the version that was undone.
  private func reportRestored(_ choice: Choice, _ pin: RestorePin, _ location: CanonicalStoreLocation) throws {
    try output.line("\(store.text) was already \(pin.account); nothing was changed")
    let command = "hopctl restore \(store.text.quotedForShell) --backup"
    try output.line("  to restore it again: `\(command) \(choice.database.quotedForShell)`")
    if let undone = choice.undone {
      try output.line("  to undo the restore: `\(command) \(undone.database.quotedForShell)`")
    }
    try output.line("  \(pin.release(FilePath(store.store)))")
    let object: JSONObject = [
      "store": location.database.string, "restored": String?.none, "version": pin.restored.name,
      "backup": String?.none, "pin": PinShape(pin), "differingExternalFiles": [String](), "warnings": [JSONObject](),
    ]
    try output.object(dryRun ? object + ["dryRun": true] : object)
  }

  private func restoreSet(_ name: String) throws {
    var place = try set.place(name)
    if let backupDirectory { place.rule.directory = FilePath(backupDirectory) }
    let restore = SetRestore(
      place: place, selection: try set.selection(), mode: replacement.replace, pins: !noPin, state: state,
      output: output)
    try restore.run(yes: yes, dryRun: dryRun)
  }

  private func report(_ pin: RestorePin?) throws {
    guard let pin else { return try output.line("  not pinned: hopd migrates it again if its directory is watched") }
    try output.line("  pinned: \(pin.sentence)")
    try output.line("  \(pin.release(FilePath(store.store)))")
  }

  /// A warning for external files that were kept although the backup has different files with the same names.
  private func differences(_ names: [String], _ location: CanonicalStoreLocation) -> [HopdError] {
    if names.isEmpty { return [] }
    let list = names.prefix(20).joined(separator: ", ") + (names.count > 20 ? ", and \(names.count - 20) more" : "")
    let count = MessageFormatter.count(names.count, "external file differs", "external files differ")
    return [
      HopdError(
        .externalDataDiffers,
        "\(count) from the backup's and "
          + "\(names.count == 1 ? "was" : "were") left as \(names.count == 1 ? "it is" : "they are"): \(list)",
        at: Place(store: location.database))
    ]
  }

  /// Reports that an interrupted restore was already complete.
  private func reportFinished(_ location: CanonicalStoreLocation, _ outcome: RecoveryOutcome) throws {
    let version = outcome.intent?.to.name ?? "the backup"
    try output.line("restored \(store.text): \(version); completed by the interrupted run")
    if let kept = outcome.backups.first { try output.line("  backup: \(kept.printable)") }
    let pin = try PinStore(location: location, files: LinuxFileSystem()).read()
    try report(pin)
    try output.object([
      "store": location.database.string, "restored": outcome.backups.dropFirst().first?.string, "version": version,
      "backup": outcome.backups.first?.string, "pin": pin.map { PinShape($0) },
      "differingExternalFiles": [String](), "warnings": [JSONObject](),
    ])
  }

  // MARK: Choosing

  private struct Choice {
    let database: FilePath
    /// Its version, if its label names one.
    let version: String?
    /// The pin of the store if it has this backup already.
    var pin: RestorePin?
    /// The backup that the restore made, then.
    var undone: BackupGeneration?
  }

  private func chosen(
    _ location: CanonicalStoreLocation, _ backups: BackupSet, _ files: LinuxFileSystem
  ) throws -> Choice {
    let generations = try backups.generations()
    guard let backup else { return try newest(of: generations, backups, location) }
    let path = try given(backup)
    let database =
      try files.status(path)?.kind == .directory ? path.appending(location.fileName) : path
    let kind = try files.status(database)?.kind
    guard kind == .regular else {
      throw HopdError(
        .notFound,
        kind == .symbolicLink ? "is a symbolic link, which is not followed" : "no store in the backup",
        at: Place(file: database), hint: "pass the database file of the backup")
    }
    let known = generations.first { $0.database == database }
    return Choice(database: database, version: known?.record?.from.name)
  }

  /// The newest backup that no restore made: what a restore replaced is restored only by name.
  private func newest(
    of generations: [BackupGeneration], _ backups: BackupSet, _ location: CanonicalStoreLocation
  ) throws -> Choice {
    guard let newest = generations.first(where: { $0.record?.origin != .restore }) else {
      let listing =
        "list all backups, including those of renamed stores, with hopctl backups \(location.directory.quotedForShell)"
      guard let undone = generations.first else {
        throw HopdError(
          .notFound, "no backup of this store", at: Place(store: location.database),
          hint: "pass --backup FILE or --backup-directory; \(listing)")
      }
      throw HopdError(
        .notFound, "only backups by restores exist, which are restored only with --backup",
        at: Place(store: location.database),
        hint: "run `hopctl restore \(location.database.quotedForShell) --backup \(undone.database.quotedForShell)` "
          + "to restore \(undone.record?.from.name ?? "the newest")")
    }
    if let error = try backups.unreadableLabels().first(where: { $0.place.file == newest.label }) {
      throw HopdError(
        .recordUnreadable, "cannot determine the newest backup: the label of one is unreadable",
        at: error.place, cause: error.cause,
        hint: "pass --backup with one from: hopctl backups \(location.database.quotedForShell)")
    }
    var choice = Choice(database: newest.database, version: newest.record?.from.name)
    guard let record = newest.record, let pin = try pin(of: location, restoredFrom: record) else { return choice }
    let newer = generations.prefix { $0 != newest }
    // Made by a later import or migration: then the pin is of an earlier backup.
    guard record.createdAt < pin.restoredAt || !newer.isEmpty else { return choice }
    (choice.pin, choice.undone) = (pin, newer.first)
    return choice
  }

  /// The pin of a store that has the version of a backup; nil if it has another one, or is not pinned.
  private func pin(of location: CanonicalStoreLocation, restoredFrom record: BackupRecord) throws -> RestorePin? {
    // A store that cannot be read, or is not there, is restored.
    let metadata = try? StoreReader.withUnchangedStore(at: location.store) { try $0.metadata() }
    guard let metadata else { return nil }
    let digest = VersionHash.digest(of: metadata.versionHashes)
    guard digest == record.from.digest else { return nil }
    return try PinStore(location: location, files: LinuxFileSystem()).read()?.matching(
      storeUUID: metadata.uuid, digest: digest)
  }

  /// The path of `--backup`. Other users may make links in the folder of a store's backups, so none in it is followed,
  /// and a link to a file nowhere.
  private func given(_ backup: String) throws -> FilePath {
    let typed = FilePath(backup)
    let path = (typed.isAbsolute ? typed : try FilePath(".").resolved().pushing(typed)).lexicallyNormalized()
    let names = Array(path.components)
    guard let folder = names.lastIndex(where: { $0.string.hasSuffix(BackupSet.folderSuffix) }) else {
      return try path.resolvedInFolder()
    }
    var result = try FilePath(root: path.root, names[...folder]).resolvedInFolder()
    result.append(names[(folder + 1)...])
    return result
  }

  /// Throws if there is no terminal for the question.
  private func requireTerminal(_ location: CanonicalStoreLocation, _ choice: Choice) throws(HopdError) {
    let version = choice.version.map { " (\($0))" } ?? ""
    guard Confirmation.isPossible else {
      throw HopdError(
        .usage, "refusing to restore\(version) without confirmation: standard input is not a terminal",
        at: Place(store: location.database), hint: "pass --yes; the current store becomes a backup")
    }
  }

  /// Restoring loses all later changes, so a person must confirm it, or a script must give --yes.
  private func ask(_ choice: Choice) throws {
    if yes { return }
    // With --anyway the file may be another version than its label says.
    let version = choice.version.map { anyway ? " (\($0) by its label)" : " (\($0))" } ?? ""
    try Confirmation.require(
      "Restore \(store.text) from \(choice.database.printable)\(version)? Later changes are lost; the "
        + "current store becomes a backup.",
      refusal: "restore cancelled; nothing was changed")
  }
}
