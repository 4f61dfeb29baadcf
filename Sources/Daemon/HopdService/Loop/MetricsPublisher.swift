// The numbers for Prometheus, and when their file is written.

import Logging
import SystemPackage

/// Counts, and writes the metrics every minute, and at most five seconds after a change.
struct MetricsPublisher {
  /// What was counted.
  var counts = Metrics()
  private var written: Metrics?
  private let writer: MetricsWriter
  /// When the file is next written; nil for never.
  private(set) var due: ContinuousClock.Instant?

  init(logger: Logger) { writer = MetricsWriter(logger: logger) }

  /// Writes the file if that is due; nil for no file.
  mutating func publish(
    to file: FilePath?, stateDirectory: FilePath, at moment: Int64, now: ContinuousClock.Instant,
    gauges: () -> (Metrics.Gauges, backups: [MetricsWriter.Subject])
  ) {
    guard let file else {
      due = nil
      return
    }
    if let due, due > now {
      if counts != written { self.due = min(due, now.advanced(by: .seconds(5))) }
      return
    }
    (written, due) = (counts, now.advanced(by: .seconds(60)))
    let (gauges, backups) = gauges()
    writer.write(counts, gauges, to: file, stateDirectory: stateDirectory, backups: backups, now: moment)
  }
}
