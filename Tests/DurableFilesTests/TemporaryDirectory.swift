import DurableFiles
import Glibc
import SystemPackage

/// A fresh directory that goes away with the value.
final class TemporaryDirectory {
  let path: FilePath

  init() throws {
    var name = Array("/tmp/hopd-test-XXXXXX".utf8CString)
    guard mkdtemp(&name) != nil else { throw Errno(rawValue: errno) }
    path = try LinuxFileSystem().canonical(FilePath(platformString: name))
  }

  deinit { try? TemporaryDirectory.remove(path) }

  static func remove(_ path: FilePath) throws {
    let files = LinuxFileSystem()
    guard try files.status(path)?.kind == .directory else { return try files.unlink(path) }
    for name in try files.names(in: path) { try remove(path.appending(name)) }
    try files.removeDirectory(path)
  }
}
