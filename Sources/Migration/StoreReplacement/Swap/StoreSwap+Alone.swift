// No other program may have the old file open when another file takes its name. SQLite's locks do not show a program
// that has opened the store and waits for a lock: after the rename it would continue with the old file, use the new
// one's log, which it finds by path, as its own, and ruin both. A lease on the old file reveals such programs
// (fcntl(2), F_SETLEASE), and holds back new ones until the rename is made.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore

extension StoreSwap {
  /// How a store can be replaced safely: as chosen, otherwise by a rename, or in place where a rename is not safe
  /// because the system cannot report which programs have the file open. Throws `.cannotReplace` where the operator has
  /// chosen a rename that is not safe.
  package static func safeMode(_ chosen: ReplacementMode?, for store: LockedStore) throws -> ReplacementMode {
    guard chosen != .inPlace else { return .inPlace }
    guard let obstacle = FileLease.obstacle(store.identity, through: store.descriptor) else { return .rename }
    if chosen == .rename { throw renameIsUnsafe(store, obstacle) }
    return .inPlace
  }

  /// A program that has opened the store and waits for its lock would not be seen: its commits after a rename are lost.
  private static func renameIsUnsafe(_ store: LockedStore, _ obstacle: FileLease.Obstacle) -> HopdError {
    HopdError(
      .cannotReplace,
      "a rename could lose rows of a program that waits for the store: hopd cannot see who has it open, because "
        + "\(obstacle.reason)",
      at: Place(store: store.location.database),
      hint: "pass --replace in-place (hopd: remove `replace`, or set it to \"in-place\")"
        + (obstacle == .otherOwner
          ? ", or grant CAP_LEASE to the service (/usr/share/doc/hopd/stores.conf.example)" : ""))
  }

  /// Waits until no other program has the store's file open, and keeps it so; throws where the system cannot report
  /// that. The store is locked: programs that wait for it give up after a while, or it is busy.
  func holdAlone(_ store: LockedStore) throws -> FileLease? {
    guard asksForOpeners else { return nil }
    let end = ContinuousClock.now + patience
    while true {
      switch FileLease.take(store.identity, through: store.descriptor) {
      case .taken(let lease): return lease
      case .unavailable(let obstacle): throw StoreSwap.renameIsUnsafe(store, obstacle)
      case .isOpenElsewhere:
        guard ContinuousClock.now < end else { throw inUse(store) }
        keepAlive()
        usleep(20_000)
      }
    }
  }

  /// The last check before the rename: a program that opened the old file since the lease was taken has broken the
  /// lease. The swap waits until such a program closes the file, and takes a new lease: a short inspection by another
  /// program must not cost the whole migration.
  func stillAlone(_ lease: FileLease?, _ store: LockedStore) throws -> FileLease? {
    guard let lease, !lease.isWhole else { return lease }
    lease.giveBack()
    return try holdAlone(store)
  }

  /// A program has opened the old file in the instant between the last check and the rename. While the file stays
  /// locked, that program can do nothing but give up; after a while hopd continues all the same.
  func waitUntilClosed(_ store: LockedStore) {
    let end = ContinuousClock.now + patience * 3
    while ContinuousClock.now < end {
      guard case .isOpenElsewhere = FileLease.take(store.identity, through: store.descriptor) else { return }
      keepAlive()
      usleep(20_000)
    }
  }

  private func inUse(_ store: LockedStore) -> HopdError {
    HopdError(
      .storeBusy, "the store is open in another program, which would continue to use the old file",
      at: Place(store: store.location.database),
      hint: "close the programs that have it open (fuser -v FILE lists them); hopd retries automatically. "
        + "replace = \"in-place\" does not need them closed")
  }
}
