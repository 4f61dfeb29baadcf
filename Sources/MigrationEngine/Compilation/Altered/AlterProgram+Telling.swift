// Describes what a hop that alters a file changes in each table, in words for plans and journals.

/// The change of one table.
package struct TableChange: Sendable, Hashable {
  /// The kind of change.
  package enum Action: String, Sendable, Hashable {
    /// Nothing changes.
    case kept
    /// Its rows stay; its name, columns, or values in its rows change.
    case altered
    /// The table is created, and its rows are written.
    case written
    /// The table is not in the destination.
    case removed
  }

  /// Its name in the destination, or in the source if it is removed.
  package let table: String
  package let action: Action
  /// The change, or the reason why its rows are written.
  package let reason: String
}

extension AlterProgram {
  /// The changes of all tables: those of the destination, and those that are removed.
  package var changes: [TableChange] {
    let made = Set(written.map(\.name))
    return kept.map { TableChange(table: $0.name, action: $0.isUnchanged ? .kept : .altered, reason: $0.change) }
      + written.map { TableChange(table: $0.name, action: .written, reason: $0.reason ?? "it is new") }
      + droppedTables.filter { !made.contains($0) }.map {
        TableChange(table: $0, action: .removed, reason: "the next version has no table of that name")
      }
  }

  /// A short summary of the work apart from copying.
  package var summary: String {
    let changes = changes
    func tables(_ action: TableChange.Action) -> Int { changes.count { $0.action == action } }
    let columns = kept.reduce(0) { $0 + $1.appended.count }
    let growing = kept.count { !$0.appended.isEmpty }
    let revalued = kept.count { !$0.values.isEmpty }
    let renamed = kept.count { $0.origin != $0.name }
    let parts = [
      columns == 0 ? "" : "\(Self.count(columns, "column")) added to \(Self.count(growing, "table"))",
      renamed == 0 ? "" : "\(Self.count(renamed, "table")) renamed",
      revalued == 0 ? "" : "values set in \(Self.count(revalued, "table"))",
      written.isEmpty ? "" : "\(Self.count(written.count, "table")) written",
      tables(.removed) == 0 ? "" : "\(Self.count(tables(.removed), "table")) removed",
      createdIndexes.isEmpty ? "" : "\(Self.count(createdIndexes.count, "index", "indexes")) made",
      droppedIndexes.isEmpty ? "" : "\(Self.count(droppedIndexes.count, "index", "indexes")) dropped",
    ].filter { !$0.isEmpty }
    return parts.isEmpty ? "no table changes" : parts.joined(separator: ", ")
  }

  private static func count(_ number: Int, _ word: String, _ plural: String? = nil) -> String {
    "\(number) \(number == 1 ? word : plural ?? word + "s")"
  }
}

extension AlterProgram.KeptTable {
  /// The change of the table.
  fileprivate var change: String {
    let filled = values.filter { $0.column != "Z_ENT" }
    let parts = [
      origin == name ? "" : "it was \(origin)",
      renamed.isEmpty ? "" : "its columns get other names",
      appended.isEmpty ? "" : "it gets \(appended.map(\.name).joined(separator: ", "))",
      filled.count == values.count ? "" : "its rows get other entity numbers",
      filled.isEmpty ? "" : "its rows get values of \(filled.map(\.column).joined(separator: ", "))",
    ].filter { !$0.isEmpty }
    return parts.isEmpty ? "it stays as it is" : parts.joined(separator: "; ")
  }
}
