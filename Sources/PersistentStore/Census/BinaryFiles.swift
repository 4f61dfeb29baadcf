// Binary values as files of their own, named by their digest: equal values are one file, and a file whose content is not
// what its name says can be found (`sha256sum`).

import Diagnostics
import Glibc
import ManagedObjectModel
import SystemPackage

/// A directory that gets binary values as files.
final class BinaryFiles {
  /// A value that is in the directory now.
  struct Added {
    /// SHA-256 in lower-case hexadecimal, which is the file's name.
    let digest: String
    /// Length of the value.
    let bytes: Int64
  }

  private let directory: FilePath
  private let descriptor: Int32
  /// Name of the file that is being written; it gets its own when its digest is known.
  private let part = ".hopctl-\(getpid()).part"

  /// Opens `directory`, and makes it (mode 0700) if it is missing.
  init(_ directory: FilePath) throws(HopdError) {
    self.directory = directory
    let made = directory.withPlatformString { mkdir($0, 0o700) }
    if made != 0, errno != EEXIST { throw BinaryFiles.failed("the directory cannot be made", directory, errno) }
    descriptor = directory.withPlatformString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    if descriptor < 0 { throw BinaryFiles.failed("the directory cannot be opened", directory, errno) }
  }

  deinit { close(descriptor) }

  /// Writes one value, which `produce` hands over in portions.
  func add(_ produce: ((ArraySlice<UInt8>) throws -> Void) throws -> Void) throws -> Added {
    unlinkat(descriptor, part, 0)
    let file = openat(descriptor, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw failed("a file cannot be made", errno) }
    var isOpen = true
    defer {
      if isOpen { close(file) }
      // Nothing to remove once it has its name.
      unlinkat(descriptor, part, 0)
    }
    var digest = ContentDigest.Running()
    var count: Int64 = 0
    try produce { bytes in
      try write(bytes, to: file)
      digest.add(bytes)
      count &+= Int64(bytes.count)
    }
    isOpen = false
    guard close(file) == 0 else { throw failed("a file cannot be written", errno) }
    let name = digest.sha256()
    guard renameat(descriptor, part, descriptor, name) == 0 else { throw failed("a file cannot get its name", errno) }
    return Added(digest: name, bytes: count)
  }

  private func write(_ bytes: ArraySlice<UInt8>, to file: Int32) throws(HopdError) {
    let problem: Int32? = bytes.withUnsafeBytes { bytes in
      var start = 0
      while start < bytes.count {
        let count = Glibc.write(file, bytes.baseAddress?.advanced(by: start), bytes.count - start)
        if count >= 0 { start += count } else if errno != EINTR { return errno }
      }
      return nil
    }
    if let problem { throw failed("a file cannot be written", problem) }
  }

  private func failed(_ what: String, _ code: Int32) -> HopdError { BinaryFiles.failed(what, directory, code) }

  private static func failed(_ what: String, _ directory: FilePath, _ code: Int32) -> HopdError {
    let kind: HopdError.Code =
      switch code {
      case ENOSPC, EDQUOT: .noSpace
      case EACCES, EPERM, EROFS: .noPermission
      default: .inputOutput
      }
    return HopdError(
      kind, what, at: Place(file: directory), cause: Errno(rawValue: code),
      hint: "name a directory on a disk with room that you may write to")
  }
}
