// How the rows of persistent history come from the store as it is into the last store of a chain: decided by the plan,
// carried out by the engine (docs/decisions/0057).

import PersistentStore

/// What becomes of the rows of persistent history.
package struct HistoryCarry: Sendable, Hashable {
  /// A change of ZCOLUMNS: from the bits of an entity as the store has it to those of the last version.
  package struct ColumnsChange: Sendable, Hashable {
    /// The bits before and after.
    package let source: HistoryColumns
    package let destination: HistoryColumns
    /// By bit of the destination the bits of the source of which any sets it.
    package let sets: [[Int]]

    /// The value after the chain. One of another length than the entity's has every bit set: its reader inspects more
    /// than has changed, and overlooks nothing.
    package func value(of bytes: [UInt8]) -> [UInt8] {
      guard bytes.count == source.byteCount else {
        return destination.value(settingPositions: destination.bits.indices)
      }
      let found = Set(source.positions(in: bytes))
      return destination.value(
        settingPositions: sets.indices.filter { position in sets[position].contains(where: found.contains) })
    }
  }

  /// Changes and transactions up to this one stay behind; nil where all go along.
  package var cutoff: Int64?
  /// Entity numbers that change, the store's to the last version's.
  package var numbers: [Int64: Int64] = [:]
  /// Values of ZCOLUMNS that change, by the store's entity number.
  package var columns: [Int64: ColumnsChange] = [:]
  /// Tombstones that change, by the store's entity number: the place before for every place after, nil for none.
  package var tombstones: [Int64: [Int?]] = [:]
  /// Rows of CloudKit's mirroring; nil for a store that is not mirrored.
  package var mirroring: MirroringCarry?
  /// Columns of each table in the store.
  package var sourceColumns: [HistoryLayout.Table: [String]] = [:]
  /// The transaction that marks the migration; nil where history has not begun.
  package var mark: HistoryMark?

  /// Does a change of an object stay as it is, but for the transactions that stay behind?
  package var keepsChanges: Bool { numbers.isEmpty && columns.isEmpty && tombstones.isEmpty }
}

/// What becomes of the rows of CloudKit's mirroring: all stay as they are, but for numbers of entities.
package struct MirroringCarry: Sendable, Hashable {
  /// Entity numbers that change, the store's to the last version's.
  package let numbers: [Int64: Int64]
  /// Numbers of entities that are removed: their records are forgotten.
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
  /// What it says in place of an author.
  package let author: String
  /// What it says in place of a bundle and of a process.
  package let program: String
  /// Rows that ATRANSACTIONSTRING gets.
  package let texts: [Text]
  /// Key of the author's row there, and of the program's; nil for a store that keeps the texts in ATRANSACTION.
  package let authorKey: Int64?
  package let programKey: Int64?

  /// The author that Core Data writes, for a store that had the digest.
  package static func author(digest: String) -> String {
    "com.apple.coredata.schemamigrator: lightweight migration from model with digest { \(digest) }"
  }
}
