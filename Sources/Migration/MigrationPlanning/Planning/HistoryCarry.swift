// How the rows of persistent history are carried from the existing store to the last store of a chain: the plan
// decides, the engine executes (docs/decisions/0057).

import PersistentStore

/// The changes to the rows of persistent history.
package struct HistoryCarry: Sendable, Hashable {
  /// A change of ZCOLUMNS: from the bits of an entity in the store to those of the last version.
  package struct ColumnsChange: Sendable, Hashable {
    /// The bits before and after.
    package let source: HistoryColumns
    package let destination: HistoryColumns
    /// For each bit of the destination, the bits of the source; any of them sets it.
    package let sets: [[Int]]

    /// Returns the value after the chain. A value with another length than the entity's gets every bit set: its reader
    /// then inspects more than has changed, and misses nothing.
    package func value(of bytes: [UInt8]) -> [UInt8] {
      guard bytes.count == source.byteCount else {
        return destination.value(settingPositions: destination.bits.indices)
      }
      let found = Set(source.positions(in: bytes))
      return destination.value(
        settingPositions: sets.indices.filter { position in sets[position].contains(where: found.contains) })
    }
  }

  /// Numbers of removed entities in the store; their changes are dropped.
  package var removed: [Int64] = []
  /// Entity numbers that change, the store's to the last version's.
  package var numbers: [Int64: Int64] = [:]
  /// Values of ZCOLUMNS that change, by the store's entity number.
  package var columns: [Int64: ColumnsChange] = [:]
  /// Tombstones that change, by the store's entity number: for every position after the migration the position before
  /// it, or nil.
  package var tombstones: [Int64: [Int?]] = [:]
  /// Rows of CloudKit's mirroring; nil for a store that is not mirrored.
  package var mirroring: MirroringCarry?
  /// Columns of each table in the store.
  package var sourceColumns: [HistoryLayout.Table: [String]] = [:]
  /// The transaction that marks the migration; nil if history has not begun.
  package var mark: HistoryMark?
}

/// The changes to the rows of CloudKit's mirroring: only numbers of entities change.
package struct MirroringCarry: Sendable, Hashable {
  /// Entity numbers that change, the store's to the last version's.
  package let numbers: [Int64: Int64]
  /// Numbers of removed entities; their records are dropped.
  package let removed: [Int64]
}

/// The transaction without changes that Core Data's own migration leaves (docs/formats/history-and-cloudkit.md,
/// "Apple's migration of history").
package struct HistoryMark: Sendable, Hashable {
  /// A row of ATRANSACTIONSTRING that the mark needs and the store does not have.
  package struct Text: Sendable, Hashable {
    /// Its key.
    package let key: Int64
    /// The text.
    package let text: String
  }

  /// Its key.
  package let transaction: Int64
  /// Its text in place of an author.
  package let author: String
  /// Its text in place of a bundle and of a process.
  package let program: String
  /// Rows to add to ATRANSACTIONSTRING.
  package let texts: [Text]
  /// Key of the author's row there, and of the program's; nil for a store that keeps the texts in ATRANSACTION.
  package let authorKey: Int64?
  package let programKey: Int64?

  /// Returns the author that Core Data writes for a store that has become one with that digest.
  package static func author(digest: String) -> String {
    "com.apple.coredata.schemamigrator: lightweight migration from model with digest { \(digest) }"
  }
}
