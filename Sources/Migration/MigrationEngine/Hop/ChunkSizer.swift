import Diagnostics

/// The number of keys in the next chunk: it grows or shrinks towards a time per chunk, within bounds of rows and of
/// bytes.
///
/// A pure value; the caller passes the time of a chunk and the bytes it wrote. The size is a span of keys, not a number
/// of rows: tables with gaps get wider spans, because their chunks are quick.
package struct ChunkSizer: Sendable, Hashable {
  /// The keys in the next chunk.
  package private(set) var span: Int64
  private let target: Duration
  private let maximumRows: Int64
  private let maximumBytes: Int64

  /// Starts small, because rows may be wide: the first chunks show the pace and the bytes per row.
  package init(target: Duration, maximumRows: Int64, maximumBytes: Int64 = .max) {
    self.target = max(target, .milliseconds(1))
    self.maximumRows = max(1, maximumRows)
    self.maximumBytes = max(1, maximumBytes)
    span = min(256, self.maximumRows)
  }

  /// Records a chunk of `rows` rows that took `duration` and wrote `bytes`.
  package mutating func record(rows: Int64, bytes: Int64 = 0, duration: Duration) {
    let seconds = max(duration.seconds, 0.000_001)
    var factor = min(4.0, max(0.25, target.seconds / seconds))
    // Other load may cause the time, but the bytes are those of the rows, so they apply at once.
    if bytes > 0 { factor = min(factor, Double(maximumBytes) / Double(bytes)) }
    // A span may exceed the row bound only by the gaps that the table has shown.
    let gap = rows > 0 ? max(1.0, Double(span) / Double(rows)) : 16.0
    let bound = min(Double(maximumRows) * gap, 1e15)
    span = Int64(max(1, min(Double(span) * factor, bound)))
  }
}
