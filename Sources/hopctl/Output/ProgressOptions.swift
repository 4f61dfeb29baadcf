import ArgumentParser
import Diagnostics
import MigrationPipeline

/// How a command shows how far it is.
enum ProgressForm: String, CaseIterable, ExpressibleByArgument {
  /// A line on a terminal.
  case bar
  /// A line of JSON on standard error, ten times a second at most.
  case json
  /// Nothing.
  case none
}

/// `--progress` of commands that take long.
struct ProgressOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "How far it is, on standard error: bar (on a terminal), json (for programs), or none.",
      discussion: """
        json: a line of JSON at most ten times a second, with part (planning, copying, indexing, verifying, replacing, \
        done), fraction (of the time: it never falls, and is 1 only at the end), elapsed and remaining (seconds), hop, \
        hops, from, to, subject, rows, totalRows and rowsPerSecond.
        """, valueName: "form"))
  var progress: ProgressForm = .bar
}

/// A line of `--progress json`. Keys are a contract: they are added to, never renamed.
struct ProgressShape: Encodable {
  let part: String
  let fraction: Double
  let elapsed: Double
  @OrNull var remaining: Double?
  let hop: Int
  let hops: Int
  let from: String
  let to: String
  let subject: String
  let rows: Int64
  let totalRows: Int64
  @OrNull var rowsPerSecond: Double?

  init(_ progress: MigrationProgress) {
    part = progress.part.rawValue
    fraction = progress.fraction
    elapsed = progress.elapsed
    _remaining = OrNull(wrappedValue: progress.remaining)
    hop = progress.hop + 1
    hops = progress.hops
    from = progress.from
    to = progress.to
    subject = progress.subject
    rows = progress.rows
    totalRows = progress.totalRows
    _rowsPerSecond = OrNull(wrappedValue: progress.rowsPerSecond)
  }
}
