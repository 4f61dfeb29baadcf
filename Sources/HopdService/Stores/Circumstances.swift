// What stands around a store and can keep it from being migrated: rights, links, free space, external files. After a
// failure whose cause lies there it is noted as it is; at each rescan a look tells whether somebody has mended it.

import Diagnostics
import Glibc
import MigrationPipeline
import PersistentStore
import StoreReplacement
import SystemPackage

/// The surroundings of a store at one moment.
package struct Circumstances: Sendable {
  /// What became of them.
  package enum Change: Sendable, Hashable {
    /// Nothing that matters.
    case none
    /// Something in the directory; hopd's own work there looks the same.
    case perhaps
    /// Rights, owner, links, external files or space: worth a try at once.
    case mended
  }

  private let store: StoreLocation
  private let others: [FilePath]
  /// Rights, owners, links and times of change, as one number that holds in this process.
  private let rights: Int
  /// Time of the last change of the directory itself.
  private let directory: Int
  /// Free bytes and inodes of the file systems that are written to.
  private let free: [Space]

  private struct Space: Hashable, Sendable {
    var bytes: UInt64 = 0
    var inodes: UInt64 = 0
  }

  /// Notes what stands around the store of a job.
  package init(of request: MigrationRequest) {
    self.init(request.location, others: [request.backup.directory, request.stateDirectory].compactMap { $0 })
  }

  private init(_ store: StoreLocation, others: [FilePath]) {
    self.store = store
    self.others = others
    var hasher = Hasher()
    let folder = Self.status(store.directory)
    // Times of the directory change with every file that is made in it, so only its rights count here.
    hasher.combine(
      folder.map { [UInt64($0.st_dev), UInt64($0.st_ino), UInt64($0.st_mode), UInt64($0.st_uid), UInt64($0.st_gid)] })
    for path in [store.database, store.externalDataDirectory, store.externalDataDirectory.removingLastComponent()] {
      hasher.combine(Self.status(path).map(Self.facts))
    }
    for path in others {
      hasher.combine(Self.status(path).map { [UInt64($0.st_mode), UInt64($0.st_uid), UInt64($0.st_gid)] })
    }
    rights = hasher.finalize()
    directory = folder.map { Self.facts($0).hashValue } ?? 0
    free = ([store.directory] + others).map(Self.space)
  }

  /// Compares with how things are now.
  package func change() -> Change {
    let now = Circumstances(store, others: others)
    if now.rights != rights { return .mended }
    for (before, after) in zip(free, now.free) {
      // Less than this comes and goes on any disk.
      if after.bytes > before.bytes &+ max(1 << 20, before.bytes / 8) { return .mended }
      if after.inodes > before.inodes &+ max(16, before.inodes / 8) { return .mended }
    }
    return now.directory == directory ? .none : .perhaps
  }

  private static func status(_ path: FilePath) -> stat? {
    var status = stat()
    return path.withPlatformString { lstat($0, &status) } == 0 ? status : nil
  }

  private static func facts(_ status: stat) -> [UInt64] {
    [
      UInt64(status.st_dev), UInt64(status.st_ino), UInt64(status.st_mode), UInt64(status.st_uid),
      UInt64(status.st_gid),
      UInt64(status.st_nlink), UInt64(bitPattern: Int64(status.st_ctim.tv_sec)),
      UInt64(bitPattern: Int64(status.st_ctim.tv_nsec)),
    ]
  }

  private static func space(_ path: FilePath) -> Space {
    var found = statvfs()
    guard path.withPlatformString({ statvfs($0, &found) }) == 0 else { return Space() }
    let (bytes, overflow) = UInt64(found.f_bavail).multipliedReportingOverflow(by: UInt64(found.f_frsize))
    return Space(bytes: overflow ? .max : bytes, inodes: UInt64(found.f_favail))
  }
}

extension HopdError {
  /// Does the cause of this failure lie outside of the store, so that the store may be migrated once it is gone? Such a
  /// failure is never final.
  var liesOutsideTheStore: Bool {
    let outside: [Code] = [
      .noSpace, .inputOutput, .noPermission, .cannotReplace, .externalDataMissing, .replacementUnconfirmed,
    ]
    return outside.contains(code)
  }
}
