// What a policy program writes is told as it comes. An error that quotes the same lines does not tell them again.

import Diagnostics
import Synchronization

/// The last lines of policy programs that were printed.
enum ToldLines {
  /// More than an error quotes.
  private static let most = 50
  private static let lines = Mutex<[String]>([])

  /// Notes a printed line.
  static func note(_ line: String) {
    lines.withLock { lines in
      lines.append(line)
      if lines.count > most { lines.removeFirst() }
    }
  }

  /// The error without the reasons that quote printed lines.
  static func removed(from error: HopdError) -> HopdError {
    let told = lines.withLock { $0 }
    guard !told.isEmpty else { return error }
    var rest = error
    rest.reasons = error.reasons.filter { reason in !told.contains { reason.message == "the program wrote: \($0)" } }
      .map { removed(from: $0) }
    return rest
  }
}
