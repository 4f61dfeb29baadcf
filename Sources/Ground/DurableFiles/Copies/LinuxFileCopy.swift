// Copies of files of any size: blocks are shared where the file system can, holes stay holes, only data need space, and
// `SignsOfLife` is shown during the copy.

import CLinux
import Diagnostics
import Glibc
import SystemPackage

extension LinuxFileSystem {
  /// Bytes between two calls of `SignsOfLife`.
  static let copyStep = 4 << 20
  /// Bytes that are written out at a time, so that the sync at the end has little left to do.
  static let writeOutStep: Int64 = 64 << 20

  package func copyFile(from source: FilePath, to destination: FilePath) throws {
    let copy = try copyUnsyncedFile(from: source, to: destination)
    do { try copy.sync() } catch {
      try? unlink(destination)
      throw error
    }
  }

  package func copyUnsyncedFile(from source: FilePath, to destination: FilePath) throws -> UnsyncedFile {
    let from = try open(source, "read", O_RDONLY | O_NONBLOCK)
    guard let found = try status(source), found.kind == .regular else {
      throw HopdError(.unsuitableFile, "only regular files are copied", at: Place(file: source))
    }
    let to = try open(destination, "create", O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    do {
      // Blocks that cannot be shared are copied.
      if clinux_share_blocks(from.number, to.number) != 0 {
        try requireSpace(for: found, at: destination)
        var copy = FileCopy(from: from.number, to: to.number, source: source, destination: destination)
        try copy.copyParts(size: found.size)
      }
      // Before the mode: a change of the owner clears the set-id bits.
      if found.owner != 0 { try within(destination) { parent, _ in try adopt(to.number, in: parent, destination) } }
      try call("set the mode", at: destination) { fchmod(to.number, found.mode) }
    } catch {
      try? unlink(destination)
      throw error
    }
    // Errors are ignored here: the sync reports them.
    _ = clinux_start_write_back(to.number)
    let open = OpenFile(to)
    return UnsyncedFile { try call("sync", at: destination) { fsync(open.descriptor.number) } }
  }

  /// Throws where there is less space than the file's data take. Holes take none.
  private func requireSpace(for file: FileStatus, at destination: FilePath) throws {
    let needed = min(file.size, file.allocated)
    let free = try freeBytes(at: destination)
    guard free < needed else { return }
    throw HopdError(
      .noSpace, "the copy of a file needs \(needed) bytes, and \(free) are free", at: Place(file: destination),
      cause: Errno.noSpace, hint: "free space on the disk of \(destination.removingLastComponent().printable)")
  }
}

/// Keeps a file open for as long as the value lives.
private final class OpenFile {
  let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

/// One copy under way.
private struct FileCopy {
  let from: Int32
  let to: Int32
  let source: FilePath
  let destination: FilePath
  /// Whether the kernel copies between these two files; found by trying.
  var kernelCopies = true
  /// The end of the data written so far, and of those written out.
  var end: Int64 = 0
  var writtenOut: Int64 = 0

  /// Copies the parts of the file that are not holes, then the data that arrived after `size` meanwhile, also where the
  /// size is not known (/proc).
  mutating func copyParts(size: Int64) throws {
    var place: Int64 = 0
    while place < size, let data = try nextData(place, size) {
      let hole = clinux_next_hole(from, data)
      let stop = hole > data ? min(hole, size) : size
      guard try copy(data, upTo: stop) == stop else { break }  // the file has become shorter
      place = stop
      try SignsOfLife.show(at: destination)
    }
    _ = try copy(max(size, end), upTo: .max)
    // Only the size shows a hole at the end. It is read again, because the file may have become shorter.
    var found = stat()
    try call("read the size", at: source) { fstat(from, &found) }
    if end < Int64(found.st_size) { try call("set the size", at: destination) { ftruncate(to, found.st_size) } }
  }

  /// The start of the next data; nil where only a hole is left.
  private func nextData(_ place: Int64, _ size: Int64) throws -> Int64? {
    let found = clinux_next_data(from, place)
    if found >= 0 { return found < size ? found : nil }
    // A file system that cannot report holes has none.
    return errno == ENXIO ? nil : place
  }

  /// Copies from `start` to `stop` or to the end of the file; returns where it ended.
  private mutating func copy(_ start: Int64, upTo stop: Int64) throws -> Int64 {
    var place = start
    while place < stop {
      let length = Int(min(Int64(LinuxFileSystem.copyStep), stop - place))
      let count = try step(place, length)
      if count == 0 { break }
      let (next, overflow) = place.addingReportingOverflow(Int64(count))
      guard !overflow else { break }
      place = next
      end = max(end, place)
      try writeOut()
      try SignsOfLife.show(at: destination)
    }
    return place
  }

  private mutating func step(_ place: Int64, _ length: Int) throws -> Int {
    if kernelCopies {
      do {
        let count = try call("copy into", at: destination) { clinux_copy_range(from, to, place, length) }
        if count > 0 { return count }
        // Some file systems return 0 for data they cannot copy; only reading shows whether this is the end.
      } catch let error as HopdError where FileCopy.isRefusal(error.errno) {
        kernelCopies = false
      }
    }
    return try readAndWrite(place, length)
  }

  /// Between some file systems the kernel does not copy.
  private static func isRefusal(_ errno: Errno?) -> Bool {
    switch errno {
    case .invalidArgument, .improperLink, .notSupported, .noFunction, .badFileDescriptor: true
    default: false
    }
  }

  private func readAndWrite(_ place: Int64, _ length: Int) throws -> Int {
    var buffer = [UInt8](repeating: 0, count: min(length, 1 << 20))
    let count = try call("read", at: source) { pread(from, &buffer, buffer.count, off_t(place)) }
    var done = 0
    while done < count {
      done += try call("write", at: destination) {
        buffer.withUnsafeBytes { bytes in
          let rest = UnsafeRawBufferPointer(rebasing: bytes[done..<count])
          return pwrite(to, rest.baseAddress, rest.count, off_t(place + Int64(done)))
        }
      }
    }
    return count
  }

  /// Writes the data to the disk, part by part. A failure is one of the disk, and final as that of a sync.
  private mutating func writeOut() throws {
    guard end - writtenOut >= LinuxFileSystem.writeOutStep else { return }
    let start = writtenOut
    writtenOut = end
    do {
      try call("sync", at: destination) { clinux_write_out(to, start, end - start) }
    } catch let error as HopdError where FileCopy.isRefusal(error.errno) || error.errno == .illegalSeek {
      // A file system that cannot write parts of a file leaves it all to the sync.
    }
  }
}
