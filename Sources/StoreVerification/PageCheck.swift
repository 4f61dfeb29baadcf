// SQLite's own look at every page of a file, in a thread and over a connection of its own: it asks nothing of those who
// work beside it (docs/decisions/0022, 0153). A staged store is opened a second time; of a user's store the thread
// reads through the file that its holder has open.

import Dispatch
import Glibc
import SQLite
import Synchronization
import SystemPackage

/// A check of a file's pages that continues beside its caller, who must `finish` or `cancel` it.
package final class PageCheck {
  private let work: Work
  private var thread: pthread_t?

  /// Smaller files are checked sooner than a thread has begun.
  private static let smallestFile: Int64 = 4 << 20

  /// Begins to check a file; nil where it is small, or no thread can be had: then the caller checks by himself.
  convenience init?(_ path: FilePath, pragma: String) {
    var status = stat()
    guard path.withPlatformString({ lstat($0, &status) }) == 0 else { return nil }
    self.init(bytes: Int64(status.st_size), pragma: pragma) { () throws(SQLiteError) in
      try Connection(path: path, access: .readOnly)
    }
  }

  /// Begins to check the file of a schema of `connection`, which must stay open until the check has ended; nobody may
  /// write to the file meanwhile, and its log must be empty. Nil where the file is small, no second thread can be had,
  /// or there is no second processor for it: then the caller checks by himself.
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

  /// Steps of SQLite's program that were made so far: they go along with the rows and entries of indexes looked at.
  var steps: Int { work.steps }

  /// What SQLite answers. `keepAlive` is called while it is waited for, and stops the check by an answer of false.
  package func finish(keepAlive: () -> Bool) throws(SQLiteError) -> [String] {
    while !work.wait(milliseconds: 100) {
      if !keepAlive() { work.stop() }
    }
    join()
    return try work.answers()
  }

  /// Stops the check and waits for its end, wherever it is.
  package func cancel() {
    work.stop()
    join()
  }

  private func join() {
    if let thread { pthread_join(thread, nil) }
    thread = nil
  }
}

/// What both threads see.
private final class Work: Sendable {
  typealias Opening = @Sendable () throws(SQLiteError) -> Connection

  private let open: Opening
  private let pragma: String
  private let isStopping = Atomic<Bool>(false)
  private let looks = Atomic<Int>(0)
  /// 2 is SQLITE_INTERNAL: nobody asks before there is an answer.
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

  /// Did the work end within that time?
  func wait(milliseconds: Int) -> Bool { end.wait(timeout: .now() + .milliseconds(milliseconds)) == .success }

  /// What came of it, once it has ended.
  func answers() throws(SQLiteError) -> [String] {
    try outcome.withLock { $0 }.get()
  }
}
