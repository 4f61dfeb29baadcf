// What a policy program writes is told as it comes. An error that quotes the same lines does not tell them again.

import Diagnostics
import PolicyHost
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
  static func removed(from error: HopdError) -> HopdError { error.withoutQuotes(of: lines.withLock { $0 }) }
}
