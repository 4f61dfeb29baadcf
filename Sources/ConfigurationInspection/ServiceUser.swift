// What the user of the service may read and write, as the rights of files say it: whoever checks a configuration is
// often root, who may do everything.

import DurableFiles
import Glibc
import MigrationPlanning
import SystemPackage

/// The user that hopd runs as.
struct ServiceUser {
  /// Its name, for messages.
  let name: String
  /// Number and groups, where it is another one than this process's.
  private let other: (user: uid_t, groups: [gid_t])?

  init(unit: UnitFile?) {
    // Inside the unit the process is that user already, and the kernel itself answers best.
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

  /// The first file or directory, at a path or below it, that this user may not read; nil where it may read all, and
  /// where it is this process's own user.
  func firstUnreadable(below path: FilePath) -> FilePath? {
    guard let other, other.user != 0, let path = path.resolvingLinks else { return nil }
    var folder = FilePath("/")
    for name in path.removingLastComponent().components {
      folder.append(name)
      if !may(1, folder) { return folder }
    }
    return ModelsMark.entries(below: path).first { entry, isDirectory in !may(isDirectory ? 5 : 4, entry) }?.path
  }

  /// Has the user these rights of a path (4 read, 2 write, 1 enter)? True where the rights alone do not tell.
  private func may(_ rights: mode_t, _ path: FilePath) -> Bool {
    var status = stat()
    guard let other, path.withPlatformString({ stat($0, &status) }) == 0 else { return true }
    // An access list may give more than the mode says.
    let attributes = try? LinuxFileSystem().attributes(of: path)
    if attributes?.extended["system.posix_acl_access"] != nil { return true }
    let shift: mode_t = status.st_uid == other.user ? 6 : other.groups.contains(status.st_gid) ? 3 : 0
    return (status.st_mode >> shift) & rights == rights
  }

  /// May it make files in this directory? True where the rights alone do not tell.
  func mayWrite(_ directory: FilePath) -> Bool {
    guard let other else {
      return directory.withPlatformString { faccessat(AT_FDCWD, $0, R_OK | W_OK | X_OK, AT_EACCESS) } == 0
    }
    if other.user == 0 { return true }
    return directory.resolvingLinks.map { may(7, $0) } ?? true
  }
}
