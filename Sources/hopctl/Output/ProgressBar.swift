// The progress line of a terminal: rewritten in place, at most ten times a second, and gone before the result is
// printed. Programs never see it.

import Diagnostics
import MigrationPipeline

/// Shows how far a command is.
final class ProgressBar {
  private let isShown: Bool
  private let isJSON: Bool
  private let teller: NoteTeller
  private var lastDrawn: ContinuousClock.Instant?
  private var lastPart: WorkPart?
  private var isDrawn = false

  init(_ output: OutputOptions, form: ProgressForm = .bar, notes level: NoteTeller.Level = .none) {
    teller = NoteTeller(level: level, isQuiet: output.quiet)
    isJSON = form == .json
    isShown =
      form == .bar && !output.json && !output.quiet && !output.noProgress && StandardStreams.Stream.error.isTerminal
  }

  /// An event of a migration.
  func show(_ event: MigrationEvent) {
    switch event {
    case .advanced(let progress):
      if isJSON { return tell(progress) }
      let isInHop = !progress.subject.isEmpty
      draw(
        fraction: progress.fraction,
        subject: isInHop ? "hop \(progress.hop + 1)/\(progress.hops) \(progress.subject)" : progress.part.rawValue,
        pace: progress.rowsPerSecond, remaining: progress.remaining)
    case .recovered(let sentence): note(sentence)
    case .resumed(let hop, let hops): note("going on with hop \(hop + 1) of \(hops)")
    case .note(let note):
      guard let line = teller.line(note) else { return }
      end()
      StandardStreams.tell(line)
    case .identified, .planned, .hopStarted, .hopFinished, .progress, .verifying, .verified, .replacing, .alive: return
    }
  }

  /// A line for programs; the last one, and the first of each part, are reported in any case.
  private func tell(_ progress: MigrationProgress) {
    let now = ContinuousClock.now
    if let lastDrawn, progress.part == lastPart, now - lastDrawn < .milliseconds(100) { return }
    (lastDrawn, lastPart) = (now, progress.part)
    guard let text = try? JSONText.of(progress.json) else { return }
    try? StandardStreams.write(text + "\n", to: .error)
  }

  /// Rows of a store that is being made.
  func show(rows: Int64, of total: Int64) {
    draw(fraction: total > 0 ? Double(rows) / Double(total) : 1, subject: "rows", pace: nil, remaining: nil)
  }

  /// Takes the line away.
  func end() {
    guard isDrawn else { return }
    try? StandardStreams.write("\r\u{1b}[K", to: .error)
    isDrawn = false
  }

  private func note(_ text: String) {
    guard isShown else { return }
    end()
    StandardStreams.tell(text)
  }

  private func draw(fraction: Double, subject: String, pace: Double?, remaining: Double?) {
    guard isShown else { return }
    let now = ContinuousClock.now
    if let lastDrawn, now - lastDrawn < .milliseconds(100) { return }
    lastDrawn = now
    let share = max(0, min(1, fraction.isFinite ? fraction : 0))
    let width = 24
    let full = Int(share * Double(width))
    var line = "[" + String(repeating: "#", count: full) + String(repeating: "-", count: width - full) + "] "
    line += "\(Int(share * 100)) %  \(subject)"
    if let pace, pace.isFinite, pace < 1e12 { line += "  \(MessageFormatter.count(Int64(pace))) rows/s" }
    if let remaining { line += "  ETA \(MessageFormatter.duration(remaining))" }
    // A line that wraps cannot be rewritten.
    try? StandardStreams.write("\r\u{1b}[K" + line.printableLine.prefix(79), to: .error)
    isDrawn = true
  }
}
