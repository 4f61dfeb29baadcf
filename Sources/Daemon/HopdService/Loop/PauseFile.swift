// The pause file, which an operator makes and removes.

import Diagnostics
import Glibc
import Logging
import SystemPackage

/// A file: while it exists, migrations are paused.
struct PauseFile {
  let path: FilePath
  /// Whether it exists.
  private(set) var isThere = false

  init(_ path: FilePath) { self.path = path }

  /// Looks for the file, and logs a change.
  mutating func update(_ logger: Logger) {
    let wasThere = isThere
    if path.withPlatformString({ access($0, F_OK) }) == 0 {
      isThere = true
    } else if errno == ENOENT || errno == ENOTDIR {
      isThere = false
    }  // else it cannot be inspected, and what was known stays true
    guard isThere != wasThere else { return }
    logger.notice(
      isThere
        ? "paused by \(path.printable): no migration starts, and running ones pause after the current chunk"
        : "migrations resumed: \(path.printable) was removed")
  }
}
