// The simulated disk as the file system of hopd's replacement: each call consists of the same single steps as on Linux,
// so that a fault or a power cut can occur between a write and its sync. Other paths go to the real file system.

import CSimulatedDisk
import Diagnostics
import DurableFiles
import Glibc
import Synchronization
import SystemPackage

/// A disk in memory below `root`; SQLite uses it too. It belongs to one task.
package final class SimulatedDisk: DurableFileSystem, @unchecked Sendable {
  /// Where the disk is mounted.
  package let root: FilePath
  let disk: OpaquePointer
  private let prefix: [CChar]
  private let real = LinuxFileSystem()
  private let isMounted = Mutex(false)

  private static let devices = Atomic<UInt32>(1)

  /// Makes an empty disk.
  package convenience init() {
    self.init(sd_make(Self.devices.wrappingAdd(1, ordering: .relaxed).oldValue))
  }

  init(_ disk: OpaquePointer) {
    self.disk = disk
    let name = "/simulated-disk-\(sd_device(disk))"
    root = FilePath(name)
    prefix = Array(name.utf8CString)
  }

  deinit {
    unmount()
    sd_free(disk)
  }

  /// Returns the same files, all of them safe, with an empty log.
  package func copy() -> SimulatedDisk { SimulatedDisk(sd_copy(disk)) }

  /// Runs `body` with the disk mounted. Only one of a disk and its images can be mounted at a time, and SQLite must
  /// have closed everything at the end.
  package func mounted<Result>(_ body: () throws -> Result) throws -> Result {
    guard sd_mount(disk) == 0 else {
      throw HopdError(.internalError, "another image of this disk is mounted", at: Place(file: root))
    }
    isMounted.withLock { $0 = true }
    defer { unmount() }
    return try body()
  }

  private func unmount() {
    let wasMounted = isMounted.withLock { isMounted in
      defer { isMounted = false }
      return isMounted
    }
    guard wasMounted else { return }
    if sd_unmount(disk) != 0 { fatalError("SQLite still has files of \(root) open") }
  }

  // MARK: Faults and the log

  /// The kinds of calls that count for a fault.
  package struct Calls: OptionSet, Sendable {
    /// As in C.
    package let rawValue: Int32
    /// From C.
    package init(rawValue: Int32) { self.rawValue = rawValue }
    /// Changes of names and contents.
    package static let changes = Calls(rawValue: Int32(SD_CHANGES))
    /// Syncs of files and directories.
    package static let syncs = Calls(rawValue: Int32(SD_SYNCS))
    /// All calls that only read, including opening and locking.
    package static let reads = Calls(rawValue: Int32(SD_READS))
    /// All of them.
    package static let all: Calls = [.changes, .syncs, .reads]
  }

  /// Makes the call with that number fail, counted from 1 and from now, and with `isSticky` all after it.
  package func fail(at call: Int?, isSticky: Bool = false, errno: Int32 = EIO, _ calls: Calls = .all) {
    sd_fail_at(disk, Int64(call ?? 0), isSticky ? 1 : 0, errno, calls.rawValue)
  }

  /// Makes one sync, counted from 1 and from now, report success without syncing.
  package func skipSync(_ number: Int) { sd_skip_sync(disk, Int64(number)) }

  /// Ends all faults.
  package func heal() {
    sd_fail_at(disk, 0, 0, 0, 0)
    sd_skip_sync(disk, 0)
  }

  /// Calls of the given kinds since `fail`.
  package var calls: Int { Int(sd_calls(disk)) }
  /// Syncs since `skipSync`.
  package var syncs: Int { Int(sd_syncs(disk)) }
  /// The last call that failed or was skipped.
  package var lastFault: String { String(cString: sd_last_fault(disk)) }
  /// The last time that a file was opened while SQLite had a lock on it, which drops the lock on a real disk.
  package var lostLock: String? { sd_lost_locks(disk) > 0 ? String(cString: sd_lost_lock(disk)) : nil }
  /// The number of operations so far, which identifies moments of `PowerCuts`.
  package var moment: Int { Int(sd_moment(disk)) }
  /// Describes a moment's operation.
  package func operation(_ moment: Int) -> String {
    var buffer = [CChar](repeating: 0, count: 512)
    return String(cString: sd_operation(disk, Int64(moment), &buffer, buffer.count))
  }
  /// Forgets the log; everything is safe from here on.
  package func settle() { sd_settle(disk) }
  /// Equal for indistinguishable disks.
  package var digest: UInt64 { sd_digest(disk) }

  // MARK: DurableFileSystem

  /// Compares bytes: FilePath checks a path anew at every step in debug builds, and every file call uses this.
  private func isMine(_ path: FilePath) -> Bool {
    path.withPlatformString { text in
      prefix.withUnsafeBufferPointer { prefix in
        guard let start = prefix.baseAddress, strncmp(text, start, prefix.count - 1) == 0 else { return false }
        return text[prefix.count - 1] == 0 || text[prefix.count - 1] == CChar(bitPattern: UInt8(ascii: "/"))
      }
    }
  }

  private func check(_ code: Int32, _ doing: String, _ path: FilePath) throws {
    if code != 0 { throw HopdError(errno: code, doing, at: path) }
  }

  private func inspect(_ path: FilePath) throws -> sd_status? {
    var found = sd_status()
    let code = sd_stat(disk, path.text, &found)
    if code == ENOENT { return nil }
    try check(code, "read the status", path)
    return found
  }

  package func canonical(_ path: FilePath) throws -> FilePath {
    guard isMine(path) else { return try real.canonical(path) }
    guard try inspect(path) != nil else { throw HopdError(errno: ENOENT, "resolve the path", at: path) }
    return path.lexicallyNormalized()
  }

  package func status(_ path: FilePath) throws -> FileStatus? {
    guard isMine(path) else { return try real.status(path) }
    guard let found = try inspect(path) else { return nil }
    return FileStatus(
      identity: FileIdentity(device: UInt64(sd_device(disk)) | 1 << 40, inode: UInt64(found.inode)),
      kind: found.is_directory != 0 ? .directory : .regular, size: found.size,
      links: found.is_directory != 0 ? 2 : UInt64(found.links), owner: geteuid(), group: getegid(), mode: found.mode,
      modified: found.modified, isMountPoint: false)
  }

  package func names(in directory: FilePath) throws -> [FilePath.Component] {
    guard isMine(directory) else { return try real.names(in: directory) }
    var buffer = [CChar](repeating: 0, count: 65_536)
    var length = 0
    try check(sd_list(disk, directory.text, &buffer, buffer.count, &length), "list the directory", directory)
    return buffer.prefix(length).split(separator: 0).compactMap { FilePath.Component(platformString: Array($0) + [0]) }
      .sorted { $0.string < $1.string }
  }

  package func read(_ path: FilePath, limit: Int) throws -> [UInt8] {
    // A power cut changes it for every process.
    if path == "/proc/sys/kernel/random/boot_id" { return Array("boot-\(sd_boot(disk))\n".utf8) }
    guard isMine(path) else { return try real.read(path, limit: limit) }
    var size = 0
    var content = [UInt8](repeating: 0, count: min(limit, 1 << 20))
    try check(sd_read(disk, path.text, &content, content.count, &size), "read", path)
    guard size <= limit, size <= content.count else {
      throw HopdError(.unsuitableFile, "the file is larger than \(limit) bytes", at: Place(file: path))
    }
    return Array(content.prefix(size))
  }

  package func attributes(of path: FilePath) throws -> FileAttributes {
    guard let found = try status(path) else { throw HopdError(errno: ENOENT, "read the attributes", at: path) }
    return FileAttributes(owner: found.owner, group: found.group, mode: found.mode)
  }

  package func freeBytes(at path: FilePath) throws -> Int64 {
    guard try status(path) != nil else { throw HopdError(errno: ENOENT, "ask for free space", at: path) }
    return 1 << 40
  }

  package func checkWritable(_ path: FilePath) throws {
    guard try status(path) != nil else { throw HopdError(errno: ENOENT, "write here", at: path) }
  }

  package func isOpenElsewhere(_ path: FilePath, ifNot body: () throws -> Void) throws -> Bool? {
    guard let found = try inspect(path) else { throw HopdError(errno: ENOENT, "open", at: path) }
    if found.is_open == 0 { try body() }
    return found.is_open != 0
  }

  package func createFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws {
    try create(path, bytes, mode, isSynced: true)
  }

  package func createUnsyncedFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws {
    try create(path, bytes, mode, isSynced: false)
  }

  private func create(_ path: FilePath, _ bytes: [UInt8], _ mode: UInt32, isSynced: Bool) throws {
    try check(sd_create(disk, path.text, mode), "create", path)
    do {
      if !bytes.isEmpty { try check(sd_write(disk, path.text, bytes, bytes.count, 0), "write", path) }
      if isSynced { try check(sd_sync_file(disk, path.text), "sync", path) }
    } catch {
      _ = sd_unlink(disk, path.text)
      throw error
    }
  }

  private static let copyStep = 1 << 16

  package func copyFile(from source: FilePath, to destination: FilePath) throws {
    let copy = try copyUnsyncedFile(from: source, to: destination)
    do { try copy.sync() } catch {
      _ = sd_unlink(disk, destination.text)
      throw error
    }
  }

  package func copyUnsyncedFile(from source: FilePath, to destination: FilePath) throws -> UnsyncedFile {
    let bytes = try read(source, limit: 1 << 20)
    guard let found = try inspect(source), found.is_directory == 0 else {
      throw HopdError(.unsuitableFile, "only regular files are copied", at: Place(file: source))
    }
    try create(destination, [], 0o600, isSynced: false)
    do {
      // In parts, like a real copy: a watcher sees signs of life, and may stop it between two parts.
      for start in stride(from: 0, to: bytes.count, by: Self.copyStep) {
        let part = Array(bytes[start..<min(start + Self.copyStep, bytes.count)])
        try check(sd_write(disk, destination.text, part, part.count, Int64(start)), "write", destination)
        try SignsOfLife.show(at: destination)
      }
      try check(sd_set_mode(disk, destination.text, found.mode), "set the mode", destination)
    } catch {
      _ = sd_unlink(disk, destination.text)
      throw error
    }
    return UnsyncedFile { [self] in try check(sd_sync_file(disk, destination.text), "sync", destination) }
  }

  package func setAttributes(_ attributes: FileAttributes, of path: FilePath) throws {
    guard attributes.owner == geteuid(), attributes.group == getegid(), attributes.extended.isEmpty else {
      throw HopdError(errno: EPERM, "set the attributes", at: path)
    }
    try check(sd_set_mode(disk, path.text, attributes.mode), "set the mode", path)
  }

  package func makeDirectory(_ path: FilePath, mode: UInt32) throws {
    try check(sd_make_directory(disk, path.text, mode), "make the directory", path)
  }

  package func link(_ existing: FilePath, as new: FilePath) throws {
    try check(sd_link(disk, existing.text, new.text), "link", new)
  }

  package func rename(_ old: FilePath, to new: FilePath) throws {
    try check(sd_rename(disk, old.text, new.text, 1), "rename", new)
  }

  package func renameNoReplace(_ old: FilePath, to new: FilePath) throws {
    try check(sd_rename(disk, old.text, new.text, 0), "rename", new)
  }

  package func unlink(_ path: FilePath) throws { try check(sd_unlink(disk, path.text), "remove", path) }

  package func removeDirectory(_ path: FilePath) throws {
    try check(sd_remove_directory(disk, path.text), "remove the directory", path)
  }

  package func syncFile(_ path: FilePath) throws { try check(sd_sync_file(disk, path.text), "sync", path) }

  package func syncDirectory(_ path: FilePath) throws {
    try check(sd_sync_directory(disk, path.text), "sync the directory", path)
  }
}

extension FilePath {
  /// The path as C reads it.
  fileprivate var text: [CChar] {
    withPlatformString { Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1)) }
  }
}
