// Errors as a person and as a program reads them: what happened, where, and what to do next.

import Diagnostics
import MigrationPipeline
import SQLite

/// Prints errors.
enum ErrorReport {
  /// Any error as one of hopd's, so that every way out has a code.
  static func hopdError(_ error: any Error) -> HopdError {
    switch error {
    case let error as HopdError: error
    case let failure as MigrationFailure: failure.error
    case let error as SQLiteError where error.isFull: HopdError(.noSpace, "the disk is full", cause: error)
    case let error as SQLiteError where error.isInputOutput: HopdError(.inputOutput, "the disk failed", cause: error)
    default: HopdError(.internalError, "an unexpected error", cause: error, hint: "please report this")
    }
  }

  /// On standard error, and with `json` also as `{"error":…}` on standard output.
  static func tell(_ error: HopdError, json: Bool = false) {
    StandardStreams.tell(TerminalText("hopctl:", .bad) + " \(error)")
    if json { tellJSON(error) }
  }

  /// `{"error":…}` on standard output.
  static func tellJSON(_ error: HopdError) {
    if let text = try? JSONText.of(["error": error.json] as JSONObject) {
      try? StandardStreams.write(text + "\n", to: .output)
    }
  }
}
