// The primary keys that a policy may use for insertions: the key of the standard object, or the next free one of the
// root entity. Keys are final from the start, so they need no renaming, and no two objects can have the same one.

import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// The free keys of one hop, by root entity of the destination.
final class PolicyKeyCounters {
  private let side: PolicySide
  private let connection: Connection
  private(set) var next: [String: Int64] = [:]
  /// The keys of the current chunk that are reserved for standard objects, ascending; the root entity whose table has
  /// them; and the keys that are used.
  private var standard: [Int64] = []
  private var isTaken: [Bool] = []
  private var standardRoot = ""

  /// Keys below `first` belong to the ranges of the hop's entity mappings.
  init(side: PolicySide, connection: Connection, first: (String) -> Int64) {
    self.side = side
    self.connection = connection
    for table in side.schema.tables { next[table.rootEntity] = max(1, first(table.rootEntity)) }
  }

  /// The keys that are sent to a policy with each call.
  var keys: PolicyKeys { PolicyKeys(next: next) }

  /// Returns the keys to send once these changes are applied, before they are.
  func keys(after operations: [PolicyWireOperation]) -> PolicyKeys {
    var keys = next
    for case .plain(.insert(let object)) in operations {
      guard let root = side.shape(of: object.id.entity)?.root, let free = keys[root], free == object.id.key else {
        continue
      }
      keys[root] = free == .max ? free : free + 1
    }
    return PolicyKeys(next: keys)
  }

  /// Reads the keys that other steps have used since; called before each step.
  func refresh() throws {
    for table in side.schema.tables {
      let highest = try connection.integer("SELECT max(\"Z_PK\") FROM \(side.qualified(table.name))") ?? 0
      next[table.rootEntity] = max(next[table.rootEntity] ?? 1, highest == .max ? .max : highest + 1)
    }
  }

  /// Reserves keys for the standard objects of the next call.
  func offer(_ keys: some Sequence<Int64>, root: String) {
    standard = keys.sorted()
    isTaken = [Bool](repeating: false, count: standard.count)
    standardRoot = root
  }

  /// Ends the chunk: standard keys that were not used stay free for good.
  func withdraw() {
    standard = []
    isTaken = []
  }

  /// Returns the index of a reserved key.
  private func place(of key: Int64) -> Int? {
    var low = 0
    var high = standard.count
    while low < high {
      let middle = low + (high - low) / 2
      if standard[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < standard.count && standard[low] == key ? low : nil
  }

  /// Takes a key. Returns why it is not available, or nil.
  func take(_ key: Int64, root: String) -> String? {
    if root == standardRoot, let place = place(of: key), !isTaken[place] {
      isTaken[place] = true
      return nil
    }
    guard let free = next[root] else { return "its root entity \(root) has no table" }
    guard key == free else {
      return "its key is neither the standard object's nor the next free one, which is \(free)"
    }
    let (after, overflow) = free.addingReportingOverflow(1)
    guard !overflow else { return "no more keys for \(root)" }
    next[root] = after
    return nil
  }
}
