// The lock that a run shares with workers on other machines: taken before anything else, and checked first when a step
// fails.

import Diagnostics
import StoreReplacement

extension MigrationRun {
  /// Runs `body` with the store's lock where the request has `locks`, else where no worker has it. `onLoss` is called
  /// when the lock is lost.
  func withWorkerLock<Result>(
    _ onLoss: @escaping @Sendable () -> Void, _ body: () throws -> Result
  ) throws -> Result {
    stage = .lock
    guard let locks = request.locks else {
      let location: CanonicalStoreLocation?
      do { location = try storeLocation() } catch let error as HopdError where error.code == .notFound {
        location = nil  // the code that opens the store reports that it is missing
      }
      if let location { try WorkerLock.requireFree(location, files: files) }
      return try body()
    }
    let lock = try locks.take(storeLocation(), onLoss: onLoss)
    workerLock = lock
    defer { locks.release(lock) }
    do { return try body() } catch { throw blamingLostLock(error) }
  }

  /// The error of a step that failed because another worker has taken the store over: a file that it removed, a stop.
  func blamingLostLock(_ error: any Error) -> any Error {
    guard let workerLock, (error as? HopdError)?.code != .workerLockLost,
      (error as? HopdError)?.code != .replacementUnconfirmed
    else { return error }
    // Where that cannot be determined, the original error is reported.
    guard workerLock.isLost || (try? workerLock.renew()) == false else { return error }
    return workerLock.lost(cause: error)
  }
}
