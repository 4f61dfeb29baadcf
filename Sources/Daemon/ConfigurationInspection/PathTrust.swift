// Who could lead the path of a watched directory elsewhere. hopd resolves the path once and serves no other place after
// that; but whoever may write in a folder above the directory chooses what hopd finds at its next start.

import Diagnostics
import Glibc
import HopdConfiguration
import MigrationPipeline
import StoreReplacement
import SystemPackage

extension HopdError.Code {
  /// Others than root and hopd's user may exchange a part of a watch's path.
  package static let pathExposed = HopdError.Code("path-exposed", severity: .warning)
}

/// Walks the paths of watched directories and of backups.
package enum PathTrust {
  /// Returns a warning for each path of the configuration with a component that others than root and `user` may
  /// exchange.
  package static func remarks(in loaded: LoadedConfiguration, user: uid_t = geteuid()) -> [HopdError] {
    loaded.configuration.watches.flatMap { watch in
      [
        (path: Optional(watch.directory), key: "watch.\(watch.name).directory"),
        (path: watch.migration.backup.directory, key: "watch.\(watch.name).backup.directory"),
      ].compactMap { path, key in
        guard let path, let found = exposure(of: path, user: user) else { return nil }
        let folder = found.folder
        return HopdError(
          .pathExposed,
          "\(found.who) can write to \(folder.printable), and so replace with another directory or a link: "
            + found.child.printable,
          at: loaded.place(of: key),
          hint: "make root its only writer: chown root \(folder.quotedForShell) && chmod go-w "
            + folder.quotedForShell)
      }
    }
  }

  private struct Exposure {
    let folder: FilePath
    let child: FilePath
    let who: String
  }

  /// The first component of a path that a stranger may exchange. Links count with the folders that they lead over. What
  /// is not there, or cannot be inspected, ends the walk.
  private static func exposure(of path: FilePath, user: uid_t) -> Exposure? {
    var folder: FilePath = "/"
    var rest = Array(path.components.reversed())
    var links = 0
    while let name = rest.popLast() {
      if name.kind == .parentDirectory { folder.removeLastComponent() }
      guard name.kind == .regular else { continue }
      let child = folder.appending(name)
      guard let above = folder.linkStatus() else { return nil }
      let found = child.linkStatus()
      if let who = stranger(above, found, user) { return Exposure(folder: folder, child: child, who: who) }
      guard let status = found else { return nil }
      guard status.st_mode & S_IFMT == S_IFLNK else {
        folder = child
        continue
      }
      links += 1
      guard links <= 40, let target = target(of: child) else { return nil }
      if target.isAbsolute { folder = "/" }
      rest += target.components.reversed()
    }
    return nil
  }

  /// Who may exchange a file in a folder, or create it if it is missing, besides root and `user`; nil if no one can.
  private static func stranger(_ folder: stat, _ file: stat?, _ user: uid_t) -> String? {
    func isTrusted(_ owner: uid_t) -> Bool { owner == 0 || owner == user }
    guard isTrusted(folder.st_uid) else { return "user " + AccountName.ofUser(folder.st_uid) }
    // In a folder with the sticky bit, only the file's owner may rename it.
    if folder.st_mode & S_ISVTX != 0, let file {
      return isTrusted(file.st_uid) ? nil : "user " + AccountName.ofUser(file.st_uid)
    }
    if folder.st_mode & S_IWOTH != 0 { return "every user" }
    if folder.st_mode & S_IWGRP != 0, folder.st_gid != 0 { return "the group " + AccountName.ofGroup(folder.st_gid) }
    return nil
  }

  private static func target(of link: FilePath) -> FilePath? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    let count = link.withPlatformString { readlink($0, &buffer, Int(PATH_MAX)) }
    return count > 0 ? FilePath(platformString: Array(buffer.prefix(count)) + [0]) : nil
  }
}
