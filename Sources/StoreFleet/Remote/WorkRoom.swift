// The folder in which a worker keeps the copies of objects: it belongs to this run alone, and no other run reads it.
// The leftovers of killed workers are removed, not used: only the object counts.

import DurableFiles
import Glibc
import MigrationPipeline
import SystemPackage

/// The folder of one run, for as long as the run lives.
package final class WorkRoom {
  private static let prefix = "hopctl-work-"

  /// The folder.
  package let path: FilePath
  /// The directory of the records of the copies' migrations.
  package var stateDirectory: FilePath { path.appending("state") }

  private let lock: FileLock

  /// Makes a folder for `run` in `parent`, else in the temporary directory, and removes there what killed runs left
  /// behind.
  package init(run: String, in parent: FilePath?) throws {
    let files = LinuxFileSystem(isDurable: false)
    (path, lock) = try ScratchDirectory.made(in: parent, "work", option: "--work-directory") { above in
      WorkRoom.sweep(above.path)
      let folder = above.path.appending(WorkRoom.prefix + WorkRoom.machine + "-" + run)
      let lock = try FileLock(path: WorkRoom.lockFile(of: folder))
      try files.makeDirectory(folder, mode: 0o700)
      try files.makeDirectory(folder.appending("state"), mode: 0o700)
      return (folder, lock)
    }
  }

  /// Removes the folder.
  package func remove() {
    try? ScratchDirectory(left: path).remove()
    lock.release()
  }

  /// The lock is outside of the folder, so that it can be removed last.
  private static func lockFile(of folder: FilePath) -> FilePath {
    folder.removingLastComponent().appending((folder.lastComponent?.string ?? "") + ".lock")
  }

  /// This machine in a folder's name: where several share the folder above, their locks may hold on one machine only.
  private static var machine: String { String(StableHash.of(RunLine.hostName()), radix: 16) }

  /// Removes the folders of this user and this machine whose worker is gone.
  private static func sweep(_ above: FilePath) {
    let files = LinuxFileSystem(isDurable: false)
    let own = prefix + machine + "-"
    let names = ((try? files.names(in: above)) ?? []).map(\.string).filter { $0.hasPrefix(own) }
    let runs = Set(names.map { $0.hasSuffix(".lock") ? String($0.dropLast(5)) : $0 })
    // Files that root makes belong to the owner of the folder above (docs/decisions/0150).
    var parent = stat()
    let isRoot = geteuid() == 0 && lstat(above.string, &parent) == 0
    func isOurs(_ found: stat) -> Bool { found.st_uid == geteuid() || isRoot && found.st_uid == parent.st_uid }
    for run in runs where run.dropFirst(own.count).allSatisfy(\.isHexDigit) {
      let folder = above.appending(run)
      var found = stat()
      let isThere = lstat(folder.string, &found) == 0
      guard !isThere || (isOurs(found) && found.st_mode & S_IFMT == S_IFDIR),
        lstat(lockFile(of: folder).string, &found) != 0 || isOurs(found),
        let lock = try? FileLock(path: lockFile(of: folder))
      else { continue }
      if isThere { try? ScratchDirectory(left: folder).remove() }
      lock.release()
    }
  }
}
