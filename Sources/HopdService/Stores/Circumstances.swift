// The surroundings of a store that can prevent its migration: permissions, links, free space, external files. hopd
// records them after a failure with such a cause, and compares at each rescan whether they have changed.

import Diagnostics
import Glibc
import MigrationPipeline
import PersistentStore
import StoreReplacement
import SystemPackage

/// The surroundings of a store at one moment.
package struct Circumstances: Sendable {
  /// How the surroundings have changed.
  package enum Change: Sendable, Hashable {
    /// No relevant change.
    case none
    /// A change in the directory, which may be hopd's own work.
    case perhaps
    /// A change of permissions, owner, links, external files or free space: worth a retry at once.
    case mended
  }

  private let store: StoreLocation
  private let others: [FilePath]
  /// Permissions, owners, links and times of change, as one hash that is valid in this process only.
  private let rights: Int
  /// A hash of the directory's status, with the time of its last change.
  private let directory: Int
  /// Free bytes and inodes of the file systems that hopd writes to.
  private let free: [Space]

  private struct Space: Hashable, Sendable {
    var bytes: UInt64 = 0
    var inodes: UInt64 = 0
  }

  /// Records the surroundings of the store of a job.
  package init(of request: MigrationRequest) {
    self.init(request.location, others: [request.backup.directory, request.stateDirectory].compactMap { $0 })
  }

  private init(_ store: StoreLocation, others: [FilePath]) {
    self.store = store
    self.others = others
    var hasher = Hasher()
    let folder = Self.status(store.directory)
    // The directory's times change with every file created in it, so only its identity, permissions and owner count
    // here.
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

  /// Compares the record with the current surroundings.
  package func change() -> Change {
    let now = Circumstances(store, others: others)
    if now.rights != rights { return .mended }
    for (before, after) in zip(free, now.free) {
      // Smaller changes are normal on any disk.
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
  /// Whether the cause of this failure is outside the store, so that a migration may succeed once the cause is removed.
  /// Such a failure is never final.
  var liesOutsideTheStore: Bool {
    let outside: [Code] = [
      .noSpace, .inputOutput, .noPermission, .cannotReplace, .externalDataMissing, .replacementUnconfirmed,
    ]
    return outside.contains(code)
  }
}
