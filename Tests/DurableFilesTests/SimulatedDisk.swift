// A disk in memory that remembers what a power cut may lose: content of files until the file is synced, names in
// directories until the directory is synced. `afterPowerCut` builds what could be found at the next start.

import Diagnostics
import DurableFiles
import Synchronization
import SystemPackage

/// A disk in memory, with a call after which the power fails.
final class SimulatedDisk: DurableFileSystem {
  /// What of the unsynced changes survives.
  enum Survival: CaseIterable { case nothing, everything, namesOnly, contentOnly }

  struct PowerCut: Error {}

  struct File {
    var content: [UInt8]
    var synced: [UInt8]
    var mode: UInt32
  }

  struct State {
    var files: [Int: File] = [:]
    var names: [FilePath: Int] = [:]
    var syncedNames: [FilePath: Int] = [:]
    var directories: Set<FilePath> = ["/"]
    var next = 1
    var callsLeft: Int?
    var calls = 0
  }

  private let state: Mutex<State>

  init(_ state: State = State(), cutBefore call: Int? = nil) {
    var state = state
    state.callsLeft = call
    state.calls = 0
    self.state = Mutex(state)
  }

  var snapshot: State { state.withLock { $0 } }
  var calls: Int { state.withLock { $0.calls } }

  func afterPowerCut(_ survival: Survival) -> SimulatedDisk {
    var left = state.withLock { $0 }
    if survival == .nothing || survival == .contentOnly { left.names = left.syncedNames }
    left.syncedNames = left.names
    for (number, file) in left.files {
      let content = survival == .nothing || survival == .namesOnly ? file.synced : file.content
      left.files[number] = File(content: content, synced: content, mode: file.mode)
    }
    return SimulatedDisk(left)
  }

  /// A changing call; the power fails before the one that was asked for, and stays off.
  private func change<Result>(_ body: (inout State) throws -> Result) throws -> Result {
    try state.withLock { state in
      state.calls += 1
      if let left = state.callsLeft {
        if left <= 1 { throw PowerCut() }
        state.callsLeft = left - 1
      }
      return try body(&state)
    }
  }

  private func look<Result>(_ body: (State) throws -> Result) rethrows -> Result {
    try state.withLock { try body($0) }
  }

  private static func missing(_ path: FilePath) -> HopdError {
    HopdError(.notFound, "nothing there", at: Place(file: path), cause: Errno.noSuchFileOrDirectory)
  }

  func canonical(_ path: FilePath) throws -> FilePath { path }

  func status(_ path: FilePath) throws -> FileStatus? {
    look { state in
      let number = state.names[path]
      guard number != nil || state.directories.contains(path) else { return nil }
      let file = number.flatMap { state.files[$0] }
      return FileStatus(
        identity: FileIdentity(device: 1, inode: UInt64(number ?? 0)), kind: number == nil ? .directory : .regular,
        size: Int64(file?.content.count ?? 0), links: UInt64(state.names.values.count { $0 == number }), owner: 0,
        group: 0, mode: file?.mode ?? 0o755, modified: 0, isMountPoint: false)
    }
  }

  func names(in directory: FilePath) throws -> [FilePath.Component] {
    look { state in
      (state.names.keys.map { $0 } + state.directories).filter {
        $0.removingLastComponent() == directory && $0 != directory
      }
      .compactMap(\.lastComponent).sorted { $0.string < $1.string }
    }
  }

  func read(_ path: FilePath, limit: Int) throws -> [UInt8] {
    try look { state in
      guard let file = state.names[path].flatMap({ state.files[$0] }) else { throw Self.missing(path) }
      return file.content
    }
  }

  func attributes(of path: FilePath) throws -> FileAttributes { FileAttributes(owner: 0, group: 0, mode: 0o600) }
  func freeBytes(at path: FilePath) throws -> Int64 { .max }
  func checkWritable(_ path: FilePath) throws {}
  func isOpenElsewhere(_ path: FilePath) throws -> Bool? { nil }
  func setAttributes(_ attributes: FileAttributes, of path: FilePath) throws { try change { _ in } }

  func createFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws {
    // Two calls: a power cut between write and sync leaves an unsynced file.
    let number = try change { state in
      guard state.names[path] == nil else {
        throw HopdError(.alreadyExists, "exists", at: Place(file: path), cause: Errno.fileExists)
      }
      let number = state.next
      state.next += 1
      state.files[number] = File(content: bytes, synced: [], mode: mode)
      state.names[path] = number
      return number
    }
    try change { $0.files[number]?.synced = bytes }
  }

  func copyFile(from source: FilePath, to destination: FilePath) throws {
    try createFile(destination, try read(source, limit: .max), mode: 0o600)
  }

  func makeDirectory(_ path: FilePath, mode: UInt32) throws { try change { _ = $0.directories.insert(path) } }

  func link(_ existing: FilePath, as new: FilePath) throws {
    try change { state in
      guard let number = state.names[existing] else { throw Self.missing(existing) }
      state.names[new] = number
    }
  }

  func rename(_ old: FilePath, to new: FilePath) throws {
    try change { state in
      guard let number = state.names.removeValue(forKey: old) else { throw Self.missing(old) }
      state.names[new] = number
    }
  }

  func renameNoReplace(_ old: FilePath, to new: FilePath) throws { try rename(old, to: new) }

  func unlink(_ path: FilePath) throws {
    try change { state in
      guard state.names.removeValue(forKey: path) != nil else { throw Self.missing(path) }
    }
  }

  func removeDirectory(_ path: FilePath) throws { try change { _ = $0.directories.remove(path) } }

  func syncFile(_ path: FilePath) throws {
    try change { state in
      guard let number = state.names[path], let content = state.files[number]?.content else { throw Self.missing(path) }
      state.files[number]?.synced = content
    }
  }

  func syncDirectory(_ path: FilePath) throws {
    try change { state in
      state.syncedNames = state.syncedNames.filter { $0.key.removingLastComponent() != path }
      for (name, number) in state.names where name.removingLastComponent() == path { state.syncedNames[name] = number }
    }
  }
}
