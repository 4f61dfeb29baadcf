import ArgumentParser
import Diagnostics
import MigrationPipeline

/// The form of a command's progress output.
enum ProgressForm: String, CaseIterable, ExpressibleByArgument {
  /// A line on a terminal.
  case bar
  /// A line of JSON on standard error, ten times a second at most.
  case json
  /// Nothing.
  case none
}

/// `--progress` of long commands.
struct ProgressOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Progress on standard error: bar, json or none (default: bar on a terminal)",
      discussion: """
        json: at most ten lines of JSON a second, with part (planning, copying, indexing, verifying, replacing, done), \
        fraction (of the work: never falls, 1 only at the end), elapsed and remaining (seconds), hop, hops, from, to, \
        subject, rows, totalRows and rowsPerSecond.
        """, valueName: "form"))
  var progress: ProgressForm = .bar
}

extension MigrationProgress {
  /// A line of `--progress json`. Keys are a contract: new ones may be added, none is renamed.
  var json: JSONObject {
    [
      "part": part.rawValue, "fraction": fraction, "elapsed": elapsed, "remaining": remaining, "hop": hop + 1,
      "hops": hops, "from": from, "to": to, "subject": subject, "rows": rows, "totalRows": totalRows,
      "rowsPerSecond": rowsPerSecond,
    ]
  }
}
