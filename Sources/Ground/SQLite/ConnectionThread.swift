// A thread with a connection of its own, beside its caller's: SQLite does not share a connection between threads. It
// reads only (docs/decisions/0153).

import CSQLite
import Dispatch
import Glibc
import Synchronization

/// Work of a second thread on a connection of its own. The caller must call `finish` or `cancel`.
package final class ConnectionThread {
  /// What the thread does with its connection.
  package typealias Body = @Sendable (Connection) throws(SQLiteError) -> Void

  private let work: Work
  private var thread: pthread_t?

  /// The work on smaller files is done before a thread has started.
  package static let smallestFile: Int64 = 2 << 20

  private static var hasProcessor: Bool { sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1 }

  private static func file(of schema: String, _ connection: Connection) -> Connection.BorrowedFile? {
    guard let file = try? connection.borrowedFile(of: schema), file.bytes >= smallestFile else { return nil }
    return file
  }

  /// Starts work on the file of a schema of `connection`. The connection must stay open until the work has ended;
  /// meanwhile no process may write to the file, and its log must be empty. nil if the file is small, no thread can be
  /// started, or, unless `isUrgent`, there is no second processor for it: then the caller must do the work.
  package init?(
    reading schema: String, of connection: Connection, isUrgent: Bool = false, _ body: @escaping Body
  ) {
    guard isUrgent || Self.hasProcessor, let file = Self.file(of: schema, connection) else { return nil }
    work = Work(file: file, body: body)
    var made = pthread_t()
    let context = Unmanaged.passRetained(work)
    let code = pthread_create(
      &made, nil,
      { context in
        if let context { Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, context.toOpaque())
    guard code == 0 else {
      context.release()
      return nil
    }
    thread = made
  }

  deinit { cancel() }

  /// Waits for the end of the work, and throws its error. Calls `keepAlive` while it waits, and stops the work if that
  /// returns false.
  package func finish(keepAlive: () -> Bool) throws(SQLiteError) {
    while !work.wait(milliseconds: 100) {
      if !keepAlive() { work.stop() }
    }
    join()
    if let error = work.failure { throw error }
  }

  /// Stops the work and waits for its end.
  package func cancel() {
    work.stop()
    join()
  }

  private func join() {
    if let thread { pthread_join(thread, nil) }
    thread = nil
  }
}

/// The state that both threads share.
private final class Work: Sendable {
  private let file: Connection.BorrowedFile
  private let body: ConnectionThread.Body
  private let isStopping = Atomic<Bool>(false)
  private let outcome = Mutex<SQLiteError?>(
    SQLiteError(extendedCode: SQLITE_INTERNAL, message: "the work of the second connection has no end"))
  private let end = DispatchSemaphore(value: 0)

  init(file: Connection.BorrowedFile, body: @escaping ConnectionThread.Body) {
    self.file = file
    self.body = body
  }

  func run() {
    var failure: SQLiteError?
    do throws(SQLiteError) {
      let connection = try Connection(reading: file)
      connection.setProgressHandler(every: 20_000) { [unowned self] in !isStopping.load(ordering: .relaxed) }
      try body(connection)
    } catch {
      failure = error
    }
    outcome.withLock { $0 = failure }
    end.signal()
  }

  func stop() { isStopping.store(true, ordering: .relaxed) }

  /// Waits at most that time; returns whether the work has ended.
  func wait(milliseconds: Int) -> Bool { end.wait(timeout: .now() + .milliseconds(milliseconds)) == .success }

  /// The error of the work, after it has ended.
  var failure: SQLiteError? { outcome.withLock { $0 } }
}
