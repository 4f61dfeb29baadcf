/// How many keys the next chunk covers: grows or shrinks towards a time per chunk, within bounds.
///
/// A pure value; the time of a chunk is given from outside. The size is a span of keys, not a count of rows: tables with
/// gaps get wider spans by themselves, because their chunks are quick.
package struct ChunkSizer: Sendable, Hashable {
  /// Keys in the next chunk.
  package private(set) var span: Int64
  private let target: Duration
  private let maximumRows: Int64

  /// Starts small: the first chunk teaches the pace.
  package init(target: Duration, maximumRows: Int64) {
    self.target = max(target, .milliseconds(1))
    self.maximumRows = max(1, maximumRows)
    span = min(1000, self.maximumRows)
  }

  /// Learns from a chunk of `rows` rows that took `duration`.
  package mutating func record(rows: Int64, duration: Duration) {
    let seconds = max(ChunkSizer.seconds(duration), 0.000_001)
    let factor = min(2.0, max(0.25, ChunkSizer.seconds(target) / seconds))
    // A span may exceed the row bound only as far as the table's gaps have shown.
    let gap = rows > 0 ? max(1.0, Double(span) / Double(rows)) : 16.0
    let bound = min(Double(maximumRows) * gap, 1e15)
    span = Int64(max(1, min(Double(span) * factor, bound)))
  }

  static func seconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
  }
}
