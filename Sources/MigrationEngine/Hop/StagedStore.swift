// What a hop makes, what it reports while it runs, and where it builds.

import SystemPackage

/// What a running hop tells between chunks.
package struct HopProgress: Sendable, Hashable {
  /// Position of the hop in the chain.
  package let hop: Int
  /// Entity, join table or index at work.
  package let subject: String
  /// Rows written in this hop so far.
  package let rows: Int64
  /// Rows of the last chunk.
  package let chunkRows: Int64
  /// Chunks committed in this hop so far.
  package let chunks: Int64
  /// What the hop does, where that is known; the step at work, and how much of it is done.
  package var outline: HopOutline?
  package var step = 0
  package var share = 0.0

  /// Called after each chunk and, in long statements, now and then (with no rows). An answer of false stops the hop
  /// after the chunk that was just committed; long statements are given up at once and repeated at the next start.
  package typealias Observer = (HopProgress) -> Bool
}

/// A staged store of one hop: complete, not yet verified.
package struct StagedStore: Sendable, Hashable {
  /// The database file; it has no side files.
  package let path: FilePath
  /// The hop that made it.
  package let hop: Int
  /// Rows written, and chunks committed.
  package let rows: Int64
  package let chunks: Int64
  /// Time spent, over all runs.
  package let seconds: Double
  /// Did this run continue an earlier one?
  package let wasResumed: Bool
  /// What became of rows that make no object of their own, over all runs.
  package var tallies = HopTallies()

  /// Schema name under which a hop's staged store is attached.
  package static func schemaName(ofHop index: Int) -> String { "\(schemaPrefix)\(index)" }

  /// What the names of staged stores begin with.
  static let schemaPrefix = "hop"
}

/// Where the staged store of a hop is built.
package enum StagedMedium: Sendable, Hashable {
  /// In its file, with checkpoints that an interrupted run continues from.
  case file
  /// In memory, for small stores: it may have at most so many bytes, and an interrupted run starts over. More is
  /// answered like a full disk.
  case memory(maximumBytes: Int64)
}
