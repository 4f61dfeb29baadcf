// The lock that a run shares with workers on other machines: taken before anything else, and the first suspect when a
// step fails.

import Diagnostics
import StoreReplacement

extension MigrationRun {
  /// Runs `body` with the store's lock where the request asks for one, else where no worker has it. `onLoss` is called
  /// when the lock is lost.
  func withWorkerLock<Result>(
    _ onLoss: @escaping @Sendable () -> Void, _ body: () throws -> Result
  ) throws -> Result {
    stage = .lock
    guard let locks = request.locks else {
      // A store that is not there is told by whoever looks for it.
      if let location = try? storeLocation() { try WorkerLock.requireFree(location, files: files) }
      return try body()
    }
    let lock = try locks.take(storeLocation(), onLoss: onLoss)
    workerLock = lock
    defer { locks.release(lock) }
    do { return try body() } catch { throw blamingLostLock(error) }
  }

  /// What failed because another worker has the store by now says so: a file that it took away, a stop.
  func blamingLostLock(_ error: any Error) -> any Error {
    guard let workerLock, (error as? HopdError)?.code != .workerLockLost,
      (error as? HopdError)?.code != .replacementUnconfirmed
    else { return error }
    // Where it cannot be told the error speaks for itself.
    guard workerLock.isLost || (try? workerLock.renew()) == false else { return error }
    return workerLock.lost(cause: error)
  }
}
