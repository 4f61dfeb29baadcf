// Persistent history in a migrated store: its tables are there without rows, and the numbers that it has given out stay
// given out. That their texts are right is looked at with all other texts (`StructureChecks`).

import PersistentStore
import SQLite

struct HistoryCheck {
  let reader: StoreReader
  /// What the store must have; nil where it must have no history.
  let layout: HistoryLayout?

  /// Are the tables empty and their rows of Z_PRIMARYKEY as planned? nil for a store that has and needs none.
  func cleared() throws(SQLiteError) -> VerificationCheck? {
    let found = try reader.primaryKeys().filter(\.isReserved)
    if layout == nil, found.isEmpty { return nil }
    var problems: [String] = []
    let wanted = layout?.numbers ?? []
    for entry in wanted {
      guard let real = found.first(where: { $0.number == entry.number }) else {
        problems.append("number \(entry.number) (\(entry.name)) of the persistent history is missing")
        continue
      }
      if real != entry { problems.append("number \(entry.number) (\(entry.name)) was not kept, or its Z_MAX") }
    }
    for entry in found where !wanted.contains(where: { $0.number == entry.number }) {
      problems.append("the reserved number \(entry.number) (\(entry.name)) was not in the source")
    }
    let tables = layout?.statements.filter { $0.kind == .table } ?? []
    for table in tables
    where try reader.connection.integer("SELECT count(*) FROM \(reader.qualified(table.name))") != 0 {
      problems.append("\(table.name) still has rows, which name entities by the source's numbers")
    }
    return VerificationCheck(
      name: "history", passed: problems.isEmpty,
      detail: problems.isEmpty
        ? "\(tables.count) tables of persistent history are empty and keep their numbers"
        : problems.joined(separator: "; "))
  }
}
