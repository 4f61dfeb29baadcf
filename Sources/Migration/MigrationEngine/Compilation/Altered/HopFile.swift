// The file that a hop of a chain finds, as far as the plan knows it: the store, or what the hops before make of it.

import MigrationPlanning
import PersistentStore

/// The tables and indexes in the file before a hop.
struct HopFile: Sendable, Hashable {
  /// An index with a text of its own.
  struct Index: Sendable, Hashable {
    let name: String
    let table: String
    let text: String
  }

  /// Whether it is the store itself. Every later file is made by hopd, so its tables have known texts.
  let isStore: Bool
  /// The texts of the store's tables by name; empty for later files.
  let tables: [String: String]
  let indexes: [Index]

  /// The store as it was found.
  init(of found: FoundFile) {
    isStore = true
    tables = Dictionary(
      found.objects.filter { $0.type == "table" }.map { ($0.name, $0.sql ?? "") }, uniquingKeysWith: { a, _ in a })
    // Automatic indexes have no text.
    indexes = found.objects.filter { $0.type == "index" }.compactMap { object in
      object.sql.map { Index(name: object.name, table: object.table, text: $0) }
    }
  }

  private init(indexes: [Index]) {
    (isStore, tables) = (false, [:])
    self.indexes = indexes
  }

  /// The file after a hop. A written one has no indexes: only the chain's last hop makes them.
  func after(_ decision: HopDecision) -> HopFile {
    guard let program = decision.program else { return HopFile(indexes: []) }
    let gone = Set(program.droppedTables + program.droppedHistory)
    return HopFile(
      indexes: indexes.filter { !program.droppedIndexes.contains($0.name) && !gone.contains($0.table) })
  }
}
