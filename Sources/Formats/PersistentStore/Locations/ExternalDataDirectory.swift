// The external files that references name. A store comes from strangers, and so does its external directory: names are
// looked up below one descriptor, no link is followed, only plain files are read, and never the store itself under a
// second name (closing that would drop this process's locks on it), nor a file of another user under a second name
// (the depositor may not be able to read it, and hopd is).

import CLinux
import Diagnostics
import Glibc
import SystemPackage

/// What exists under the name of an external file.
package enum ExternalFileStatus: Sendable, Hashable {
  /// A plain file of this many bytes.
  case file(bytes: Int64)
  /// No file.
  case missing
  /// Not a plain file, in words: "a symbolic link".
  case unsuitable(String)
}

/// The `_EXTERNAL_DATA` directory of one store, open for reading.
package final class ExternalDataDirectory {
  private enum State {
    case open(Int32)
    case absent
    case unsuitable(String)
  }

  /// The directory's path.
  package let path: FilePath
  private let location: StoreLocation
  private let state: State
  /// The store's own files, by device and inode.
  private let guarded: Set<[UInt64]>

  /// Opens the directory of a store; if it is missing, or not a directory, the lookups of its files report that. Throws
  /// `.inputOutput` if its state cannot be determined: files that only this attempt cannot find must not count as
  /// missing.
  package init(of location: StoreLocation) throws(HopdError) {
    self.location = location
    path = location.externalDataDirectory
    state = try ExternalDataDirectory.open(location)
    guarded = Set(
      ([location.database] + location.sideFiles).compactMap { file in
        file.linkStatus().map { [UInt64($0.st_dev), UInt64($0.st_ino)] }
      })
  }

  deinit { if case .open(let descriptor) = state { close(descriptor) } }

  /// Whether the directory exists.
  package var isThere: Bool { if case .open = state { true } else { false } }

  /// Returns what exists under a name, without opening it.
  package func status(of name: ExternalFileName) -> ExternalFileStatus {
    switch state {
    case .absent: return .missing
    case .unsuitable(let what): return .unsuitable(what)
    case .open(let directory):
      var found = clinux_file_status()
      guard clinux_status_at(directory, name.text, &found) == 0 else {
        return errno == ENOENT ? .missing : .unsuitable("a file that cannot be inspected (\(Errno(rawValue: errno)))")
      }
      return judge(found, name)
    }
  }

  /// Returns the content of a file of at most `limit` bytes.
  package func content(of name: ExternalFileName, limit: Int64) throws(HopdError) -> [UInt8] {
    let (descriptor, size) = try open(name)
    defer { close(descriptor) }
    guard size <= limit, let count = Int(exactly: size) else {
      throw HopdError(
        .externalDataTooLarge, "the file has \(size) bytes, and a value may have \(limit)", at: Place(file: file(name)),
        hint: "raise memory_limit, or leave \"Allows External Storage\" on")
    }
    var content = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let got = content.withUnsafeMutableBytes {
        Glibc.read(descriptor, $0.baseAddress?.advanced(by: done), count - done)
      }
      if got > 0 {
        done += got
      } else if got == 0 || errno != EINTR {
        throw unreadable(name, got == 0 ? "it became shorter while it was read" : "\(Errno(rawValue: errno))")
      }
    }
    return content
  }

  /// Passes the content of a file to `body` in portions, whatever its size.
  package func read(_ name: ExternalFileName, _ body: ([UInt8]) throws -> Void) throws {
    let (descriptor, _) = try open(name)
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 256 << 10)
    while true {
      let got = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
      if got == 0 { return }
      if got > 0 {
        try body(Array(buffer.prefix(got)))
      } else if errno != EINTR {
        throw unreadable(name, "\(Errno(rawValue: errno))")
      }
    }
  }

  // MARK: Opening

  private static func open(_ location: StoreLocation) throws(HopdError) -> State {
    let parent = location.directory.openDirectory(clinux_o_path())
    guard parent >= 0 else { return try state(errno, location.directory) }
    defer { close(parent) }
    let names = [location.supportDirectory, location.externalDataDirectory].compactMap { $0.lastComponent?.string }
    let flags = clinux_o_path() | O_DIRECTORY | O_CLOEXEC
    let descriptor = clinux_openat_beneath(parent, names.joined(separator: "/"), flags, 0)
    return descriptor >= 0 ? .open(descriptor) : try state(errno, location.externalDataDirectory)
  }

  private static func state(_ code: Int32, _ path: FilePath) throws(HopdError) -> State {
    switch code {
    case ENOENT: return .absent
    case ELOOP, ENOTDIR, EXDEV: return .unsuitable("below something that is a link or no directory")
    case EIO, ENOMEM, EMFILE, ENFILE:
      throw HopdError(
        .inputOutput, "the directory of external data cannot be opened: \(Errno(rawValue: code))",
        at: Place(file: path), hint: "make it readable, then retry")
    default: return .unsuitable("in a directory that cannot be opened (\(Errno(rawValue: code)))")
    }
  }

  private func open(_ name: ExternalFileName) throws(HopdError) -> (descriptor: Int32, size: Int64) {
    switch status(of: name) {
    case .missing:
      throw HopdError(
        .externalDataMissing, "the external file is missing", at: Place(file: file(name)),
        hint: "copy the store's directory \(path.printable) too")
    case .unsuitable(let what): throw unsuitable(name, what)
    case .file: break
    }
    guard case .open(let directory) = state else { throw unsuitable(name, "gone") }
    let descriptor = clinux_openat_beneath(directory, name.text, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw unreadable(name, "\(Errno(rawValue: errno))") }
    // Checked again with the descriptor: between the first check and `open` the file may have been replaced.
    var found = clinux_file_status()
    guard clinux_status_at(descriptor, "", &found) == 0, case .file(let size) = judge(found, name) else {
      close(descriptor)
      throw unsuitable(name, "not a regular file")
    }
    return (descriptor, size)
  }

  private func judge(_ found: clinux_file_status, _ name: ExternalFileName) -> ExternalFileStatus {
    if guarded.contains([found.device, found.inode]) { return .unsuitable("a second name of the store itself") }
    switch found.mode & 0o170000 {
    case 0o100000:
      return hasForeignName(found, name)
        ? .unsuitable("a second name of a file of another user (\(AccountName.ofUser(found.owner)))")
        : .file(bytes: found.size)
    case 0o120000: return .unsuitable("a symbolic link")
    case 0o040000: return .unsuitable("a directory")
    case 0o010000: return .unsuitable("a FIFO")
    default: return .unsuitable("not a regular file")
    }
  }

  /// Whether a file that does not belong to the owner of the directory has a name that is neither here nor in the
  /// store's backups, where each replacement gives it one (docs/formats/replacement.md, "External data").
  private func hasForeignName(_ found: clinux_file_status, _ name: ExternalFileName) -> Bool {
    guard found.links > 1, case .open(let directory) = state else { return false }
    var own = clinux_file_status()
    guard clinux_status_at(directory, "", &own) == 0 else { return true }
    return found.owner != own.owner && found.links > 1 &+ namesInBackups(found, name)
  }

  private func namesInBackups(_ file: clinux_file_status, _ name: ExternalFileName) -> UInt64 {
    let folder = location.directory.appending(".\(location.fileName).hopd-backups")
    let parent = folder.withPlatformString { Glibc.open($0, clinux_o_path() | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
    guard parent >= 0 else { return 0 }
    defer { close(parent) }
    let below = [location.supportDirectory, location.externalDataDirectory].compactMap { $0.lastComponent?.string }
    var count: UInt64 = 0
    // A folder that cannot be listed holds no name that is known.
    try? folder.readEntries { entry in
      var found = clinux_file_status()
      let path = ([String(cString: entry.name)] + below + [name.text]).joined(separator: "/")
      if clinux_status_beneath(parent, path, &found) == 0, found.device == file.device, found.inode == file.inode {
        count &+= 1
      }
      return true
    }
    return count
  }

  private func file(_ name: ExternalFileName) -> FilePath { path.appending(name.text) }

  private func unsuitable(_ name: ExternalFileName, _ what: String) -> HopdError {
    HopdError(
      .externalDataUnsuitable, "the external file is \(what)", at: Place(file: file(name)),
      hint: "replace it with a regular file, or restore a backup")
  }

  private func unreadable(_ name: ExternalFileName, _ why: String) -> HopdError {
    HopdError(
      .inputOutput, "the external file cannot be read: \(why)", at: Place(file: file(name)),
      hint: "make it readable, then retry")
  }
}
