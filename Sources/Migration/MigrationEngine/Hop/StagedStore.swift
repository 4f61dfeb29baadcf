// The result of a hop and its progress reports.

import SystemPackage

/// The stages of a hop, in the order in which they run.
package enum HopStage: Sendable, Hashable {
  /// The file is copied, where a copy is altered.
  case copy
  /// Rows are written.
  case rows
  /// Indexes, triggers and bookkeeping are written; no row is written any more.
  case indexes
}

/// A report of a running hop.
package struct HopProgress: Sendable, Hashable {
  /// The position of the hop in the chain.
  package let hop: Int
  /// The entity, relationship or index that is processed, by the model's names.
  package let subject: String
  /// The rows written in this hop so far, including those of the chunk that is being written.
  package var rows: Int64
  /// The rows of the last chunk.
  package var chunkRows: Int64
  /// The chunks committed in this hop so far.
  package let chunks: Int64
  /// The stage of the hop, and the share of it that is done.
  package var stage = HopStage.rows
  package var share = 0.0
  /// The rows that this run has inserted or changed in this hop beyond `rows`, such as those of an UPDATE.
  package var changed: Int64 = 0
  /// Whether a long statement is still running; otherwise the hop is between two chunks.
  package var isInStatement = false

  /// Called after each chunk and regularly in long statements (with no rows); returns whether to continue, and may
  /// wait. If it returns false, the hop stops after the chunk that was just committed; long statements are aborted at
  /// once and repeated at the next start.
  package typealias Control = (HopProgress) -> Bool
}

/// A staged store of one hop: complete, not yet verified.
package struct StagedStore: Sendable, Hashable {
  /// The database file; it has no side files.
  package let path: FilePath
  /// The hop that made it.
  package let hop: Int
  /// The rows written, and the chunks committed.
  package let rows: Int64
  package let chunks: Int64
  /// The time spent, over all runs.
  package let seconds: Double
  /// Whether this run continued an earlier one.
  package let wasResumed: Bool
  /// The counts of rows that make no object of their own, over all runs.
  package var tallies = HopTallies()

  /// Returns the schema name under which a hop's staged store is attached.
  package static func schemaName(ofHop index: Int) -> String { "\(schemaPrefix)\(index)" }

  /// The prefix of staged stores' schema names.
  static let schemaPrefix = "hop"
}
