import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl prune [STORE|DIRECTORY|BACKUP…]`.
struct PruneCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "prune", abstract: "Delete backups",
    discussion: """
      Pass a backup by its directory, or stores and directories of stores with --keep, --keep-for or --orphans. --keep \
      counts only migration and import backups of existing stores; backups by a restore are deleted by --keep-for or \
      by name. Without --dry-run and --yes, lists the backups and asks for confirmation.
      """)

  @Argument(help: "Backups, stores (even deleted ones), or directories of stores", completion: .file())
  var paths: [String] = []

  @Flag(name: .customLong("dry-run"), help: "Show what would be deleted")
  var dryRun = false

  @Flag(help: "Do not ask for confirmation")
  var yes = false

  @Flag(help: "Also delete all backups of deleted or replaced stores")
  var orphans = false

  @OptionGroup var options: BackupOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if dryRun, yes { throw ValidationError("Pass either --dry-run or --yes, not both.") }
  }

  func execute() throws {
    guard !paths.isEmpty else {
      throw HopdError(
        .usage, "no backup, store or directory specified",
        hint: "run `hopctl prune .\(dryRun ? " --dry-run" : "")\(selecting ? "" : " --keep 1")`")
    }
    if dryRun || yes { return try finish(try run(removes: yes), removes: yes) }
    guard Confirmation.isPossible else {
      throw HopdError(
        .usage, "refusing to delete backups without confirmation: standard input is not a terminal",
        hint: "pass --dry-run to list them, or --yes to delete them")
    }
    let asked = try run(removes: false)
    guard !asked.removed.isEmpty else { return try finish(asked, removes: false) }
    try tell(asked.removed, removes: false)
    try Confirmation.require(
      "Delete them? This cannot be undone.", refusal: "cancelled; no backup was deleted")
    try finish(try run(removes: true), removes: true)
  }

  /// Whether options select backups.
  private var selecting: Bool { options.hasRule || orphans }

  private typealias Found = (
    removed: [(store: CanonicalStoreLocation, removal: BackupRemoval)], problems: [HopdError]
  )

  /// Finds the backups that the command line selects, and with `removes` removes them.
  private func run(removes: Bool) throws -> Found {
    let files = LinuxFileSystem()
    var removed: [(store: CanonicalStoreLocation, removal: BackupRemoval)] = []
    var problems: [HopdError] = []
    for path in paths {
      let target = try BackupTarget(path)
      let (rule, isRecursive) = try options.rule(for: target.directory)
      var named: FilePath?
      if case .generation(let folder, _) = target { named = folder }
      guard named != nil || selecting else {
        throw HopdError(
          .usage, "no backups selected", at: Place(file: FilePath(path)),
          hint: "pass --keep, --keep-for or --orphans, or a backup: "
            + "`hopctl prune \(path.quotedForShell) --dry-run --keep 1` lists all but the newest")
      }
      let treat: (BackupSet) throws -> Bool = { backups in
        removed += try prune(backups, rule, named, removes: removes).map { (backups.location, $0) }
        return true
      }
      switch target {
      case .directory(let directory):
        try BackupSurvey(of: directory, recursive: isRecursive, rule: rule, files: files).forEach(
          treat, problem: { problems.append($0) })
      case .store(let location): _ = try treat(BackupSet(location: location, rule: rule, files: files))
      case .generation(let folder, let location):
        _ = try treat(BackupSet(location: location, generation: folder, files: files))
      }
    }
    return (removed, problems)
  }

  private func finish(_ found: Found, removes: Bool) throws {
    try tell(found.removed, removes: removes)
    for problem in found.problems { ErrorReport.report(problem) }
    let objects = found.removed.map { store, removal -> JSONObject in
      let (generation, record) = (removal.generation, removal.generation.record)
      return [
        "store": store.database.string, "backup": generation.directory.string, "from": record?.from.name,
        "createdBy": record?.origin.rawValue, "bytes": generation.bytes, "reason": removal.reason.rawValue,
      ]
    }
    try output.object([
      "dryRun": !removes, "removed": objects, "bytes": Self.bytes(found.removed),
      "problems": found.problems.map(\.json),
    ])
    if let first = found.problems.first { throw Finished(status: first.code.exit) }
  }

  /// Returns the backups of a store that the command line selects; with `removes` they are removed.
  private func prune(
    _ backups: BackupSet, _ rule: BackupRule, _ named: FilePath?, removes: Bool
  ) throws -> [BackupRemoval] {
    let isThere = try backups.isStoreThere()
    let uuid = isThere && orphans ? livingUUID(backups.location) : nil
    let plan: ([BackupGeneration]) throws -> [BackupRemoval] = { generations in
      if let named {
        guard let found = generations.first(where: { $0.directory == named }) else {
          throw HopdError(
            .notFound, "no complete backup of this name", at: Place(file: named),
            hint: "list backups with `hopctl backups`, repair unfinished ones with `hopctl recover`")
        }
        return [BackupRemoval(generation: found, reason: .named)]
      }
      let lost =
        orphans
        ? generations.filter { $0.isOrphaned(storeIsThere: isThere, uuid: uuid) }.map {
          BackupRemoval(generation: $0, reason: .orphaned)
        } : []
      return lost
        + BackupSet.removals(generations, rule, now: Int64(time(nil)), counts: isThere).filter { removal in
          !lost.contains { $0.generation == removal.generation }
        }
    }
    return removes ? try backups.remove(plan) : try plan(try backups.settledGenerations())
  }

  private static func bytes(_ removed: [(store: CanonicalStoreLocation, removal: BackupRemoval)]) -> Int64 {
    removed.reduce(0) { $0 &+ $1.removal.generation.bytes }
  }

  /// Prints a line for each backup, and their sum.
  private func tell(_ removed: [(store: CanonicalStoreLocation, removal: BackupRemoval)], removes: Bool) throws {
    for (store, removal) in removed {
      let version = removal.generation.record.map { ", \($0.from.name)" } ?? ""
      let size = MessageFormatter.bytes(removal.generation.bytes)
      try output.line(
        "\(removes ? "removed" : "would remove") \(removal.generation.directory.printable) "
          + "(\(PruneCommand.reason(removal.reason))\(version), \(size), of \(store.database.printable))")
    }
    let count = MessageFormatter.count(removed.count, "backup", "backups")
    let bytes = MessageFormatter.bytes(Self.bytes(removed))
    guard !removed.isEmpty else { return try output.line("no backups \(removes ? "removed" : "would be removed")") }
    try output.line(
      removes ? "\(count) removed, \(bytes)" : "\(count) would be deleted, \(bytes)" + (dryRun ? "; --yes deletes" : "")
    )
  }

  private static func reason(_ reason: BackupRemovalReason) -> String {
    switch reason {
    case .keep: "--keep"
    case .keepFor: "--keep-for"
    case .orphaned: "its store no longer exists"
    case .named: "named"
    }
  }
}
