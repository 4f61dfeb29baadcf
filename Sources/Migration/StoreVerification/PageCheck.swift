// Runs SQLite's own check of every page of a file in a thread, over a connection of its own, so that it shares nothing
// with the caller's connection (docs/decisions/0153). It reads through the file that the caller's connection has
// open.

import SQLite
import Synchronization

/// A check of a file's pages that runs in parallel with its caller, who must call `finish` or `cancel`.
package final class PageCheck {
  private let answers: Answers
  private let thread: ConnectionThread

  /// Starts the check of the file of a schema of `connection`. The connection must stay open until the check has ended;
  /// meanwhile no process may write to the file, and its log must be empty. nil if the file is small, no second thread
  /// can be started, or, unless `isUrgent`, there is no second processor for it: then the caller must check it.
  package init?(reading schema: String, of connection: Connection, pragma: String, isUrgent: Bool = false) {
    let answers = Answers()
    self.answers = answers
    let thread = ConnectionThread(reading: schema, of: connection, isUrgent: isUrgent) {
      connection throws(SQLiteError) in
      answers.keep(try connection.rows("PRAGMA \(pragma)(5)") { $0.text(at: 0) ?? "" })
    }
    guard let thread else { return nil }
    self.thread = thread
  }

  /// Returns SQLite's results. Calls `keepAlive` while it waits, and stops the check if that returns false.
  package func finish(keepAlive: () -> Bool) throws(SQLiteError) -> [String] {
    try thread.finish(keepAlive: keepAlive)
    return answers.found
  }

  /// Stops the check and waits for its end.
  package func cancel() { thread.cancel() }
}

/// SQLite's results; none before the check has ended, which no caller may take for a sound file.
private final class Answers: Sendable {
  private let lines = Mutex<[String]>([])

  func keep(_ found: [String]) { lines.withLock { $0 = found } }
  var found: [String] { lines.withLock { $0 } }
}
