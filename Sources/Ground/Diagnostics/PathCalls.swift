// The three calls by which readers reach a file by its path. Below the directory of a store at work the path is not
// resolved: the file is named relative to the directory that was opened when the work began (CLinux/directories.c).

import CLinux
import Glibc
import SystemPackage

extension FilePath {
  /// Calls `body` with a directory and a name in it for the calls of the *at family; -1, with errno, where the
  /// directory cannot be opened.
  private func withParent(_ body: (Int32, UnsafePointer<CChar>) -> Int32) -> Int32 {
    withPlatformString { text in
      var name: UnsafePointer<CChar>?
      let parent = clinux_open_pinned_parent(text, &name)
      guard parent != -1, let name else { return -1 }
      let result = body(parent, name)
      guard parent != AT_FDCWD else { return result }
      let code = errno
      _ = close(parent)
      errno = code
      return result
    }
  }

  /// lstat(2). Returns nil, with errno, where it fails.
  package func linkStatus() -> Glibc.stat? {
    var status = Glibc.stat()
    return withParent { fstatat($0, $1, &status, AT_SYMLINK_NOFOLLOW) } == 0 ? status : nil
  }

  /// open(2) for reading, without following a link in the file's own place and without waiting for a pipe. Returns -1,
  /// with errno, where it fails.
  package func openForReading() -> Int32 {
    withParent { clinux_open_file($0, $1, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
  }

  /// Opens the directory for the calls of the *at family. Returns -1, with errno, where it fails.
  package func openDirectory(_ flags: Int32) -> Int32 {
    withPlatformString { text in
      clinux_is_pinned(text) != 0
        ? clinux_open_directory(text, flags | O_CLOEXEC)
        : clinux_open_file(AT_FDCWD, text, flags | O_DIRECTORY | O_CLOEXEC)
    }
  }
}
