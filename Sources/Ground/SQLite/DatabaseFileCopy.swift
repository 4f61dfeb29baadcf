// Copies the bytes of a database with the kernel, below SQLite: file systems that can (xfs, btrfs) share the blocks,
// others copy them without two page caches. Separate from `DatabaseCopy`, which copies page by page where this cannot:
// a log with content, a file that SQLite's own VFS has not opened, another file system.

import CLinux
import CSQLite
import Glibc

/// Copies the file of one connection over that of another one, whose earlier reads do not matter.
struct DatabaseFileCopy {
  let source: Connection
  let schema: String
  let target: Connection
  /// Bytes between two calls of `progress`.
  private static let step = 4 << 20

  /// Replaces the target's file by the database of the source, in rollback mode; returns false if the kernel cannot,
  /// and then the target is empty.
  ///
  /// Between two steps `progress` receives the pages that are done and all pages; if it returns false, the copy stops
  /// with an interruption. Page 1 is written last, so an interrupted copy is not a database.
  func run(progress: (_ done: Int64, _ all: Int64) -> Bool) throws(SQLiteError) -> Bool {
    let from = clinux_store_vfs_descriptor(source.handle, schema)
    let to = clinux_store_vfs_descriptor(target.handle, "main")
    guard from >= 0, to >= 0 else { return false }
    let isHeld = source.isInTransaction
    // The first read takes the lock: from then on the size is final.
    if !isHeld { try source.execute("BEGIN") }
    defer { if !isHeld, source.isInTransaction { try? source.execute("ROLLBACK") } }
    let prefix = "PRAGMA \(SQLiteIdentifier.quoted(schema))."
    guard let pages = try source.integer("\(prefix)page_count"), let size = try source.integer("\(prefix)page_size"),
      pages > 0, size > 0, try isAllInTheFile(prefix)
    else { return false }
    let bytes = pages.multipliedReportingOverflow(by: size)
    guard !bytes.overflow, Self.size(of: from) >= bytes.partialValue else { return false }
    if clinux_share_blocks(from, to) != 0 {
      // An empty file is not truncated, so that space allocated for the target stays allocated.
      try cut(to, after: 0)
      guard try copy(size..<bytes.partialValue, from, to, { progress($0 / size, pages) }) else {
        try cut(to, after: 0)
        return false
      }
    }
    try copyFirstPage(Int(size), from, to)
    // Bytes after the last page are not part of the database.
    try cut(to, after: bytes.partialValue)
    return true
  }

  /// Gives the target's file a size, unless it has it.
  private func cut(_ to: Int32, after size: Int64) throws(SQLiteError) {
    guard Self.size(of: to) != size else { return }
    let code = clinux_store_vfs_cut(target.handle, "main", size)
    guard code == SQLITE_OK else { throw SQLiteError(extendedCode: code, message: "the copy cannot be cut off") }
  }

  /// Whether there is no log, or one without content.
  private func isAllInTheFile(_ prefix: String) throws(SQLiteError) -> Bool {
    guard try source.text("\(prefix)journal_mode") == "wal" else { return true }
    return clinux_store_vfs_log_bytes(source.handle, schema) == 0
  }

  private static func size(of descriptor: Int32) -> Int64 {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int64(status.st_size) : -1
  }

  /// Copies a range; false if the kernel cannot copy between these two files, or the file ends earlier.
  private func copy(
    _ part: Range<Int64>, _ from: Int32, _ to: Int32, _ progress: (Int64) -> Bool
  ) throws(SQLiteError) -> Bool {
    var place = part.lowerBound
    while place < part.upperBound {
      let count = clinux_copy_range(from, to, place, min(Self.step, Int(part.upperBound - place)))
      switch count {
      case 1...: place += Int64(count)
      case 0: return false
      default:
        if errno == EINTR { continue }
        if [EXDEV, EINVAL, ENOSYS, EOPNOTSUPP, EPERM].contains(errno) { return false }
        throw failure()
      }
      guard place == part.upperBound || progress(place) else {
        throw SQLiteError(extendedCode: SQLITE_INTERRUPT, message: "interrupted")
      }
    }
    return true
  }

  /// Copies page 1, with the numbers of rollback mode in bytes 18 and 19 of its header [SQLite's fileformat2.html].
  private func copyFirstPage(_ size: Int, _ from: Int32, _ to: Int32) throws(SQLiteError) {
    var page = [UInt8](repeating: 0, count: size)
    errno = EIO  // // for a file that ends early, which sets no errno
    guard pread(from, &page, size, 0) == size else { throw failure() }
    page.replaceSubrange(18..<20, with: [1, 1])
    errno = ENOSPC  // // for a disk that takes only a part
    guard pwrite(to, page, size, 0) == size else { throw failure() }
  }

  /// The error of the last call, in the form of SQLite's own errors.
  private func failure() -> SQLiteError {
    let code = errno
    let isFull = [ENOSPC, EDQUOT, EFBIG].contains(code)
    return SQLiteError(
      extendedCode: isFull ? SQLITE_FULL : SQLITE_IOERR,
      message: "copy the file: \(String(cString: strerror(code)))\(code == EFBIG ? " (ulimit -f limits it)" : "")")
  }
}
