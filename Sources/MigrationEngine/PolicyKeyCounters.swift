// Which primary keys a policy may give to what it inserts: the key of the standard object, or the next free one of the root
// entity. Keys are real from the start, so nothing is renamed later, and no two objects can ever meet under one.

import MigrationPolicy
import PersistentStore
import SQLite

/// Free keys of one hop, by root entity of the destination.
final class PolicyKeyCounters {
  private let side: PolicySide
  private let connection: Connection
  private(set) var next: [String: Int64] = [:]
  /// Keys of the chunk at work that are set aside for standard objects, and the root entity in whose table they are.
  private var standard: Set<Int64> = []
  private var standardRoot = ""

  /// Keys below `first` belong to the ranges of the hop's entity mappings.
  init(side: PolicySide, connection: Connection, first: (String) -> Int64) {
    self.side = side
    self.connection = connection
    for table in side.schema.tables { next[table.rootEntity] = max(1, first(table.rootEntity)) }
  }

  /// What a policy is told with each call.
  var keys: PolicyKeys { PolicyKeys(next: next) }

  /// Looks for keys that other steps gave out since; called before each step.
  func refresh() throws {
    for table in side.schema.tables {
      let highest = try connection.integer("SELECT max(\"Z_PK\") FROM \(side.qualified(table.name))") ?? 0
      let (after, overflow) = highest.addingReportingOverflow(1)
      next[table.rootEntity] = max(next[table.rootEntity] ?? 1, overflow ? Int64.max : after)
    }
  }

  /// Sets keys aside for the standard objects of the next call.
  func offer(_ keys: some Sequence<Int64>, root: String) {
    standard = Set(keys)
    standardRoot = root
  }

  /// Ends the chunk: standard keys that were not taken stay free for good.
  func withdraw() { standard = [] }

  /// Takes a key; answers why it is not to be had, or nil.
  func take(_ key: Int64, root: String) -> String? {
    if root == standardRoot, standard.remove(key) != nil { return nil }
    guard let free = next[root] else { return "its root entity \(root) has no table" }
    guard key == free else {
      return "its key is neither the standard object's nor the next free one, which is \(free)"
    }
    let (after, overflow) = free.addingReportingOverflow(1)
    guard !overflow else { return "there are no more keys for \(root)" }
    next[root] = after
    return nil
  }
}
