// Nobody may have the old file open when another takes its name. SQLite's locks do not show a program that has opened the store
// and waits for a lock: after the rename it would go on with the old file, take the new one's log, which it finds by path, for its
// own, and ruin both. A lease on the old file tells of such programs (fcntl(2), F_SETLEASE), and holds back new ones until the
// rename is made.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore

extension StoreSwap {
  /// Waits until nobody else has the store's file open, and keeps it so; nil where the system cannot tell, as for files of
  /// another owner. The store is locked: programs that wait for it give up after a while, or it is busy.
  func holdAlone(_ held: HeldStore) throws -> FileLease? {
    guard asksForOpeners else { return nil }
    let end = ContinuousClock.now + patience
    while true {
      switch FileLease.take(held.identity) {
      case .taken(let lease): return lease
      case .unknown: return nil
      case .isOpenElsewhere:
        guard ContinuousClock.now < end else { throw inUse(held) }
        keepAlive()
        usleep(20_000)
      }
    }
  }

  /// The last look before the rename: has somebody tried to open the old file since?
  func requireAlone(_ lease: FileLease?, _ held: HeldStore) throws {
    if let lease, !lease.isWhole { throw inUse(held) }
  }

  /// Somebody has opened the old file in the instant between the last look and the rename. While it stays locked, that program can
  /// do nothing but give up; after a while hopd goes on all the same.
  func waitUntilClosed(_ held: HeldStore) {
    let end = ContinuousClock.now + patience * 3
    while ContinuousClock.now < end {
      guard case .isOpenElsewhere = FileLease.take(held.identity) else { return }
      keepAlive()
      usleep(20_000)
    }
  }

  private func inUse(_ held: HeldStore) -> HopdError {
    HopdError(
      .storeBusy, "the store is open in another program, which would go on with the old file",
      at: Place(store: held.location.database),
      hint: "close the programs that have it open (fuser -v FILE names them); hopd tries again by itself. "
        + "replace = \"in-place\" does not need them closed")
  }
}
