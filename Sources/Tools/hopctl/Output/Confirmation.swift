// The question before a command changes something: a person at a terminal answers it, a script gives --yes.

import Diagnostics
import Glibc

/// Asks the person at the terminal.
enum Confirmation {
  /// Whether a user can answer.
  static var isPossible: Bool { isatty(0) == 1 && StandardStreams.Stream.error.isTerminal }

  /// Returns if the answer is yes. Otherwise prints `refusal` and ends the command with status 1.
  static func require(_ question: String, refusal: String) throws {
    try StandardStreams.write("\(question) [y/N] ", to: .error)
    let answer = readLine(strippingNewline: true)?.lowercased()
    guard answer == "y" || answer == "yes" else {
      StandardStreams.report("hopctl: \(refusal)")
      throw Finished(status: .failure)
    }
  }
}
