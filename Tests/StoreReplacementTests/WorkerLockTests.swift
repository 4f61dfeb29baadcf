// The lock of a store for workers on several machines, on the real file system: who gets it, when, and what is left.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import Synchronization
import SystemPackage
import Testing

@testable import StoreReplacement

@Suite struct WorkerLockTests {
  /// A number that several threads read and one sets.
  private final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    init(_ value: Value) { self.value = Mutex(value) }
    var now: Value {
      get { value.withLock { $0 } }
      set { value.withLock { $0 = newValue } }
    }
  }

  /// A worker of another boot, with a clock that the test sets.
  private struct Worker {
    let time = Shared(Duration.zero)
    let locks: WorkerLocks

    init(_ number: Int32, boot: String = "other", files: any DurableFileSystem = LinuxFileSystem()) {
      let process =
        boot == "own"
        ? ProcessIdentity.current() : ProcessIdentity(boot: "\(boot)\(number)", space: 1, process: number, started: 1)
      let count = Shared(0)
      let nonce: @Sendable () -> String = {
        count.now += 1
        return "\(number)x\(count.now)"
      }
      locks = WorkerLocks(
        lease: .seconds(60),
        holder: LockHolder(process: process, host: "node \(number), rack=1", job: "a\(number)", lease: 60_000),
        files: files, clock: { [time] in time.now }, date: { 1_795_000_000 }, nonce: nonce)
    }

    func wait(_ duration: Duration) { time.now += duration }
  }

  private func refusal(_ body: () throws -> Void) -> HopdError? {
    do {
      try body()
      return nil
    } catch { return error as? HopdError }
  }

  @Test func oneWorkerHasTheStoreAndTheOthersSayWho() throws {
    let world = try TestWorld(.rollback)
    let first = Worker(1)
    let lock = try first.locks.take(world.location, renewing: false)
    let error = refusal { _ = try Worker(2).locks.take(world.location, renewing: false) }
    #expect(error?.code == .lockedByOther && error?.code.isRetryable == true)
    #expect(
      error?.message == "the store is in the hands of a worker on node1rack1, process 1, run a1, since "
        + "2026-11-18T11:06:40Z")
    // Programs without such locks keep away, too.
    #expect(refusal { try WorkerLock.requireFree(world.location, files: world.plain) }?.code == .lockedByOther)
    first.locks.release(lock)
    #expect(try world.plain.names(in: world.stores).map(\.string) == [world.location.fileName])
    try WorkerLock.requireFree(world.location, files: world.plain)
    first.locks.release(try first.locks.take(world.location, renewing: false))
  }

  @Test func aSilentWorkerIsPushedAsideAfterItsLease() throws {
    let world = try TestWorld(.rollback)
    let (first, second) = (Worker(1), Worker(2))
    let old = try first.locks.take(world.location, renewing: false)
    let area = StagingArea(location: world.location, job: "1", files: world.plain)
    let staged = try area.create(hop: nil)
    #expect(refusal { _ = try second.locks.take(world.location, renewing: false) } != nil)
    #expect(second.locks.hasUnsettledSight())
    second.wait(.seconds(59))
    #expect(refusal { _ = try second.locks.take(world.location, renewing: false) } != nil)
    // A sign of life begins the lease anew.
    #expect(try old.renew())
    #expect(!second.locks.hasUnsettledSight())
    second.wait(.seconds(1))
    #expect(refusal { _ = try second.locks.take(world.location, renewing: false) } != nil)
    second.wait(.seconds(60))
    let lock = try second.locks.take(world.location, renewing: false)
    #expect(lock.isTakenOver)
    // What the silent worker could still put in place is gone, and it learns that it has lost.
    #expect(refusal { try world.plain.rename(staged, to: world.location.database) }?.code == .notFound)
    #expect(refusal { try old.requireHeld() }?.code == .workerLockLost)
    #expect(old.isLost)
    first.locks.release(old)
    try lock.requireHeld()
    second.locks.release(lock)
  }

  @Test func theLockOfAnEndedProcessOfThisBootIsFreeAtOnce() throws {
    let world = try TestWorld(.rollback)
    let own = ProcessIdentity.current()
    #expect(!own.boot.isEmpty && own.space != 0 && own.started != 0)
    #expect(!own.isGone(seenFrom: own))
    // A number that was given again, and a process that is not there.
    let ended = [
      ProcessIdentity(boot: own.boot, space: own.space, process: own.process, started: own.started + 1),
      ProcessIdentity(boot: own.boot, space: own.space, process: 4_194_304, started: 7),
    ]
    let unknown = [
      ProcessIdentity(boot: "other", space: own.space, process: 4_194_304, started: 7),
      ProcessIdentity(boot: own.boot, space: own.space + 1, process: 4_194_304, started: 7),
      ProcessIdentity(boot: "", space: 0, process: 4_194_304, started: 7),
    ]
    let me = Worker(9, boot: "own")
    for process in ended + unknown {
      #expect(process.isGone(seenFrom: own) == ended.contains(process))
      let holder = LockHolder(process: process, host: "h", job: "j", lease: 1000)
      let attempt = try WorkerLock.take(
        world.location, as: holder, now: 0, nonce: { "n\(process.process)" }, files: world.plain,
        mayTakeOver: { _ in false })
      guard case .taken(let theirs) = attempt else { throw Errno.resourceBusy }
      let staged = try StagingArea(location: world.location, job: "1", files: world.plain).create(hop: nil)
      do {
        let lock = try me.locks.take(world.location, renewing: false)
        #expect(ended.contains(process) && !lock.isTakenOver)
        // Recovery may go on with it.
        #expect(try world.plain.status(staged) != nil)
        me.locks.release(lock)
      } catch let error as HopdError {
        #expect(unknown.contains(process) && error.code == .lockedByOther)
      }
      theirs.release()
    }
  }

  /// A taker that ends before its fence is up leaves a lock whose next holder puts the fence up.
  @Test func aFenceThatFailedIsPutUpByTheNextHolder() throws {
    let world = try TestWorld(.rollback)
    let silent = Worker(1)
    let old = try silent.locks.take(world.location, renewing: false)
    let staged = try StagingArea(location: world.location, job: "1", files: world.plain).create(hop: nil)
    let own = ProcessIdentity.current()
    let ended = ProcessIdentity(boot: own.boot, space: own.space, process: own.process, started: own.started + 1)
    let failing = HookedFileSystem(before: { call, path in
      if call == "mkdir" { throw HopdError(errno: ENOSPC, "no space", at: path) }
    })
    #expect(throws: HopdError.self) {
      _ = try WorkerLock.take(
        world.location, as: LockHolder(process: ended, host: "h", job: "j", lease: 1000), now: 0, nonce: { "taker" },
        files: failing, mayTakeOver: { _ in true })
    }
    #expect(try world.plain.status(staged) != nil)
    // Programs without such locks put it up, too.
    let copy = try TestWorld(.rollback)
    let folder = WorkerLock.folder(of: copy.location)
    try copy.plain.makeDirectory(folder, mode: 0o700)
    let entry = try #require(try WorkerLock.entry(of: world.location, files: world.plain))
    #expect(entry.isFencing && entry.isGone(seenFrom: own))
    try copy.plain.createFile(folder.appending(entry.name), [], mode: 0o600)
    let other = try StagingArea(location: copy.location, job: "1", files: copy.plain).create(hop: nil)
    try WorkerLock.requireFree(copy.location, files: copy.plain)
    #expect(try copy.plain.status(other) == nil && copy.plain.status(folder) == nil)

    let next = Worker(9, boot: "own")
    let lock = try next.locks.take(world.location, renewing: false)
    #expect(lock.isTakenOver && refusal { try old.requireHeld() }?.code == .workerLockLost)
    #expect(try world.plain.status(staged) == nil, "the silent worker could still replace the store")
    #expect(try WorkerLock.entry(of: world.location, files: world.plain)?.isFencing == false)
    try lock.requireHeld()
    next.locks.release(lock)
  }

  @Test func callsWhoseAnswersGetLostAreFoundOut() throws {
    let world = try TestWorld(.rollback)
    let fails = Shared(false)
    let files = HookedFileSystem(after: { call, path in
      guard call == "rename", fails.now else { return }
      throw HopdError(.inputOutput, "the answer is lost", at: Place(file: path))
    })
    let worker = Worker(1, files: files)
    fails.now = true
    let lock = try worker.locks.take(world.location, renewing: false)
    #expect(try lock.renew())
    worker.locks.release(lock)
    #expect(try WorkerLock.entry(of: world.location, files: world.plain) == nil)
  }

  @Test func aLockThatCannotBeRenewedForALeaseIsLost() throws {
    let world = try TestWorld(.rollback)
    let fails = Shared(false)
    let files = HookedFileSystem(before: { call, path in
      guard call == "rename" || call == "status", fails.now else { return }
      throw HopdError(.inputOutput, "the server is away", at: Place(file: path))
    })
    let worker = Worker(1, files: files)
    let lost = Shared(0)
    let lock = try worker.locks.take(world.location) { lost.now += 1 }
    worker.locks.end()
    fails.now = true
    worker.wait(.seconds(30))
    worker.locks.renewAll()
    #expect(!lock.isLost)
    worker.wait(.seconds(30))
    worker.locks.renewAll()
    #expect(lock.isLost && lost.now == 1)
    #expect(refusal { try lock.requireHeld() }?.code == .workerLockLost)
  }

  @Test func filesOfOthersInTheFolderAreNoLock() throws {
    let world = try TestWorld(.rollback)
    let folder = WorkerLock.folder(of: world.location)
    try world.plain.makeDirectory(folder, mode: 0o755)
    // An empty folder is what a release leaves that was cut off.
    let worker = Worker(1)
    worker.locks.release(try worker.locks.take(world.location, renewing: false))
    try world.plain.makeDirectory(folder, mode: 0o755)
    try world.plain.createFile(folder.appending(".DS_Store"), [], mode: 0o644)
    let error = refusal { _ = try worker.locks.take(world.location, renewing: false) }
    #expect(error?.code == .lockedByOther && error?.hint?.contains(folder.string) == true)
    // A name of a newer hopd is respected, and taken over when it is silent.
    try world.plain.unlink(folder.appending(".DS_Store"))
    try world.plain.createFile(folder.appending("2:whatever"), [], mode: 0o644)
    #expect(refusal { _ = try worker.locks.take(world.location, renewing: false) } != nil)
    worker.wait(.seconds(60))
    worker.locks.release(try worker.locks.take(world.location, renewing: false))
  }
}
