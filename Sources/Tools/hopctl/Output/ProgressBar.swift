// The progress of a migration: a line on a terminal, or lines of JSON, at most ten times a second.

import Diagnostics
import MigrationPipeline

/// Shows the progress of a command.
final class ProgressBar {
  private let form: ProgressForm
  private let line: ProgressLine
  private let noteWriter: NoteWriter
  /// Time and part of the last line of JSON.
  private var last: (time: ContinuousClock.Instant, part: WorkPart)?

  init(_ output: OutputOptions, form: ProgressForm = .bar, notes level: NoteWriter.Level = .none) {
    self.form = form
    line = ProgressLine(output, every: .milliseconds(100))
    noteWriter = NoteWriter(level: level, isQuiet: output.quiet)
  }

  /// Shows an event of a migration.
  func show(_ event: MigrationEvent) {
    switch event {
    case .advanced(let progress):
      if form == .json { return report(progress) }
      let hop = progress.subject.isEmpty ? nil : "hop \(progress.hop + 1)/\(progress.hops)"
      draw(
        fraction: progress.fraction, hop: hop, subject: hop == nil ? progress.part.rawValue : progress.subject,
        pace: progress.rowsPerSecond, remaining: progress.remaining)
    // Until the plan is complete nothing says how much there is to do.
    case .identified: draw(fraction: 0, subject: WorkPart.planning.rawValue)
    case .recovered(let sentence): note(sentence)
    case .resumed(let hop, let hops): note("resuming at hop \(hop + 1) of \(hops)")
    case .note(let note):
      guard let text = noteWriter.line(note) else { return }
      end()
      StandardStreams.report(text)
    case .planned, .hopStarted, .hopFinished, .progress, .verifying, .verified, .replacing, .alive: return
    }
  }

  /// Writes a line of JSON. The first line of each part and the last line are always written.
  private func report(_ progress: MigrationProgress) {
    let now = ContinuousClock.now
    if let last, progress.part == last.part, now - last.time < .milliseconds(100) { return }
    last = (now, progress.part)
    guard let text = try? JSONText.of(progress.json) else { return }
    try? StandardStreams.write(text + "\n", to: .error)
  }

  /// Shows the progress of `create`.
  func show(rows: Int64, of total: Int64) {
    draw(fraction: total > 0 ? Double(rows) / Double(total) : 1, subject: "rows")
  }

  /// Removes the line.
  func end() { line.end() }

  private func note(_ text: String) {
    guard form == .bar, line.isShown else { return }
    end()
    StandardStreams.report(text)
  }

  private func draw(
    fraction: Double, hop: String? = nil, subject: String, pace: Double? = nil, remaining: Double? = nil
  ) {
    guard form == .bar else { return }
    line.show(Self.line(fraction: fraction, hop: hop, subject: subject, pace: pace, remaining: remaining))
  }

  /// The line. The time to go is worth more than the name of the part, and both more than the bar.
  private static func line(
    fraction: Double, hop: String?, subject: String, pace: Double?, remaining: Double?
  ) -> FittedLine {
    let share = max(0, min(1, fraction.isFinite ? fraction : 0))
    var line = FittedLine()
    line.add(bar(share, width: 24), bar(share, width: 10), rank: 3)
    line.add("\(Int(share * 100))%", rank: 0)
    line.add(hop.map { "\($0) \(subject)" }, subject, rank: 2, isCut: true)
    if let pace, pace.isFinite, pace < 1e12 {
      line.add("\(MessageFormatter.count(Int64(pace))) rows/s", rank: 4)
    }
    let left = remaining.map { MessageFormatter.duration($0) }
    line.add(left.map { "ETA \($0)" }, left, rank: 1)
    return line
  }

  private static func bar(_ share: Double, width: Int) -> String {
    let full = Int(share * Double(width))
    return "[" + String(repeating: "#", count: full) + String(repeating: "-", count: width - full) + "]"
  }
}
