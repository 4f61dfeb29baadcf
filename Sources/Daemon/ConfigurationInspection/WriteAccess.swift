// Whether this process may write where the watches need it: a hopd that reloads finds out by itself, in its own unit.

import Diagnostics
import Glibc
import HopdConfiguration
import MigrationPipeline
import StoreReplacement
import SystemPackage

extension HopdError.Code {
  /// The service may not write in the directory of a watch; a warning.
  package static let directoryUnwritable = HopdError.Code("directory-unwritable", severity: .warning)
}

/// Checks the directories of watches and of their backups.
package enum WriteAccess {
  /// Returns a warning for each directory that exists and that this process may not write. `dropIn` is the command that
  /// lets the unit write there.
  package static func remarks(
    in loaded: LoadedConfiguration, dropIn: String, problem: (FilePath) -> Errno? = problem
  ) -> [HopdError] {
    loaded.configuration.watches.flatMap { watch in
      [
        (path: Optional(watch.directory), key: "watch.\(watch.name).directory"),
        (path: watch.migration.backup.directory, key: "watch.\(watch.name).backup.directory"),
      ].compactMap { path, key in
        guard let path, let problem = problem(path), [.readOnlyFileSystem, .permissionDenied].contains(problem) else {
          return nil
        }
        return HopdError(
          .directoryUnwritable, "hopd cannot write to \(path.printable): \(problem)", at: loaded.place(of: key),
          hint: problem == .readOnlyFileSystem ? dropIn : "ls -lad \(path.quotedForShell)")
      }
    }
  }

  /// Why this process may not create files in a directory; nil if it may.
  package static func problem(_ directory: FilePath) -> Errno? {
    let code = directory.withPlatformString { faccessat(AT_FDCWD, $0, W_OK | X_OK, AT_EACCESS) }
    return code == 0 ? nil : Errno(rawValue: errno)
  }
}
