// The directory of a watch. Its path may have links, and whoever may write in a folder above it could lead it elsewhere
// while stores wait for their turn; so the path is resolved once, and everything is found below what it led to then.

import Diagnostics
import DurableFiles
import Glibc
import Synchronization
import SystemPackage

/// Where a watch's directory is. It is open only while it is used, so that its file system can be unmounted.
package final class WatchRoot: Sendable {
  /// Why the directory cannot be opened.
  package enum Failure: Error {
    case errno(Errno)
    /// The configured path leads to another place than at first.
    case moved(from: FilePath, to: FilePath)
  }

  /// The path as the configuration names it.
  package let configured: FilePath
  /// Whether the path keeps the meaning that it had first; otherwise it may lead elsewhere at each scan.
  private let isFixed: Bool
  private let known = Mutex<FilePath?>(nil)

  /// Prepares a root; nothing is resolved before `open`.
  package init(_ configured: FilePath, isFixed: Bool = true) {
    self.configured = configured
    self.isFixed = isFixed
  }

  /// The canonical path; the configured one until the directory was first opened.
  package var path: FilePath { known.withLock { $0 } ?? configured }

  /// Opens the directory: the first time wherever the path leads, later only where it led then.
  package func open() throws(Failure) -> OpenDirectory {
    do {
      let resolved = try LinuxFileSystem().canonical(configured)
      let expected = known.withLock { known in
        if !isFixed || known == nil { known = resolved }
        return known ?? resolved
      }
      guard expected == resolved else { throw Failure.moved(from: expected, to: resolved) }
      return try OpenDirectory(canonical: resolved)
    } catch let failure as Failure {
      throw failure
    } catch {
      throw .errno((error as? HopdError)?.errno ?? .ioError)
    }
  }
}

extension WatchRoot.Failure {
  /// The error for the watch whose directory it is.
  func error(_ path: FilePath, watch: String) -> HopdError {
    let place = Place(file: path, key: "watch.\(watch).directory")
    switch self {
    case .errno(let code):
      let permission = code == .permissionDenied
      return HopdError(
        permission ? .noPermission : .watchUnavailable, "cannot read the watched directory: \(code)", at: place,
        hint: permission
          ? "grant the user of the service access to it, and add it to ReadWritePaths= of the unit"
          : "create or mount it; hopd detects it automatically")
    case .moved(let from, let to):
      return HopdError(
        .watchUnavailable, "the watched directory was \(from.printable), and its path now resolves to \(to.printable)",
        at: place, hint: "run `systemctl reload hopd` if this is intended")
    }
  }
}

extension WatchRoot: Equatable {
  /// Two roots of one path are equal only where both may lead elsewhere at each scan.
  package static func == (a: WatchRoot, b: WatchRoot) -> Bool {
    a === b || (!a.isFixed && !b.isFixed && a.configured == b.configured)
  }
}
