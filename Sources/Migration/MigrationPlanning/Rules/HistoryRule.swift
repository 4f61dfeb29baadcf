// The rules for persistent history.

/// The rule for a store that keeps persistent history.
package enum HistoryRule: String, Sendable, Hashable, CaseIterable {
  /// Its rows are carried, so that tokens stay valid. A chain with mapping models, which make objects again, is refused
  /// if the history has rows.
  case migrate
  /// Its tables stay, its rows are dropped.
  case clear
  /// A store whose history has rows is not migrated.
  case refuse
}

/// The rule for a store that is mirrored with CloudKit.
package enum CloudKitRule: String, Sendable, Hashable, CaseIterable {
  /// It is not migrated.
  case refuse
  /// It is migrated, with its mirroring, if nothing is renamed and all of its content is understood.
  case migrate
}

/// Rows of a history table that the migration drops.
package struct ClearedTable: Sendable, Hashable {
  /// Index of the hop that drops them: the last one, because the stores between have no history.
  package let hop: Int
  /// The table, for example ACHANGE.
  package let table: String
  /// Its entity in Z_PRIMARYKEY, for example CHANGE.
  package let entity: String
  /// Rows that are dropped.
  package let rows: Int64
}
