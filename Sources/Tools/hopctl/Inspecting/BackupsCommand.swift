import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl backups [STORE|DIRECTORY]`.
struct BackupsCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "backups", abstract: "List backups",
    discussion: """
      Includes backups of deleted stores. The last column shows what will delete a backup: a retention rule (from \
      --config, --keep or --keep-for; default keep = 1), or only `hopctl prune`. Other columns: store, backup. \
      Read-only.
      """)

  @Argument(
    help: "A store, even a deleted one, or a directory of stores (default: this directory)", completion: .file())
  var path = "."

  @OptionGroup var options: BackupOptions
  @OptionGroup(title: "Output options") var columns: ColumnsOption
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let table = try Table(Self.columns, shown: ["created", "created-by", "versions", "size", "removed-by"], columns)
    let files = LinuxFileSystem()
    let target = try BackupTarget(path)
    let (rule, isRecursive) = try options.rule(for: target.directory, keepsOne: true)
    var stores: [StoreBackups] = []
    var problems: [HopdError] = []
    let add: (BackupSet) throws -> Bool = { backups in
      if let store = try describe(backups, rule, problem: { problems.append($0) }) { stores.append(store) }
      problems += try backups.unreadableLabels()
      return true
    }
    switch target {
    case .directory(let directory):
      try BackupSurvey(of: directory, recursive: isRecursive, rule: rule, files: files).forEach(
        add, problem: { problems.append($0) })
    case .store(let location), .generation(_, let location):
      let backups = try BackupSet(location: location, rule: rule, files: files)
      _ = try add(backups)
      guard try !stores.isEmpty || !problems.isEmpty || backups.isStoreThere() else {
        throw HopdError(
          .notFound, "no such store, directory or backup", at: Place(file: FilePath(path)),
          hint: "check the path, or list all backups of a directory: hopctl backups DIR")
      }
    }
    stores.sort { $0.store < $1.store }
    try report(stores, table)
    let all = stores.flatMap(\.backups)
    let bytes = all.reduce(0) { $0 &+ $1.bytes }
    let sum =
      "\(MessageFormatter.count(all.count, "backup", "backups")) of "
      + "\(MessageFormatter.count(stores.count, "store", "stores")), \(MessageFormatter.bytes(bytes))"
    if !table.isChosen { try output.line(sum) }
    for problem in problems { ErrorReport.report(problem) }
    try output.object([
      "path": target.directory.string, "stores": stores, "bytes": bytes, "problems": problems.map(\.json),
    ])
    if let first = problems.first { throw Finished(status: first.code.exit) }
  }

  private func describe(
    _ backups: BackupSet, _ rule: BackupRule, problem: (HopdError) -> Void
  ) throws -> StoreBackups? {
    let generations = try backups.generations()
    let unfinished = try backups.unfinished()
    let pin: RestorePin?
    do {
      pin = try PinStore(location: backups.location, files: LinuxFileSystem()).read()
    } catch let error as HopdError {
      problem(error)
      pin = nil
    }
    if generations.isEmpty, unfinished.isEmpty, pin == nil { return nil }
    let isThere = try backups.isStoreThere()
    let uuid = isThere ? livingUUID(backups.location) : nil
    let now = Int64(time(nil))
    let due = Dictionary(
      BackupSet.removals(generations, rule, now: now, counts: isThere).map { ($0.generation, $0.reason) }
    ) { first, _ in first }
    return StoreBackups(
      store: backups.location.database.string, present: isThere,
      pin: pin.map { PinShape($0) },
      backups: generations.map { generation in
        let record = generation.record
        let isOrphaned = generation.isOrphaned(storeIsThere: isThere, uuid: uuid)
        let age = rule.longestAge.flatMap { longest in
          record.map { $0.createdAt.addingReportingOverflow(longest).partialValue }
        }
        let goesByNumber = record.map { $0.origin != .restore } ?? false && !isOrphaned && rule.keep < .max
        return Backup(
          backup: generation.database.string, number: record?.number, createdAt: record?.time, from: record?.from.name,
          to: record?.to.name, bytes: generation.bytes, createdBy: record?.origin.rawValue,
          storeUUID: record?.storeUUID,
          orphaned: isOrphaned,
          removal: due[generation]?.rawValue
            ?? (goesByNumber ? BackupRemovalReason.keep : age != nil ? .keepFor : nil)?.rawValue ?? "by-hand",
          expiresAt: age.map { BackupRecord.time($0) })
      }, unfinished: unfinished.map(\.string))
  }

  /// A row of the table.
  private struct Row {
    let store: StoreBackups
    let backup: Backup
  }

  private static let columns: [Table<Row>.Column] = [
    Table.Column(name: "created") { "\($0.backup.createdAt ?? "?")" },
    Table.Column(name: "created-by", rank: 2) { "\($0.backup.createdBy ?? "?")" },
    Table.Column(name: "versions") { "\($0.backup.from ?? "?") → \($0.backup.to ?? "?")" },
    Table.Column(name: "size", isNumber: true, rank: 1) { "\(MessageFormatter.bytes($0.backup.bytes))" },
    Table.Column(name: "removed-by", rank: 3) { "\(goes($0.backup))" },
    Table.Column(name: "store", isPath: true) { "\(FilePath($0.store.store).printable)" },
    Table.Column(name: "backup", isPath: true) {
      "\(FilePath($0.backup.backup).removingLastComponent().printable)"
    },
  ]

  /// Prints the backups below the names of their stores, in columns that all stores share.
  private func report(_ stores: [StoreBackups], _ table: Table<Row>) throws {
    let rows = stores.flatMap { store in store.backups.map { Row(store: store, backup: $0) } }
    if table.isChosen { return try output.table(table, rows) }
    let lines = table.lines(of: rows, width: StandardStreams.Stream.output.size?.columns, indent: 2)
    if !rows.isEmpty { try output.line(lines[0]) }
    var next = 1
    for store in stores {
      let name = FilePath(store.store).printable
      try output.line(store.present ? name : "\(name) (deleted)")
      if let pin = store.pin {
        let group = pin.group.map { ", group \($0)" } ?? ""
        try output.line("  pinned to \(pin.restored) since \(pin.restoredAt)\(group)")
      }
      for backup in store.backups {
        try output.line(lines[next])
        try output.line("    \(FilePath(backup.backup).removingLastComponent().printable)")
        next += 1
      }
      for folder in store.unfinished { try output.line("  unfinished: \(FilePath(folder).printable)") }
    }
  }

  /// The rule that removes a backup, in words.
  private static func goes(_ backup: Backup) -> String {
    let age = backup.expiresAt.map { "keep_for: at \($0)" }
    let rule =
      switch backup.removal {
      case "keep": ["keep: by the next migration", age].compactMap { $0 }.joined(separator: "; ")
      case "keep_for": age ?? "keep_for"
      default: "only hopctl prune"
      }
    return (backup.orphaned ? "orphaned; " : "") + rule
  }
}
