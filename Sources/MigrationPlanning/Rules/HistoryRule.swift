// What a migration does with persistent history.

/// What becomes of a store that keeps persistent history.
package enum HistoryRule: String, Sendable, Hashable, CaseIterable {
  /// Its rows go along, so that tokens stay valid. A chain with mapping models, which make objects again, is refused
  /// where the history has rows.
  case migrate
  /// Its tables stay, its rows go.
  case clear
  /// A store whose history has rows is not migrated.
  case refuse
}

/// What becomes of a store that is mirrored with CloudKit.
package enum CloudKitRule: String, Sendable, Hashable, CaseIterable {
  /// It is not migrated.
  case refuse
  /// It is migrated, with its mirroring, where nothing is renamed and all that it holds is known.
  case migrate
}

/// Rows of a history table that the migration leaves behind.
package struct ClearedTable: Sendable, Hashable {
  /// Index of the hop that leaves them: the last one, as the stores between have no history.
  package let hop: Int
  /// The table, as ACHANGE.
  package let table: String
  /// Its entity in Z_PRIMARYKEY, as CHANGE.
  package let entity: String
  /// Rows that stay behind.
  package let rows: Int64
}
