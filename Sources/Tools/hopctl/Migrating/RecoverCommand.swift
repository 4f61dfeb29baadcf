// Explains the files that a crash left in a directory, store by store, and repairs them with --yes. The decisions are
// the same as at the start of hopd and of every migration; here the user can read them first.

import ArgumentParser
import Diagnostics
import DurableFiles
import MigrationPipeline
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl recover DIRECTORY`.
struct RecoverCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "recover", abstract: "Inspect and repair interrupted migrations",
    discussion: """
      Optional: hopd recovers when it starts, and every migration begins with recovery. Without --yes, only shows what \
      would be done. Lists only stores with an interrupted job.

      Exit status: 0 nothing to do; 10 repairs needed, or a migration to resume; 65 a store needs attention; 66 no \
      such path; 69 store in use.
      """)

  @Argument(help: "A directory of stores, or one store", completion: .directory)
  var directory: String

  @Option(
    name: .customLong("backup-directory"), help: "Backup directory (default: next to the stores)",
    completion: .directory)
  var backupDirectory: String?

  @Flag(help: "Repair (default: only show what would be done)")
  var yes = false

  @Flag(
    help: ArgumentHelp(
      "Also discard the checkpoints of resumable migrations",
      discussion: "Removes only staged files: the next migration starts over."))
  var discard = false

  @OptionGroup var state: StateOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let files = LinuxFileSystem()
    // This command has no rule for backups, so it keeps all.
    let rule = BackupRule(keep: .max, directory: backupDirectory.map { FilePath($0) })
    let stateDirectory = try state.directory()
    let intents = try IntentStore(stateDirectory: stateDirectory, files: files)
    let (folder, only) = try place(files)
    let survey = try RecoverySurvey(of: folder, intents: intents, rule: rule, files: files)
    let stores = survey.stores.filter { only == nil || $0.location.database == only }
    if let only, stores.isEmpty, try files.status(only) == nil {
      throw HopdError(
        .notFound, "no such file or directory, and no files of an interrupted migration", at: Place(file: only),
        hint: "check the path")
    }

    var results: [Result] = []
    for traces in stores {
      let result = treat(traces, stateDirectory, intents, rule)
      // A healthy store with backups is of no interest, unless it was named.
      if result.state == "clean", traces.isThere, only == nil { continue }
      if output.quiet, let error = result.error { ErrorReport.report(error) }
      try report(result)
      results.append(result)
    }
    let orphans = only == nil ? survey.orphans : []
    for orphan in orphans {
      try output.line("\(orphan.printable): belongs to no known store: a running migration or a temporary file")
    }
    if results.isEmpty, orphans.isEmpty {
      try output.line("\((only ?? folder.path).printable): nothing to recover")
    }
    try output.object([
      "directory": folder.path.string, "stores": results.map(\.json), "orphans": orphans.map(\.string),
    ])
    let states = Set(results.map(\.state))
    if states.contains("needs-attention") { throw Finished(status: .dataError) }
    if states.contains("busy") { throw Finished(status: .unavailable) }
    if states.contains("needs-repair") || states.contains("resumes") { throw Finished(status: .workToDo) }
  }

  private func place(_ files: LinuxFileSystem) throws -> (folder: CanonicalDirectory, only: FilePath?) {
    do {
      let folder = try CanonicalDirectory(resolving: FilePath(directory))
      if try files.status(folder.path)?.kind == .directory { return (folder, nil) }
    } catch let error as HopdError where error.code == .notFound {
      // A missing store may still have traces.
    }
    let store = try StoreArgument.location(of: directory)
    return (try CanonicalDirectory(resolving: store.directory), store.database)
  }

  /// The findings about a store, and the actions to take or taken.
  private struct Result {
    let traces: RecoveryTraces
    /// clean, needs-repair, repaired, resumes, needs-attention, busy.
    let state: String
    let outcome: RecoveryOutcome?
    let why: String
    let actions: [RecoveryAction]
    let error: HopdError?

    var json: JSONObject {
      [
        "store": traces.location.database.string, "state": state,
        // missing, damaged, old, new or other; null if the store was not inspected.
        "content": outcome?.findings?.store.rawValue,
        // none, readable, unreadable or newer.
        "record": outcome?.findings?.intent.rawValue, "staged": traces.staged.map(\.string),
        "unfinishedBackups": traces.unfinishedBackups.map(\.string), "backups": traces.backups.map(\.string),
        "actions": actions.map(\.rawValue), "why": why, "error": error?.json,
      ]
    }
  }

  /// Inspects a store and, with --yes, repairs it.
  private func treat(
    _ traces: RecoveryTraces, _ stateDirectory: FilePath, _ intents: IntentStore, _ rule: BackupRule
  ) -> Result {
    let pipeline = MigrationPipeline()
    func result(
      _ state: String, _ outcome: RecoveryOutcome?, why: String, actions: [RecoveryAction] = [], error: HopdError? = nil
    ) -> Result {
      Result(traces: traces, state: state, outcome: outcome, why: why, actions: actions, error: error)
    }
    do {
      let outcome =
        yes
        ? try pipeline.recover(
          traces.location, stateDirectory: stateDirectory, backup: rule, dropsStagedOfRenamed: true,
          discardsCheckpoints: discard)
          ?? pipeline.examine(traces.location, stateDirectory: stateDirectory, backup: rule)
        : try pipeline.examine(
          traces.location, stateDirectory: stateDirectory, backup: rule, discardsCheckpoints: discard)
      switch outcome.decision {
      case .nothingToDo:
        let why =
          traces.isThere
          ? "nothing to recover" : "no store; restore a backup with `hopctl restore`"
        return result("clean", outcome, why: why)
      case .startAgain(let actions):
        let why =
          outcome.renamed.map {
            "the store was renamed to \($0.printable): files staged under its old name are unusable"
          }
          ?? (outcome.findings?.intent == .readable
            ? "interrupted before the swap: the old store is in place and intact"
            : "the store is intact; the files next to it are from a job that will not be resumed")
        return result(yes ? "repaired" : "needs-repair", outcome, why: why, actions: actions)
      case .resume(let actions):
        let why =
          "interrupted during the migration: the next one resumes at the last checkpoint"
        return result(actions.isEmpty || yes ? "resumes" : "needs-repair", outcome, why: why, actions: actions)
      case .completed(let actions):
        if yes { try intents.remove(outcome.location) }
        let why = "interrupted after the swap: the new store is in place and intact"
        return result(yes ? "repaired" : "needs-repair", outcome, why: why, actions: actions + [.removeIntent])
      case .quarantine:
        let error = outcome.error ?? HopdError(.internalError, "the store is in quarantine, without a reason")
        return result("needs-attention", outcome, why: error.message, error: error)
      }
    } catch {
      let error = ErrorReport.hopdError(error).located(Place(store: traces.location.database))
      let isBusy = error.code.exit == .unavailable
      return result(isBusy ? "busy" : "needs-attention", nil, why: error.message, error: error)
    }
  }

  // MARK: Messages

  private func report(_ store: Result) throws {
    try output.line("\(store.traces.location.database.printable): \(store.why)")
    if let hint = store.error?.hint { try output.line("  \(hint)") }
    try output.lines(store.traces.staged.map { "  staged: \($0.printable)" })
    try output.lines(store.traces.unfinishedBackups.map { "  unfinished backup: \($0.printable)" })
    // Those of a store that is in order are of no interest here.
    if store.state == "clean" || store.state == "needs-attention" {
      try output.lines(store.traces.backups.map { "  backup: \($0.printable)" })
    }
    try output.lines(
      store.actions.map { "  \(store.state == "needs-repair" ? "to do" : "done"): \(RecoverCommand.sentence($0))" })
    switch store.state {
    case "needs-repair" where discard: try output.line("  run with --discard --yes to repair this now")
    case "needs-repair": try output.line("  run with --yes to repair this now, or let the next migration do it")
    case "resumes": try output.line("  to start over instead, run with --discard --yes")
    default: break
    }
  }

  private static func sentence(_ action: RecoveryAction) -> String {
    switch action {
    case .syncDirectory: "sync the directory of the new store"
    case .dropStaged: "remove staged files"
    case .dropUnfinishedBackup: "remove the unfinished backup"
    case .dropJobBackup: "remove the unneeded backup of the job"
    case .moveBackup: "move the backup of the job to the backup directory"
    case .makeContentDurable: "sync the new store"
    case .setJournalMode: "set the requested journal mode"
    case .restoreWriteAheadLogMode: "set the store back to WAL mode"
    case .removeIntent: "remove the record of the job"
    }
  }
}
