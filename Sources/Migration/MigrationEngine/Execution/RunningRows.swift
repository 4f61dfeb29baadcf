// The rows of the chunk or statement that runs, for reports from inside it. A checkpoint has only those of the chunks
// that are complete.

import SQLite

/// The rows that a hop has written since its last checkpoint.
final class RunningRows {
  /// How a statement's rows count.
  enum Kind {
    /// As new rows of the destination, which the chunk will report.
    case new
    /// As other rows of the destination, inserted or changed.
    case changed
    /// Not at all: hopd's own tables, checks, and the schema.
    case other
  }

  private let tally: RowTally
  private var kind = Kind.other
  /// The tally when the running statement began.
  private var start: Int64 = 0
  /// Those of the statements that have ended.
  private var endedNew: Int64 = 0
  private var endedChanged: Int64 = 0
  /// The progress at the last checkpoint.
  private var last: HopProgress?

  init(_ tally: RowTally) { self.tally = tally }

  private var running: Int64 { tally.rows &- start }
  private var new: Int64 { kind == .new ? endedNew &+ running : endedNew }
  /// The rows of the destination that this run has written beyond the new rows.
  var changed: Int64 { kind == .changed ? endedChanged &+ running : endedChanged }

  /// A statement begins; the one before has ended.
  func begin(_ kind: Kind) {
    (endedNew, endedChanged) = (new, changed)
    self.kind = kind
    start = tally.rows
  }

  /// The chunk is complete: its rows are in `progress`.
  func commit(_ progress: HopProgress) {
    begin(.other)
    endedNew = 0
    last = progress
  }

  /// The progress inside a statement; nil before the first checkpoint.
  var progress: HopProgress? {
    guard var progress = last else { return nil }
    progress.rows &+= new
    progress.changed = changed
    return progress
  }
}

extension HopProgram.Effect {
  /// The kind of a statement whose rows are not new ones.
  var kind: RunningRows.Kind { if case .rows = self { .changed } else { .other } }
}
