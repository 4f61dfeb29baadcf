/// How fast rows are written, for the time to go: a mean that forgets slowly. Pure; the clock is the caller's.
struct Pace {
  private var rate: Double?
  private var lastRows: Int64
  private var lastTime: Double

  /// Starts with the rows that earlier runs have written: they say nothing of today's pace.
  init(rows: Int64) {
    lastRows = rows
    lastTime = 0
  }

  /// Notes that `rows` were written `seconds` after the start.
  mutating func record(rows: Int64, seconds: Double) {
    let (newRows, time) = (rows - lastRows, seconds - lastTime)
    // Short spans are noise.
    guard newRows > 0, time > 0.05 else { return }
    let now = Double(newRows) / time
    rate = rate.map { 0.8 * $0 + 0.2 * now } ?? now
    lastRows = rows
    lastTime = seconds
  }

  /// Seconds to go for `rows` more rows; nil while there is no pace.
  func remaining(rows: Int64) -> Double? {
    guard let rate, rate > 0 else { return nil }
    return Double(max(0, rows)) / rate
  }

  static func seconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
  }
}
