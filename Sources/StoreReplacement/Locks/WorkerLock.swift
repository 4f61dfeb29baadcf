// One owner of a store among workers on several machines, by names alone: it does not need what NFSv4 and CephFS
// promise of locks, and compares no two clocks (docs/formats/worker-lock.md has the protocol and its proof).
//
// The lock is a folder beside the store with one empty file. The file's name is the lock's state. Every change of state
// renames that file from exactly the name that was seen to one that was never used before. A rename of a name that is
// gone fails, so of all workers that want to change one state exactly one succeeds, whatever they believe and however
// late their call arrives.

import Diagnostics
import DurableFiles
import PersistentStore
import Synchronization
import SystemPackage

extension HopdError.Code {
  /// Another worker has taken the lock over, or it could not be renewed.
  package static let workerLockLost = HopdError.Code("worker-lock-lost", exit: .unavailable, isRetryable: true)
}

/// A lock of this process on one store. It is safe to use from several threads.
package final class WorkerLock: Sendable {
  /// The result of an attempt to take a lock.
  package enum Attempt: Sendable {
    /// The lock is this process's.
    case taken(WorkerLock)
    /// Another worker has it.
    case held(LockEntry)
  }

  private struct State {
    /// The names that the file may have now: several after calls whose outcome is unknown.
    var names: [String]
    var isLost = false
  }

  /// The store.
  package let location: CanonicalStoreLocation
  /// Whether it was taken from a worker that stayed silent for its whole lease.
  package let isTakenOver: Bool
  private let holder: LockHolder
  private let since: Int64
  private let nonce: @Sendable () -> String
  private let files: any DurableFileSystem
  private let state: Mutex<State>

  private init(
    _ location: CanonicalStoreLocation, _ holder: LockHolder, _ entry: LockEntry,
    nonce: @escaping @Sendable () -> String,
    isTakenOver: Bool, files: any DurableFileSystem
  ) {
    (self.location, self.holder, self.nonce, self.isTakenOver) = (location, holder, nonce, isTakenOver)
    (since, self.files) = (entry.since ?? 0, files)
    state = Mutex(State(names: [entry.name]))
  }

  // MARK: Taking

  /// Takes the lock of the store at `location` where it is free, where its holder has provably ended, or where
  /// `mayTakeOver` returns true because the holder was silent for too long.
  package static func take(
    _ location: CanonicalStoreLocation, as holder: LockHolder, now: Int64, nonce: @escaping @Sendable () -> String,
    files: any DurableFileSystem, mayTakeOver: (LockEntry) throws -> Bool
  ) throws -> Attempt {
    // A round fails only because another worker made progress.
    var seen: LockEntry?
    for _ in 0..<4 {
      seen = try entry(of: location, files: files)
      guard let seen else {
        let own = LockEntry(holder, since: now, nonce: nonce())
        guard try make(location, own, files: files) else { continue }
        return .taken(
          WorkerLock(location, holder, own, nonce: nonce, isTakenOver: false, files: files))
      }
      let isGone = seen.isGone(seenFrom: holder.process)
      guard try isGone || mayTakeOver(seen) else { return .held(seen) }
      // What a process of this boot has begun is consistent as soon as the process is gone: recovery inspects it, and
      // may continue its staged store. A silent worker may still be doing anything; so may the one before it, if it
      // ended before its fence was complete.
      let fences = !isGone || seen.isFencing
      var own = LockEntry(holder, since: now, nonce: nonce(), isFencing: fences)
      guard try move(seen.name, to: own.name, of: location, files: files) else { continue }
      if fences {
        try fence(location, own, files: files)
        let fencing = own.name
        own = LockEntry(holder, since: now, nonce: nonce())
        guard try move(fencing, to: own.name, of: location, files: files) else { continue }
      }
      return .taken(WorkerLock(location, holder, own, nonce: nonce, isTakenOver: fences, files: files))
    }
    if let seen { return .held(seen) }
    throw HopdError(
      .lockedByOther, "other workers take and release the store's lock all the time",
      at: Place(store: location.database),
      hint: "try again")
  }

  /// The holder of a store's lock; nil where it is free.
  package static func entry(of location: CanonicalStoreLocation, files: any DurableFileSystem) throws -> LockEntry? {
    let folder = folder(of: location)
    let names: [FilePath.Component]
    do { names = try files.names(in: folder) } catch let error as HopdError where error.code == .notFound {
      return nil
    }
    if names.isEmpty { return nil }
    guard names.count == 1, let name = names.first, !name.string.hasPrefix(".") else {
      throw HopdError(
        .lockedByOther, "the folder of the store's lock has files that are no lock",
        at: Place(store: location.database, file: folder),
        hint: "if no worker has the store, remove \(folder.printable)")
    }
    return LockEntry(name: name.string)
  }

  /// Makes the lock complete under a unique name and renames it to its final name: a folder can replace no folder or an
  /// empty one, and no other. False where another worker was quicker.
  private static func make(
    _ location: CanonicalStoreLocation, _ entry: LockEntry, files: any DurableFileSystem
  ) throws -> Bool {
    let folder = folder(of: location)
    let draft = draft(of: location, entry)
    do {
      // Users who may make files beside the store may take its lock over.
      let mode = try files.status(location.directory)?.mode ?? 0o700
      try files.makeDirectory(draft, mode: mode & 0o777)
      try files.createUnsyncedFile(draft.appending(entry.name), [], mode: 0o600)
      try files.rename(draft, to: folder)
      return true
    } catch {
      // The reply to a rename may get lost; only this call has ever used the name.
      if (try? files.status(folder.appending(entry.name))) ?? nil != nil { return true }
      remove(draft, files: files)
      guard let error = error as? HopdError, [.alreadyExists, .notFound].contains(error.code) else { throw error }
      return false
    }
  }

  /// The one step that changes the holder of a lock, or when it was last seen. False where the lock is not in the state
  /// `old`.
  private static func move(
    _ old: String, to new: String, of location: CanonicalStoreLocation, files: any DurableFileSystem
  ) throws -> Bool {
    let folder = folder(of: location)
    do {
      try files.rename(folder.appending(old), to: folder.appending(new))
      return true
    } catch {
      if (try? files.status(folder.appending(new))) ?? nil != nil { return true }
      guard (error as? HopdError)?.code == .notFound else { throw error }
      return false
    }
  }

  /// Removes what the silent holder could still put in the store's place: a rename of a file that is gone fails,
  /// however late it arrives. Only then may the store be inspected.
  private static func fence(_ location: CanonicalStoreLocation, _ own: LockEntry, files: any DurableFileSystem) throws {
    // A client of a network file system may have an old list of the folder in its cache; a change of its own
    // invalidates it.
    let draft = draft(of: location, own)
    try files.makeDirectory(draft, mode: 0o700)
    try files.removeDirectory(draft)
    let names = try files.names(in: location.directory)
    for staged in StagingArea.leftovers(of: location, among: names).map(\.path) {
      for path in [staged] + StoreLocation(database: staged).sideFiles {
        do { try files.unlink(path) } catch let error as HopdError where error.code == .notFound {}
      }
    }
    let drafts = folder(of: location).lastComponent.map { $0.string + "-" } ?? ""
    for name in names where name.string.hasPrefix(drafts) {
      remove(location.directory.appending(name), files: files)
    }
    // A name that comes back after a power cut of the server would let the late rename through.
    try files.syncDirectory(location.directory)
  }

  /// Removes the draft of a lock, as far as it exists. A worker that is just making it tries again.
  private static func remove(_ draft: FilePath, files: any DurableFileSystem) {
    for name in (try? files.names(in: draft)) ?? [] { try? files.unlink(draft.appending(name)) }
    try? files.removeDirectory(draft)
  }

  // MARK: Holding

  /// Renews the lock, which proves that it is still this process's. False where another worker has taken it over. An
  /// error leaves this unknown until the next call.
  package func renew() throws -> Bool {
    try state.withLock { state in
      guard !state.isLost else { return false }
      let next = LockEntry(holder, since: since, nonce: nonce())
      for name in state.names.reversed() {
        do {
          guard try WorkerLock.move(name, to: next.name, of: location, files: files) else { continue }
          state.names = [next.name]
          return true
        } catch {
          // The call may still be carried out.
          if state.names.count < 64 { state.names.append(next.name) } else { state.isLost = true }
          throw error
        }
      }
      state.isLost = true
      return false
    }
  }

  /// Throws unless the lock is still this process's: right before a step that must not come too late.
  package func requireHeld() throws {
    guard try !renew() else { return }
    throw lost()
  }

  /// Whether the lock was found to be lost.
  package var isLost: Bool { state.withLock { $0.isLost } }

  /// From now on the lock counts as lost: it could not be renewed for too long.
  func giveUp() { state.withLock { $0.isLost = true } }

  /// The error for a lost lock.
  package func lost(cause: (any Error)? = nil) -> HopdError {
    HopdError(
      .workerLockLost, "the store's lock was lost: this worker did not renew it for a whole lease",
      at: Place(store: location.database), cause: cause,
      hint: "nothing was changed; the worker that has the lock migrates the store, or the next run does")
  }

  /// Releases the lock. What cannot be removed looks like the lock of a silent worker.
  package func release() {
    state.withLock { state in
      let folder = WorkerLock.folder(of: location)
      for name in state.names { try? files.unlink(folder.appending(name)) }
      try? files.removeDirectory(folder)
      state = State(names: [], isLost: true)
    }
  }

  // MARK: Of others

  /// Throws `.lockedByOther` where a worker holds the store's lock; removes the lock of one that is proven to have
  /// ended.
  package static func requireFree(_ location: CanonicalStoreLocation, files: any DurableFileSystem) throws {
    guard let entry = try entry(of: location, files: files) else { return }
    guard entry.isGone(seenFrom: .current()) else { throw refusal(entry, location) }
    if entry.isFencing { try fence(location, entry, files: files) }
    let folder = folder(of: location)
    try? files.unlink(folder.appending(entry.name))
    try? files.removeDirectory(folder)
  }

  /// The refusal to change a store that another worker has locked.
  static func refusal(_ entry: LockEntry, _ location: CanonicalStoreLocation) -> HopdError {
    HopdError(
      .lockedByOther, "the store is in the hands of \(entry.description)", at: Place(store: location.database),
      hint: "wait until it has finished; `hopctl work --lease` takes the lock of a worker over that is silent for a "
        + "lease. If that worker will never come back, remove \(folder(of: location).printable)")
  }

  /// The folder of a store's lock: a name that no watch and no scan takes for a store.
  package static func folder(of location: CanonicalStoreLocation) -> FilePath {
    location.directory.appending(".\(NameLabel.label(of: location.fileName)).hop-lock")
  }

  private static func draft(of location: CanonicalStoreLocation, _ entry: LockEntry) -> FilePath {
    let nonce = entry.name.prefix { $0 != "," }
    return location.directory.appending(".\(NameLabel.label(of: location.fileName)).hop-lock-\(nonce)")
  }
}
