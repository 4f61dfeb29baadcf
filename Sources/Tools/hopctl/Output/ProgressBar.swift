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
      let isInHop = !progress.subject.isEmpty
      draw(
        fraction: progress.fraction,
        subject: isInHop ? "hop \(progress.hop + 1)/\(progress.hops) \(progress.subject)" : progress.part.rawValue,
        pace: progress.rowsPerSecond, remaining: progress.remaining)
    case .recovered(let sentence): note(sentence)
    case .resumed(let hop, let hops): note("going on with hop \(hop + 1) of \(hops)")
    case .note(let note):
      guard let text = noteWriter.line(note) else { return }
      end()
      StandardStreams.report(text)
    case .identified, .planned, .hopStarted, .hopFinished, .progress, .verifying, .verified, .replacing, .alive: return
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
    draw(fraction: total > 0 ? Double(rows) / Double(total) : 1, subject: "rows", pace: nil, remaining: nil)
  }

  /// Removes the line.
  func end() { line.end() }

  private func note(_ text: String) {
    guard form == .bar, line.isShown else { return }
    end()
    StandardStreams.report(text)
  }

  private func draw(fraction: Double, subject: String, pace: Double?, remaining: Double?) {
    guard form == .bar else { return }
    let share = max(0, min(1, fraction.isFinite ? fraction : 0))
    let width = 24
    let full = Int(share * Double(width))
    var text = "[" + String(repeating: "#", count: full) + String(repeating: "-", count: width - full) + "] "
    text += "\(Int(share * 100)) %  \(subject)"
    if let pace, pace.isFinite, pace < 1e12 { text += "  \(MessageFormatter.count(Int64(pace))) rows/s" }
    if let remaining { text += "  ETA \(MessageFormatter.duration(remaining))" }
    line.show(text)
  }
}
