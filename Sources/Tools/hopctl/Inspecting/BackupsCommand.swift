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
    commandName: "backups", abstract: "Lists the backups of a store, or of all stores of a directory; changes nothing.",
    discussion: """
      It also lists those of stores that are gone. The last column says what removes a backup: a rule (from --config, \
      --keep or --keep-for; else keep = 1), or only hopctl prune.
      """)

  @Argument(help: "A store, which may be gone, or a folder of stores; else this folder.", completion: .file())
  var path = "."

  @OptionGroup var options: BackupOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
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
          .notFound, "there is neither such a store or folder nor a backup of it", at: Place(file: FilePath(path)),
          hint: "check the path; hopctl backups DIR lists the backups of all stores of a folder, also of lost ones")
      }
    }
    stores.sort { $0.store < $1.store }
    for store in stores { try report(store) }
    let all = stores.flatMap(\.backups)
    let bytes = all.reduce(0) { $0 &+ $1.bytes }
    try output.line(
      "\(MessageFormatter.count(all.count, "backup", "backups")) of "
        + "\(MessageFormatter.count(stores.count, "store", "stores")), \(MessageFormatter.bytes(bytes))")
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
        let goesByNumber = record?.origin == .migration && !isOrphaned && rule.keep < .max
        return Backup(
          backup: generation.database.string, number: record?.number, createdAt: record?.time, from: record?.from.name,
          to: record?.to.name, bytes: generation.bytes, madeBy: record?.origin.rawValue, storeUUID: record?.storeUUID,
          orphaned: isOrphaned,
          goesBy: due[generation]?.rawValue
            ?? (goesByNumber ? BackupRemovalReason.keep : age != nil ? .keepFor : nil)?.rawValue ?? "by-hand",
          goesAt: age.map { BackupRecord.time($0) })
      }, unfinished: unfinished.map(\.string))
  }

  private func report(_ store: StoreBackups) throws {
    let name = FilePath(store.store).printable
    try output.line(store.present ? name : "\(name) (gone)")
    if let pin = store.pin {
      let group = pin.group.map { ", group \($0)" } ?? ""
      try output.line("  pinned to \(pin.restored) since \(pin.restoredAt)\(group)")
    }
    let rows = store.backups.map { backup in
      [
        backup.createdAt ?? "?", backup.madeBy ?? "?", "\(backup.from ?? "?") → \(backup.to ?? "?")",
        MessageFormatter.bytes(backup.bytes), goes(backup),
      ]
    }
    for (line, backup) in zip(MessageFormatter.table(rows, right: [3]), store.backups) {
      try output.line(line)
      try output.line("    \(FilePath(backup.backup).removingLastComponent().printable)")
    }
    for folder in store.unfinished { try output.line("  unfinished: \(FilePath(folder).printable)") }
  }

  /// The rule that removes a backup, in words.
  private func goes(_ backup: Backup) -> String {
    let age = backup.goesAt.map { "keep_for: at \($0)" }
    let rule =
      switch backup.goesBy {
      case "keep": ["keep: when the store is migrated again", age].compactMap { $0 }.joined(separator: "; ")
      case "keep_for": age ?? "keep_for"
      default: "only hopctl prune"
      }
    return (backup.orphaned ? "orphaned; " : "") + rule
  }
}
