// Errors as text and as JSON: what happened, where, and what to do next.

import Diagnostics
import MigrationPipeline
import SQLite

/// Prints errors.
enum ErrorReport {
  /// Converts any error to a `HopdError`, so that every failure has a code.
  static func hopdError(_ error: any Error) -> HopdError {
    switch error {
    case let error as HopdError: error
    case let failure as MigrationFailure: failure.error
    case let error as SQLiteError where error.isFull: HopdError(.noSpace, "the disk is full", cause: error)
    case let error as SQLiteError where error.isInputOutput:
      HopdError(.inputOutput, "I/O error", cause: error, hint: error.inputOutputHint)
    default:
      HopdError(
        .internalError, "internal error", cause: error,
        hint: "report this bug and attach the output of `hopctl doctor`")
    }
  }

  /// Prints an error to standard error and, with `json`, also as `{"error":…}` to standard output.
  static func report(_ error: HopdError, json: Bool = false) {
    StandardStreams.report(TerminalText("hopctl:", .bad) + " \(ToldLines.removed(from: error))")
    if json { reportJSON(error) }
  }

  /// Prints `{"error":…}` to standard output.
  static func reportJSON(_ error: HopdError) {
    if let text = try? JSONText.of(["error": error.json] as JSONObject) {
      try? StandardStreams.write(text + "\n", to: .output)
    }
  }
}
