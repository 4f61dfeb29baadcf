// How hops are run, whatever they are made of.

import MigrationPlanning
import PersistentStore

/// When a chain is carried out on a copy of the store that is altered. The content of the result is the same.
package enum AlterRule: Sendable, Hashable {
  /// All rows are written.
  case never
  /// Where it is faster than writing all rows.
  case whereFaster
  /// Wherever the result is a store that Core Data's own migration in place could leave.
  case wherePossible
}

/// How a hop is run.
package struct EngineOptions: Sendable, Hashable {
  /// Time that a chunk should take.
  package var chunkTime: Duration
  /// Most rows in a chunk.
  package var chunkRowsMax: Int64
  /// Bytes that a chunk should not write more of; one chunk may, where rows are suddenly wider.
  package var chunkBytesMax: Int64 = 16 << 20
  /// Most memory for pages, in bytes.
  package var memoryLimit: Int64
  /// The most bytes of one value that is read; nil is SQLite's own limit of a billion. A service sets it: one store
  /// must not fill the memory of all.
  package var valueMax: Int64?
  /// What becomes of rows that break the rules of the destination.
  package var invalidRows: InvalidRowsRules
  /// When is a chain carried out on a copy of the store that is altered?
  package var altering = AlterRule.whereFaster
  /// Are hops that can be one pass over the rows run as one?
  package var fusesHops: Bool
  /// Stores with at most so many bytes are built in memory and written in one go; 0 builds all in files.
  package var inMemoryMax: Int64

  /// Makes options.
  package init(
    chunkTime: Duration = .milliseconds(250), chunkRowsMax: Int64 = 50_000, memoryLimit: Int64 = 64 << 20,
    invalidRows: InvalidRowsRules = InvalidRowsRules(), fusesHops: Bool = true, inMemoryMax: Int64 = 2 << 20
  ) {
    self.inMemoryMax = inMemoryMax
    self.fusesHops = fusesHops
    self.chunkTime = chunkTime
    self.chunkRowsMax = chunkRowsMax
    self.memoryLimit = memoryLimit
    self.invalidRows = invalidRows
  }

  /// Largest file that may become a value of a column.
  package var externalValueMax: Int64 { ExternalDataForm.largestValue(memoryLimit: memoryLimit) }

  /// The most bytes of a store that is built in memory. Two staged stores at most are there at once, beside page caches
  /// and the image.
  package var smallStoreMax: Int64 { min(inMemoryMax, stagedInMemoryMax / 2) }

  /// The most bytes of a staged store in memory.
  package var stagedInMemoryMax: Int64 { memoryLimit / 8 }

  /// Page cache of the staged store in KiB while rows are written: what is looked up for each of them, the keys of
  /// objects by distinct values, should stay in it, else each look-up reads a page. Less under a tight limit.
  var cacheKibibytes: Int64 { min(6144, max(256, memoryLimit / 8 / 1024)) }

  /// The same while indexes are built: nothing is looked up, and sorting takes memory of its own.
  var indexingCacheKibibytes: Int64 { min(2048, cacheKibibytes) }
}
