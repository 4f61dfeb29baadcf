// Every file call whose order matters for crash safety, behind one protocol. The code that swaps stores decides *in
// which order* files change; this one defines *how* each single change is made. They are apart so that a test can fail,
// record or crash each call, one after the other.

import Diagnostics
import Glibc
import SystemPackage

/// The file calls of which the replacement of a store consists.
///
/// Paths are absolute and canonical (`canonical(_:)`); no call follows a symbolic link in any component. Every call
/// throws `HopdError` with a code made from errno, the path as place, and the `Errno` as cause.
///
/// What root makes in another user's directory belongs to the owner of that directory: the daemon's user must be able
/// to use what `hopctl` makes for root beside a store, and in the state directory. Each call that makes a name sets
/// that owner.
package protocol DurableFileSystem: Sendable {
  /// The absolute path without symbolic links, `.` or `..`; the file must exist.
  func canonical(_ path: FilePath) throws -> FilePath
  /// Opens the directory at a canonical path so that the path means it from now on (`PinnedDirectory`); nil for a disk
  /// without descriptors.
  func pin(_ directory: FilePath) throws -> PinnedDirectory?
  /// The status of the file at `path`, or nil where there is none. The file is not opened.
  func status(_ path: FilePath) throws -> FileStatus?
  /// Names in a directory, without `.` and `..`, sorted by bytes.
  func names(in directory: FilePath) throws -> [FilePath.Component]
  /// The content of a small file; more than `limit` bytes is an error.
  func read(_ path: FilePath, limit: Int) throws -> [UInt8]
  /// Whether two files hold the same bytes.
  ///
  /// Opens and closes both: never call it for a database this process holds SQLite locks on.
  func hasSameContent(_ first: FilePath, _ second: FilePath) throws -> Bool
  /// Owner, group, mode and extended attributes, read without opening the file.
  func attributes(of path: FilePath) throws -> FileAttributes
  /// Bytes an unprivileged process may still write on the file system of `path`.
  func freeBytes(at path: FilePath) throws -> Int64
  /// Throws `.noPermission` when this process may not write to `path`.
  func checkWritable(_ path: FilePath) throws
  /// Whether another descriptor of this file exists anywhere; nil where the system cannot report that. Where none
  /// exists, runs `body` while programs that open the file have to wait.
  ///
  /// Opens and closes the file: never call it for a database this process holds SQLite locks on.
  func isOpenElsewhere(_ path: FilePath, ifNot body: () throws -> Void) throws -> Bool?
  /// A process that has a lock on this file, as SQLite's connections have; nil where there is none or the system cannot
  /// report it.
  ///
  /// Opens and closes the file: never call it for a database this process holds SQLite locks on.
  func holder(of path: FilePath) throws -> FileHolder?

  /// Creates a file that does not exist yet, with this content, and syncs it. The name is not yet safe: sync the
  /// directory.
  func createFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws
  /// The same without the sync: for scratch, and for what the caller syncs when it is complete.
  func createUnsyncedFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws
  /// Reserves disk space for the first `bytes` bytes of a file, whose size stays. False where the file system cannot;
  /// throws `.noSpace` where there is not that much.
  func reserve(_ bytes: Int64, for path: FilePath) throws -> Bool
  /// Releases the space reserved beyond the end of a file.
  func giveBackReserve(of path: FilePath) throws
  /// Copies content and mode into a file that does not exist yet, and syncs it. A copy of root's own file stays root's,
  /// as the directory's owner may not be allowed to read it. Holes stay holes; throws `.noSpace` before it writes where
  /// there is less space than the data take; shows `SignsOfLife` during the copy.
  ///
  /// Opens and closes both: never call it for a database this process holds SQLite locks on.
  func copyFile(from source: FilePath, to destination: FilePath) throws
  /// The same without the sync: the copy is durable when the result is synced. `FileCopies` makes many of them.
  func copyUnsyncedFile(from source: FilePath, to destination: FilePath) throws -> UnsyncedFile
  /// Gives a file exactly these attributes and reads them back; anything that cannot be set is an error.
  func setAttributes(_ attributes: FileAttributes, of path: FilePath) throws
  /// Creates a directory.
  func makeDirectory(_ path: FilePath, mode: UInt32) throws
  /// A second name for a file.
  func link(_ existing: FilePath, as new: FilePath) throws
  /// Renames, replacing what is there.
  func rename(_ old: FilePath, to new: FilePath) throws
  /// Renames; an existing file under the new name is an error.
  func renameNoReplace(_ old: FilePath, to new: FilePath) throws
  /// Removes a name of a file.
  func unlink(_ path: FilePath) throws
  /// Removes an empty directory.
  func removeDirectory(_ path: FilePath) throws
  /// Creates the content and attributes of a file durable. A failure is final: the caller gives up and never retries.
  func syncFile(_ path: FilePath) throws
  /// Creates the names in a directory durable. A failure is final as with `syncFile`.
  func syncDirectory(_ path: FilePath) throws
}

/// A file that is written and not yet durable.
package struct UnsyncedFile {
  private let body: () throws -> Void

  /// A file that `body` makes durable.
  package init(_ body: @escaping () throws -> Void) { self.body = body }

  /// Makes content and attributes durable. A failure is final: the caller gives up and never retries.
  package func sync() throws { try body() }
}

extension DurableFileSystem {
  /// Whether another descriptor of this file exists anywhere; nil where the system cannot report that.
  package func isOpenElsewhere(_ path: FilePath) throws -> Bool? { try isOpenElsewhere(path, ifNot: {}) }

  /// Writes a whole small file so that after a crash it is the old one or the new one: temporary file, sync, rename,
  /// sync of the directory. `temporarySuffix` must be unique among writers of the same file.
  package func writeDurably(
    _ bytes: [UInt8], to path: FilePath, mode: UInt32 = 0o600, temporarySuffix: String = ".new"
  ) throws {
    guard let name = path.lastComponent else {
      throw HopdError(.internalError, "a file to be written has no name", at: Place(file: path))
    }
    let directory = path.removingLastComponent()
    let temporary = directory.appending(name.string + temporarySuffix)
    try unlinkIfPresent(temporary)  // left over from a crash
    do {
      try createFile(temporary, bytes, mode: mode)
      try rename(temporary, to: path)
    } catch {
      _ = try? unlinkIfPresent(temporary)
      throw error
    }
    try syncDirectory(directory)
  }

  /// For disks without descriptors.
  package func pin(_ directory: FilePath) throws -> PinnedDirectory? { nil }

  /// For file systems that cannot reserve space.
  package func reserve(_ bytes: Int64, for path: FilePath) throws -> Bool { false }

  /// For file systems that cannot reserve space.
  package func giveBackReserve(of path: FilePath) throws {}

  /// For file systems that do not distinguish the two.
  package func createUnsyncedFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws {
    try createFile(path, bytes, mode: mode)
  }

  /// For file systems that do not distinguish the two.
  package func copyUnsyncedFile(from source: FilePath, to destination: FilePath) throws -> UnsyncedFile {
    try copyFile(from: source, to: destination)
    return UnsyncedFile {}
  }

  /// Removes a name if it exists; returns whether it did.
  @discardableResult
  package func unlinkIfPresent(_ path: FilePath) throws -> Bool {
    guard try status(path) != nil else { return false }
    try unlink(path)
    return true
  }

  /// Creates a directory unless it exists, and syncs its parent when it was made.
  package func ensureDirectory(_ path: FilePath, mode: UInt32 = 0o700) throws {
    if let found = try status(path) {
      guard found.kind == .directory else {
        throw HopdError(.unsuitableFile, "a directory is needed here, but this is \(found.kind)", at: Place(file: path))
      }
      return
    }
    try makeDirectory(path, mode: mode)
    try syncDirectory(path.removingLastComponent())
  }

  /// Removes a directory, if it exists, with everything in it; what is more than `deepest` levels below stays, and so
  /// do the directories above it.
  package func removeTree(_ directory: FilePath, deepest: Int) throws {
    guard deepest > 0, try status(directory)?.kind == .directory else { return }
    for name in try names(in: directory) {
      let path = directory.appending(name)
      if try status(path)?.kind == .directory { try removeTree(path, deepest: deepest - 1) } else { try unlink(path) }
    }
    try removeDirectory(directory)
  }

  /// Gives `destination` the owner, group, mode, ACLs and extended attributes of `source`.
  package func copyAttributes(from source: FilePath, to destination: FilePath) throws {
    try setAttributes(attributes(of: source), of: destination)
  }

  /// The kernel's boot id: what was written without sync may only be trusted while the id stays the same. Empty where
  /// /proc/sys is hidden (systemd's ProcSubset=pid): then nothing is trusted.
  package func bootIdentifier() throws -> String {
    let path: FilePath = "/proc/sys/kernel/random/boot_id"
    guard (try? status(path.removingLastComponent())) ?? nil != nil else { return "" }
    let bytes = try read(path, limit: 256)
    return String(decoding: bytes.filter { $0 > 0x20 && $0 < 0x7f }, as: UTF8.self)
  }
}
