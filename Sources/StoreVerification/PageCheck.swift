// Runs SQLite's own check of every page of a file in a thread, over a connection of its own, so that it shares nothing
// with the caller's connection (docs/decisions/0022, 0153). It opens a staged store a second time; for a user's store
// it reads through the file that the holder has open.

import Dispatch
import Glibc
import SQLite
import Synchronization
import SystemPackage

/// A check of a file's pages that runs in parallel with its caller, who must call `finish` or `cancel`.
package final class PageCheck {
  private let work: Work
  private var thread: pthread_t?

  /// Smaller files are checked before a thread has started.
  private static let smallestFile: Int64 = 4 << 20

  /// Starts the check of a file; nil if it is small, or no thread can be started: then the caller must check it.
  convenience init?(_ path: FilePath, pragma: String) {
    var status = stat()
    guard path.withPlatformString({ lstat($0, &status) }) == 0 else { return nil }
    self.init(bytes: Int64(status.st_size), pragma: pragma) { () throws(SQLiteError) in
      try Connection(path: path, access: .readOnly)
    }
  }

  /// Starts the check of the file of a schema of `connection`. The connection must stay open until the check has ended;
  /// meanwhile no process may write to the file, and its log must be empty. nil if the file is small, no second thread
  /// can be started, or there is no second processor for it: then the caller must check it.
  package convenience init?(reading schema: String, of connection: Connection, pragma: String) {
    guard sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1, let file = try? connection.borrowedFile(of: schema) else {
      return nil
    }
    self.init(bytes: file.bytes, pragma: pragma) { () throws(SQLiteError) in try Connection(reading: file) }
  }

  private init?(bytes: Int64, pragma: String, open: @escaping Work.Opening) {
    guard bytes >= PageCheck.smallestFile else { return nil }
    work = Work(open: open, pragma: pragma)
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

  /// The steps of SQLite's virtual machine so far: proportional to the rows and index entries that were checked.
  var steps: Int { work.steps }

  /// Returns SQLite's results. Calls `keepAlive` while it waits, and stops the check if that returns false.
  package func finish(keepAlive: () -> Bool) throws(SQLiteError) -> [String] {
    while !work.wait(milliseconds: 100) {
      if !keepAlive() { work.stop() }
    }
    join()
    return try work.answers()
  }

  /// Stops the check and waits for its end.
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
  typealias Opening = @Sendable () throws(SQLiteError) -> Connection

  private let open: Opening
  private let pragma: String
  private let isStopping = Atomic<Bool>(false)
  private let looks = Atomic<Int>(0)
  /// 2 is SQLITE_INTERNAL: the result is read only after the work has ended.
  private let outcome = Mutex<Result<[String], SQLiteError>>(
    .failure(SQLiteError(extendedCode: 2, message: "the check of the pages has no answer")))
  private let end = DispatchSemaphore(value: 0)

  init(open: @escaping Opening, pragma: String) {
    self.open = open
    self.pragma = pragma
  }

  func run() {
    let result: Result<[String], SQLiteError>
    do throws(SQLiteError) {
      let connection = try open()
      connection.setProgressHandler(every: Self.stepsPerLook) { [unowned self] in
        looks.wrappingAdd(1, ordering: .relaxed)
        return !isStopping.load(ordering: .relaxed)
      }
      result = .success(try connection.rows("PRAGMA \(pragma)(5)") { $0.text(at: 0) ?? "" })
    } catch {
      result = .failure(error)
    }
    outcome.withLock { $0 = result }
    end.signal()
  }

  private static let stepsPerLook: Int32 = 20_000

  var steps: Int { looks.load(ordering: .relaxed).multipliedReportingOverflow(by: Int(Self.stepsPerLook)).partialValue }

  func stop() { isStopping.store(true, ordering: .relaxed) }

  /// Waits at most that time; returns whether the work has ended.
  func wait(milliseconds: Int) -> Bool { end.wait(timeout: .now() + .milliseconds(milliseconds)) == .success }

  /// Returns the results after the work has ended.
  func answers() throws(SQLiteError) -> [String] {
    try outcome.withLock { $0 }.get()
  }
}
