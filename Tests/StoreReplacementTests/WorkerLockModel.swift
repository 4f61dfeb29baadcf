// Workers on several machines and what they share, as a world whose every state can be visited. The workers run the
// real code of the locks: it is run from its start with the results it has had so far, until it needs one more.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage
import Testing

@testable import StoreReplacement

/// A call that a worker makes to the world.
enum WorldCall: Hashable {
  case isThere(String)
  case names(String)
  case make(folder: String)
  case create(String)
  case rename(String, to: String)
  case unlink(String)
  case remove(folder: String)
  case sync, clock
  /// Reads the store; begins a staged store made from that one; completes it.
  case look
  case stage(String, from: Int)
  case fill(String)

  /// May it be carried out after its caller has died?
  var changesTheDisk: Bool {
    switch self {
    case .isThere, .names, .sync, .clock, .look: false
    default: true
    }
  }
}

extension WorldCall {
  /// Does nothing that another worker does depend on it, but for a draft that it sweeps?
  var isPrivate: Bool {
    switch self {
    case .sync, .fill: true
    case .make(let path), .create(let path), .remove(let path): path.contains(".hop-lock-")
    case .unlink(let path): path.contains(".tmp-")
    default: false
    }
  }
}

/// The result of a call.
enum WorldAnswer: Hashable {
  case done
  case isThere(Bool)
  case names([String])
  case number(Int)
  /// There is nothing; there is something; the network has lost the answer.
  case missing, occupied, lost
}

/// The disk that the workers share: a folder with one store on a file server.
struct WorldDisk: Hashable {
  enum Content: Hashable {
    /// The store, and how many times it was replaced.
    case store(Int)
    /// A staged store: which store it was made from, and is it complete?
    case staged(from: Int, isWhole: Bool)
    /// The file of a lock: who made it or renamed it last, and when.
    case lock(worker: Int, at: Int)
  }

  static let store = "/d/s"
  var folders: Set<String> = ["/d"]
  var files: [String: Content] = [WorldDisk.store: .store(0)]

  private static func parent(_ path: String) -> String { path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "" }

  private func children(_ folder: String) -> [String] {
    let all = Set(files.keys).union(folders).filter { Self.parent($0) == folder }
    return all.map { String($0.dropFirst(folder.count + 1)) }.sorted()
  }

  /// Carries a call out. The second result describes a violation that must never happen.
  mutating func make(_ call: WorldCall, by worker: Int, at time: Int) -> (WorldAnswer, wrong: String?) {
    switch call {
    case .isThere(let path): return (.isThere(files[path] != nil || folders.contains(path)), nil)
    case .names(let folder): return (folders.contains(folder) ? .names(children(folder)) : .missing, nil)
    case .sync: return (.done, nil)
    case .clock: return (.number(time), nil)
    case .look:
      guard case .store(let count)? = files[Self.store] else { return (.missing, nil) }
      return (.number(count), nil)
    case .make(let folder):
      guard folders.insert(folder).inserted else { return (.occupied, nil) }
      return (.done, nil)
    case .create(let path):
      guard folders.contains(Self.parent(path)) else { return (.missing, nil) }
      guard files[path] == nil else { return (.occupied, nil) }
      files[path] = .lock(worker: worker, at: time)
      return (.done, nil)
    case .stage(let path, let count):
      files[path] = .staged(from: count, isWhole: false)
      return (.done, nil)
    case .fill(let path):
      // A file without a name can be written all the same.
      if case .staged(let count, _)? = files[path] { files[path] = .staged(from: count, isWhole: true) }
      return (.done, nil)
    case .unlink(let path): return (files.removeValue(forKey: path) == nil ? .missing : .done, nil)
    case .remove(let folder):
      guard folders.contains(folder) else { return (.missing, nil) }
      guard children(folder).isEmpty else { return (.occupied, nil) }
      folders.remove(folder)
      return (.done, nil)
    case .rename(let old, let new): return rename(old, new, worker, time)
    }
  }

  private mutating func rename(_ old: String, _ new: String, _ worker: Int, _ time: Int) -> (WorldAnswer, String?) {
    if folders.contains(old) {
      guard children(new).isEmpty else { return (.occupied, nil) }
      for name in children(old) { files[new + "/" + name] = files.removeValue(forKey: old + "/" + name) }
      folders.remove(old)
      folders.insert(new)
      return (.done, nil)
    }
    guard let content = files[old], folders.contains(Self.parent(new)) else { return (.missing, nil) }
    var wrong: String?
    files[old] = nil
    switch content {
    case .store: wrong = "the store was renamed"
    case .staged(let count, let isWhole):
      guard case .store(let now)? = files[new] else { break }
      if !isWhole { wrong = "half a store was put in place" }
      if count != now { wrong = "a store that another worker has migrated was replaced" }
      files[new] = .store(now + 1)
    case .lock(let other, let born):
      if other != worker, time - born < 1 { wrong = "a lock was taken from a worker that was not silent" }
      files[new] = .lock(worker: worker, at: time)
    }
    return (.done, wrong)
  }
}

/// A rule of the protocol that the model can leave out.
enum OmittedRule: String, CaseIterable {
  case none
  /// Staged stores of a silent worker stay.
  case fence
  /// A worker replaces the store without another check of its lock.
  case ownershipCheck
  /// All states of all locks have one name.
  case nonce
}

/// Stops the code at the first call that has no answer yet.
private struct NoAnswerYet: Error {}

/// The file system of one worker, which replays the results of its past.
final class RecalledFileSystem: DurableFileSystem, @unchecked Sendable {
  private let answers: [WorldAnswer]
  private let omitted: OmittedRule
  private var next = 0
  /// The call that has no answer yet.
  private(set) var pending: WorldCall?

  init(_ answers: [WorldAnswer], _ omitted: OmittedRule) { (self.answers, self.omitted) = (answers, omitted) }

  @discardableResult
  func make(_ call: WorldCall) throws -> WorldAnswer {
    guard pending == nil, next < answers.count else {
      pending = pending ?? call
      throw NoAnswerYet()
    }
    defer { next += 1 }
    switch answers[next] {
    case .missing: throw HopdError(.notFound, "missing")
    case .occupied: throw HopdError(.alreadyExists, "occupied")
    case .lost: throw HopdError(.inputOutput, "lost")
    case let answer: return answer
    }
  }

  func clock() throws -> Duration {
    guard case .number(let seconds) = try make(.clock) else { return .zero }
    return .seconds(seconds)
  }

  func canonical(_ path: FilePath) throws -> FilePath { path }
  func status(_ path: FilePath) throws -> FileStatus? {
    let status = FileStatus(
      identity: FileIdentity(device: 1, inode: 1), kind: .directory, size: 0, links: 1, owner: 0, group: 0, mode: 0o755,
      modified: 0, isMountPoint: false)
    if path.string == "/d" { return status }
    return try make(.isThere(path.string)) == .isThere(true) ? status : nil
  }
  func names(in directory: FilePath) throws -> [FilePath.Component] {
    guard case .names(let names) = try make(.names(directory.string)) else { return [] }
    return names.compactMap { FilePath.Component($0) }
  }
  func createFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws { try make(.create(path.string)) }
  func makeDirectory(_ path: FilePath, mode: UInt32) throws { try make(.make(folder: path.string)) }
  func rename(_ old: FilePath, to new: FilePath) throws { try make(.rename(old.string, to: new.string)) }
  func unlink(_ path: FilePath) throws {
    if omitted == .fence, path.string.contains(".tmp") { return }
    try make(.unlink(path.string))
  }
  func removeDirectory(_ path: FilePath) throws { try make(.remove(folder: path.string)) }
  func syncDirectory(_ path: FilePath) throws { try make(.sync) }

  // Nothing of this is a lock's.
  private var never: HopdError { HopdError(.internalError, "not in this world") }
  func read(_ path: FilePath, limit: Int) throws -> [UInt8] { throw never }
  func hasSameContent(_ first: FilePath, _ second: FilePath) throws -> Bool { throw never }
  func attributes(of path: FilePath) throws -> FileAttributes { throw never }
  func freeBytes(at path: FilePath) throws -> Int64 { throw never }
  func checkWritable(_ path: FilePath) throws { throw never }
  func isOpenElsewhere(_ path: FilePath, ifNot body: () throws -> Void) throws -> Bool? { throw never }
  func copyFile(from source: FilePath, to destination: FilePath) throws { throw never }
  func setAttributes(_ attributes: FileAttributes, of path: FilePath) throws { throw never }
  func link(_ existing: FilePath, as new: FilePath) throws { throw never }
  func renameNoReplace(_ old: FilePath, to new: FilePath) throws { throw never }
  func syncFile(_ path: FilePath) throws { throw never }
}

/// The next step of a worker: a call, or the end.
enum WorkerStep: Hashable {
  case call(WorldCall)
  case ended(WorkerEnd)
}

/// How a worker's work on the store ended.
enum WorkerEnd: String, Hashable { case migrated, current, waiting, failed }

/// A worker: a function of the results that it has had.
struct ModelWorker {
  let number: Int
  let attempts: Int
  let omitted: OmittedRule

  func step(after answers: [WorldAnswer]) -> WorkerStep {
    let files = RecalledFileSystem(answers, omitted)
    let end = work(files)
    return files.pending.map { .call($0) } ?? .ended(end)
  }

  private func work(_ files: RecalledFileSystem) -> WorkerEnd {
    let omitsNonce = omitted == .nonce
    let counter = Counter()
    let holder = LockHolder(
      process: ProcessIdentity(boot: "", space: 0, process: omitsNonce ? 0 : Int32(number), started: 0),
      host: "", job: "", lease: 1000)
    let locks = WorkerLocks(
      lease: .seconds(1), holder: holder, files: files, clock: { try files.clock() }, date: { 0 },
      nonce: { [number] in omitsNonce ? "n" : "\(number)n\(counter.next())" })
    let location = CanonicalStoreLocation(recorded: FilePath(WorldDisk.store))
    for _ in 0..<attempts {
      do {
        let lock = try locks.take(location, renewing: false)
        defer { locks.release(lock) }
        return try migrate(location, lock, files)
      } catch let error as HopdError where error.code == .lockedByOther {
        continue
      } catch {
        return .failed
      }
    }
    return .waiting
  }

  /// The steps of a migration as the engine makes them, as far as others can see them.
  private func migrate(
    _ location: CanonicalStoreLocation, _ lock: WorkerLock, _ files: RecalledFileSystem
  ) throws -> WorkerEnd {
    guard case .number(let count) = try files.make(.look) else { return .failed }
    guard count == 0 else { return .current }
    let staged = StagingArea(location: location, job: "\(number)", files: files).path(hop: nil)
    do {
      // The thread that renews runs meanwhile.
      if omitted != .ownershipCheck, try !lock.renew() { throw lock.lost() }
      try files.make(.stage(staged.string, from: count))
      try files.make(.fill(staged.string))
      if omitted != .ownershipCheck { try lock.requireHeld() }
      try files.rename(staged, to: location.database)
      return .migrated
    } catch {
      _ = try? files.unlinkIfPresent(staged)
      throw error
    }
  }

  private final class Counter: @unchecked Sendable {
    private var count = 0
    func next() -> Int {
      count += 1
      return count
    }
  }
}
