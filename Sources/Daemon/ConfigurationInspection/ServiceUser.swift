// The rights of the service's user, computed from the modes of files: a configuration is often checked by root, who may
// read and write everything.

import Diagnostics
import DurableFiles
import Glibc
import MigrationPlanning
import SystemPackage

/// The user that hopd runs as.
struct ServiceUser {
  /// Its name, for messages.
  let name: String
  /// The user's ID and groups; nil if it is this process's own user.
  private let other: (user: uid_t, groups: [gid_t])?

  init(unit: UnitFile?) {
    // Without a unit the process is that user itself, and the kernel checks the rights.
    guard let unit, let name = unit.user ?? Optional("root"), let entry = getpwnam(name) else {
      self.name = "this user"
      other = nil
      return
    }
    self.name = name
    let (user, group) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
    guard user != geteuid() else {
      other = nil
      return
    }
    var count: Int32 = 64
    var groups = [gid_t](repeating: 0, count: Int(count))
    let found = getgrouplist(name, group, &groups, &count)
    other = (user, found >= 0 ? Array(groups.prefix(Int(count))) : [group])
  }

  /// The user's number.
  var number: uid_t { other?.user ?? geteuid() }

  /// Returns the first file or directory, at a path or below it, that this user may not read; nil if there is none, or
  /// if it is this process's own user.
  func firstUnreadable(below path: FilePath) -> FilePath? {
    guard let other, other.user != 0, let path = path.resolvingLinks else { return nil }
    var folder = FilePath("/")
    for name in path.removingLastComponent().components {
      folder.append(name)
      if !may(1, folder) { return folder }
    }
    return ModelsMark.entries(below: path).first { entry, isDirectory in !may(isDirectory ? 5 : 4, entry) }?.path
  }

  /// Whether the user has these rights on a path (4 read, 2 write, 1 enter); true if the mode alone does not decide.
  private func may(_ rights: mode_t, _ path: FilePath) -> Bool {
    var status = stat()
    guard let other, path.withPlatformString({ stat($0, &status) }) == 0 else { return true }
    // An access control list may grant more than the mode.
    let attributes = try? LinuxFileSystem().attributes(of: path)
    if attributes?.extended["system.posix_acl_access"] != nil { return true }
    let shift: mode_t = status.st_uid == other.user ? 6 : other.groups.contains(status.st_gid) ? 3 : 0
    return (status.st_mode >> shift) & rights == rights
  }

  /// Whether the user may make files in this directory; true if the mode alone does not decide.
  func mayWrite(_ directory: FilePath) -> Bool {
    guard let other else {
      return directory.withPlatformString { faccessat(AT_FDCWD, $0, R_OK | W_OK | X_OK, AT_EACCESS) } == 0
    }
    if other.user == 0 { return true }
    return directory.resolvingLinks.map { may(7, $0) } ?? true
  }
}
