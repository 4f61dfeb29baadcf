// Persistent history and CloudKit mirroring: tables that belong to no entity. The operator decides whether history is
// migrated, carried without its rows, or refused. A mirrored store is migrated only on request (`MirroringInspection`),
// and all other uses of reserved numbers are refused by name.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct HistoryInspection {
  /// The tables that the migrated store gets; nil if it has no history.
  private(set) var layout: HistoryLayout?
  /// How their rows are carried; nil if none are.
  private(set) var carry: HistoryCarry?
  /// Tables whose rows are dropped; under `clear`, empty tables too.
  private(set) var cleared: [ClearedTable] = []
  private(set) var findings = Findings()
  private(set) var warnings: [HopdError] = []

  /// Inspects the store of `path`, whose last layout is `final`.
  init(reader: StoreReader, path: MigrationPath, final: StoreSchema, rules: PlanningRules) throws {
    let rule = rules.history
    let found = try HistoryLayout.read(from: reader)
    let mirroring =
      rules.cloudKit == .migrate ? try MirroringInspection(reader: reader, path: path, final: final, rule: rule) : nil
    findings.add(mirroring?.findings.errors ?? [])
    let mirrored = mirroring?.layout?.numbers ?? []
    for entry in try reader.primaryKeys() where entry.isReserved && !mirrored.contains(entry) {
      guard found.layout?.numbers.contains(where: { $0.number == entry.number }) != true else { continue }
      findings.add(
        .historyNotUnderstood,
        "Z_PRIMARYKEY has the reserved number \(entry.number) (\(entry.name)), which is not persistent history's",
        hint: "migrate the store with its app")
    }
    guard let layout = found.layout else {
      // The store has history tables, and hopd understands none of them.
      findings.add(found.errors)
      return
    }
    let names = HistoryLayout.Table.allCases.filter { found.rows[$0] != nil || layout.tables[$0] != nil }
    if let refusal = HistoryInspection.refusal(names, rows: found.rows, rule: rule, path: path) {
      findings.add(refusal)
      return
    }
    findings.add(found.errors)
    warnings = found.warnings
    self.layout = layout.widened(for: final.model)
    func rows(_ rows: [HistoryLayout.Table: Int64], of tables: [HistoryLayout.Table]) -> [ClearedTable] {
      tables.map { table in
        ClearedTable(hop: path.end - 1, table: table.rawValue, entity: table.entityName, rows: rows[table] ?? 0)
      }
    }
    if rule == .migrate, !path.mappingModels.contains(where: { !$0.isEmpty }) {
      guard found.errors.isEmpty, !layout.tables.isEmpty else { return }
      let continuation = try HistoryContinuation(reader: reader, layout: layout, path: path, final: final)
      findings.add(continuation.findings.errors)
      warnings += continuation.warnings
      let removed = continuation.removedChanges
      if removed > 0 { cleared = rows([.change: removed], of: [.change]) }
      carry = continuation.carry
      self.layout?.numbers = continuation.numbers
      if let mirrored = mirroring?.layout {
        carry?.mirroring = mirroring?.carry
        self.layout?.mirroring = mirrored.statements
        self.layout?.numbers += mirrored.numbers
      }
      return
    }
    cleared = rows(found.rows, of: names)
    let lost = cleared.filter { $0.rows > 0 }
    guard !lost.isEmpty else { return }
    warnings.add(
      .historyCleared,
      "the persistent history is cleared: "
        + lost.map { "\($0.rows.counted("row")) of \($0.table)" }.joined(separator: ", "),
      hint:
        "set `history = \"refuse\"` to skip such stores; otherwise readers of the history (other processes, widgets, "
        + "sync) start over, as after an expired history token")
  }

  /// Returns why a store whose history has rows is not migrated; nil if it is. Tables that Core Data made with the
  /// store and never wrote to are not history.
  private static func refusal(
    _ names: [HistoryLayout.Table], rows: [HistoryLayout.Table: Int64], rule: HistoryRule, path: MigrationPath
  ) -> HopdError? {
    let filled = names.filter { rows[$0] ?? 0 > 0 }
    let mapped = path.mappingModels.firstIndex { !$0.isEmpty }
    guard !filled.isEmpty, rule == .refuse || rule == .migrate && mapped != nil else { return nil }
    let list = filled.map(\.rawValue).joined(separator: ", ")
    guard rule == .migrate, let mapped else {
      return HopdError(
        .historyNotSupported, "the store has persistent history (\(list)), and the rules refuse such stores",
        hint: "migrate it with its app, with its history (`history = \"migrate\"`, --history migrate), or without it: "
          + "`history = \"clear\"`, --history clear")
    }
    return HopdError(
      .historyNotSupported,
      "the store has persistent history (\(list)), and a mapping model creates its objects again, under keys that "
        + "the history does not know",
      at: Place(hop: "\(path.models[mapped].name) → \(path.models[mapped + 1].name)"),
      hint: "drop the rows of its history: `history = \"clear\"`, --history clear; readers of the history then start "
        + "over")
  }
}
