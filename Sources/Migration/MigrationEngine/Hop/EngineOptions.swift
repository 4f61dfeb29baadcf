// The options for running hops of any kind.

import MigrationPlanning
import PersistentStore
import SQLite

/// When a hop alters a file in place of writing all rows. The content of the result is the same.
package enum AlterRule: Sendable, Hashable {
  /// Never: all rows are written.
  case never
  /// If it touches fewer pages than writing all rows.
  case whereFaster
  /// Whenever the result is a store that Core Data's own migration in place could leave.
  case wherePossible
}

/// The options for running a hop.
package struct EngineOptions: Sendable, Hashable {
  /// The time that a chunk should take.
  package var chunkTime: Duration
  /// The maximum number of rows in a chunk.
  package var chunkRowsMax: Int64
  /// The bytes that a chunk should not exceed; one chunk may exceed them if rows are suddenly wider.
  package var chunkBytesMax: Int64 = 16 << 20
  /// The maximum memory for pages, in bytes.
  package var memoryLimit: Int64
  /// The maximum number of bytes of one value that is read; nil is SQLite's own limit of a billion. A service sets it
  /// so that one store cannot use all memory.
  package var valueMax: Int64?
  /// The operator's rules for rows that break the rules of the destination.
  package var invalidRows: InvalidRowsRules
  /// When hops alter a file.
  package var altering = AlterRule.whereFaster

  /// Makes options.
  package init(
    chunkTime: Duration = .milliseconds(250), chunkRowsMax: Int64 = 50_000, memoryLimit: Int64 = 64 << 20,
    invalidRows: InvalidRowsRules = InvalidRowsRules()
  ) {
    self.chunkTime = chunkTime
    self.chunkRowsMax = chunkRowsMax
    self.memoryLimit = memoryLimit
    self.invalidRows = invalidRows
  }

  /// The largest file that may become a value of a column.
  package var externalValueMax: Int64 { ExternalDataForm.largestValue(memoryLimit: memoryLimit) }

  /// The page cache of the staged store in KiB: that of every database, less under a tight limit.
  var cacheKibibytes: Int64 { min(Connection.cacheKibibytes, max(256, memoryLimit / 8 / 1024)) }
}
