/// How many keys the next chunk covers: grows or shrinks towards a time per chunk, within bounds of rows and of bytes.
///
/// A pure value; the time of a chunk and the bytes it wrote are given from outside. The size is a span of keys, not a
/// count of rows: tables with gaps get wider spans by themselves, because their chunks are quick.
package struct ChunkSizer: Sendable, Hashable {
  /// Keys in the next chunk.
  package private(set) var span: Int64
  private let target: Duration
  private let maximumRows: Int64
  private let maximumBytes: Int64

  /// Starts small, as rows may be wide: the first chunks teach pace and weight.
  package init(target: Duration, maximumRows: Int64, maximumBytes: Int64 = .max) {
    self.target = max(target, .milliseconds(1))
    self.maximumRows = max(1, maximumRows)
    self.maximumBytes = max(1, maximumBytes)
    span = min(256, self.maximumRows)
  }

  /// Learns from a chunk of `rows` rows that took `duration` and wrote `bytes`.
  package mutating func record(rows: Int64, bytes: Int64 = 0, duration: Duration) {
    let seconds = max(ChunkSizer.seconds(duration), 0.000_001)
    var factor = min(4.0, max(0.25, ChunkSizer.seconds(target) / seconds))
    // Time may be somebody else's load; bytes are these rows' own, and are believed at once.
    if bytes > 0 { factor = min(factor, Double(maximumBytes) / Double(bytes)) }
    // A span may exceed the row bound only as far as the table's gaps have shown.
    let gap = rows > 0 ? max(1.0, Double(span) / Double(rows)) : 16.0
    let bound = min(Double(maximumRows) * gap, 1e15)
    span = Int64(max(1, min(Double(span) * factor, bound)))
  }

  /// A duration in seconds.
  package static func seconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
  }
}
