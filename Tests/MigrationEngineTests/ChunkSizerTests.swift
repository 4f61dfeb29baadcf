import BlockingTests
import Testing

@testable import MigrationEngine

@Suite(.blocking) struct ChunkSizerTests {
  @Test func growsToTheTimeTargetAndStaysThere() {
    // A table that takes 10 µs per row.
    var sizer = ChunkSizer(target: .milliseconds(250), maximumRows: 1_000_000)
    for _ in 0..<30 { sizer.record(rows: sizer.span, duration: .microseconds(10 * sizer.span)) }
    #expect((20_000...30_000).contains(sizer.span))
  }

  @Test func shrinksWhenRowsBecomeHeavy() {
    var sizer = ChunkSizer(target: .milliseconds(100), maximumRows: 1_000_000)
    for _ in 0..<20 { sizer.record(rows: sizer.span, duration: .microseconds(sizer.span)) }
    let light = sizer.span
    for _ in 0..<20 { sizer.record(rows: sizer.span, duration: .milliseconds(sizer.span)) }
    #expect(sizer.span < light)
    #expect((50...200).contains(sizer.span))
  }

  @Test func neverExceedsTheRowBoundOnADenseTable() {
    for bound in [Int64(1), 10, 5_000] {
      var sizer = ChunkSizer(target: .seconds(60), maximumRows: bound)
      for _ in 0..<50 {
        #expect(sizer.span <= bound)
        sizer.record(rows: sizer.span, duration: .microseconds(1))
      }
    }
  }

  @Test func spansGrowOverGaps() {
    // One row per thousand keys: the span may be a thousand times the rows.
    var sizer = ChunkSizer(target: .milliseconds(250), maximumRows: 1_000)
    for _ in 0..<60 { sizer.record(rows: max(1, sizer.span / 1000), duration: .microseconds(50)) }
    #expect(sizer.span > 100_000)
    // Allows for the rounding of the gap.
    #expect(sizer.span <= 1_010_000)
  }

  @Test func wideRowsStayWithinTheBytes() {
    var sizer = ChunkSizer(target: .seconds(60), maximumRows: 1_000_000, maximumBytes: 16 << 20)
    // Rows of 200 bytes, then of 1 MiB, like a table whose later objects have photos.
    for _ in 0..<20 { sizer.record(rows: sizer.span, bytes: 200 * sizer.span, duration: .microseconds(1)) }
    #expect((60_000...90_000).contains(sizer.span))
    sizer.record(rows: sizer.span, bytes: sizer.span << 20, duration: .microseconds(1))
    for _ in 0..<20 {
      #expect(sizer.span <= 16)
      sizer.record(rows: sizer.span, bytes: sizer.span << 20, duration: .microseconds(1))
    }
    // Before the first chunk nothing is known.
    #expect(ChunkSizer(target: .seconds(60), maximumRows: 50_000).span <= 256)
  }

  @Test(arguments: [Int64(0), 1, .max])
  func extremesDoNotTrap(_ rows: Int64) {
    var sizer = ChunkSizer(target: .zero, maximumRows: .max)
    for duration in [Duration.zero, .nanoseconds(1), .seconds(1_000_000)] {
      for _ in 0..<100 { sizer.record(rows: rows, bytes: rows, duration: duration) }
      #expect(sizer.span >= 1)
    }
  }
}
