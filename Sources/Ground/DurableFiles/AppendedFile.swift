// A file that grows by whole lines. Each line is one write, so a killed program leaves at most the last one cut off,
// and the next program removes that part before it continues. After a power cut, pages that were not synced yet may be
// zeros, and the lines on them are lost.

import Diagnostics
import Glibc
import Synchronization
import SystemPackage

extension HopdError.Code {
  /// Another program appends to the file.
  package static let appendedFileInUse = HopdError.Code("file-in-use", exit: .unavailable, isRetryable: true)
  /// The file to continue has no lines of the expected kind.
  package static let otherKindOfFile = HopdError.Code("other-kind-of-file", exit: .cannotCreate)
}

/// Appends lines to a file, from any thread.
package final class AppendedFile: Sendable {
  private struct State {
    var lastSync = ContinuousClock.now
    var failure: HopdError?
  }

  /// The file.
  package let path: FilePath
  private let descriptor: Int32
  private let state = Mutex(State())

  /// Opens a file, or makes it, and removes half a line at its end. One program at a time may have it open. Each of its
  /// lines begins with `first` and ends with `last`: a file of another kind is refused and not changed.
  package init(path: FilePath, linesBeginWith first: UInt8, endWith last: UInt8) throws(HopdError) {
    self.path = path
    let place = Place(file: path)
    func failed(_ what: String) -> HopdError {
      let code = errno
      return HopdError(
        code == ENOENT ? .notFound : code == EACCES ? .noPermission : code == ENOSPC ? .noSpace : .inputOutput, what,
        at: place, cause: Errno(rawValue: code), hint: "pass a file in a writable directory")
    }
    let opened = path.withPlatformString { open($0, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0o644) }
    guard opened >= 0 else { throw failed("cannot open the file") }
    descriptor = opened
    guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      close(opened)
      throw HopdError(
        .appendedFileInUse, "another program writes to this file", at: place, cause: Errno(rawValue: code),
        hint: "pass a different file to each worker, or wait until the other one has finished")
    }
    do throws(HopdError) { try removeTornLine(beginningWith: first, endingWith: last) } catch {
      close(opened)
      throw error
    }
  }

  deinit {
    fdatasync(descriptor)
    // Unlocked explicitly, not only by closing: a program that is just being started has a copy of the descriptor for a
    // moment.
    _ = flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  private func removeTornLine(beginningWith first: UInt8, endingWith last: UInt8) throws(HopdError) {
    var info = stat()
    guard fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return }
    var end = Int64(info.st_size)
    var block = [UInt8](repeating: 0, count: 65_536)
    while end > 0 {
      let from = max(0, end - Int64(block.count))
      let count = block.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, Int(end - from), off_t(from)) }
      guard count == Int(end - from) else { break }
      if let last = block[..<count].lastIndex(of: UInt8(ascii: "\n")) {
        end = from + Int64(last) + 1
        break
      }
      end = from
    }
    let size = Int64(info.st_size)
    // Two power cuts in a row may leave a part of an older line at the end, because the file was cut and continued in
    // between. A whole line at the beginning is enough then.
    guard isLine(at: 0, upTo: size, beginningWith: first),
      isLine(at: end, upTo: size, beginningWith: first) || beginsWithWholeLine(from: first, to: last)
    else {
      throw HopdError(
        .otherKindOfFile, "there is a file of another kind under this name", at: Place(file: path),
        hint: "pass another file; this one was not changed")
    }
    guard end < size, ftruncate(descriptor, off_t(end)) != 0 else { return }
    throw HopdError(
      .inputOutput, "half a line at the end of the file cannot be removed", at: Place(file: path),
      cause: Errno(rawValue: errno))
  }

  private func beginsWithWholeLine(from first: UInt8, to last: UInt8) -> Bool {
    var block = [UInt8](repeating: 0, count: 65_536)
    let count = block.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
    guard count > 0, let end = block[..<count].firstIndex(of: UInt8(ascii: "\n")), end > 1 else { return false }
    return block[0] == first && block[end - 1] == last
  }

  /// Whether a line begins there, or lost ones were there: zeros up to the end of the file, or up to the rest of a line
  /// that another line or the end of the file follows.
  private func isLine(at start: Int64, upTo size: Int64, beginningWith first: UInt8) -> Bool {
    var block = [UInt8](repeating: 0, count: 65_536)
    var (place, isLost) = (start, false)
    while place < size {
      let count = block.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, off_t(place)) }
      guard count > 0 else { return false }
      guard let begin = block[..<count].firstIndex(where: { $0 != 0 }) else {
        (place, isLost) = (place + Int64(count), true)
        continue
      }
      if block[begin] == first { return true }
      guard isLost || begin > 0 else { return false }
      // No line is longer than a block by much; half a line at the end of the file has no newline.
      let rest = block[begin..<count].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? count
      return rest == count || block[rest] == first || block[rest] == 0
    }
    return true
  }

  /// Appends a line, which ends with a newline. A failed write is thrown here and at every later call.
  package func append(_ bytes: [UInt8]) throws(HopdError) {
    try state.withLock { state throws(HopdError) in
      if let failure = state.failure { throw failure }
      var done = 0
      while done < bytes.count {
        let count = bytes.withUnsafeBytes {
          write(descriptor, $0.baseAddress?.advanced(by: done), $0.count - done)
        }
        if count < 0 {
          if errno == EINTR { continue }
          let code = errno
          let error = HopdError(
            code == ENOSPC ? .noSpace : .inputOutput, "the file cannot be written", at: Place(file: path),
            cause: Errno(rawValue: code), hint: "free space; the same command continues where this one stopped")
          state.failure = error
          throw error
        }
        done += count
      }
      // A power cut costs at most the lines of a second; the stores themselves hold the truth.
      let now = ContinuousClock.now
      if now - state.lastSync > .seconds(1) {
        try sync(&state)
        state.lastSync = now
      }
    }
  }

  /// Creates all lines durable: some file systems report only here that there was no room for them.
  package func finish() throws(HopdError) {
    try state.withLock { state throws(HopdError) in
      if let failure = state.failure { throw failure }
      try sync(&state)
    }
  }

  private func sync(_ state: inout State) throws(HopdError) {
    // Not every file can be synced: a pipe or /dev/null returns EINVAL.
    guard fdatasync(descriptor) != 0, errno != EINVAL, errno != EROFS else { return }
    let code = Errno(rawValue: errno)
    let error = HopdError(
      [.noSpace, .diskQuotaExceeded].contains(code) ? .noSpace : .inputOutput, "the file cannot be made durable",
      at: Place(file: path), cause: code, hint: "free space or check the kernel log, then write the file again")
    state.failure = error
    throw error
  }
}
