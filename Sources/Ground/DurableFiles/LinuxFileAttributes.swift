// Owner, mode, ACLs and extended attributes: read by path without opening the file (closing a descriptor of a database
// would drop its SQLite locks), set through a descriptor, read back and compared.

import CLinux
import Diagnostics
import Glibc
import SystemPackage

extension LinuxFileSystem {
  package func attributes(of path: FilePath) throws -> FileAttributes {
    guard let found = try status(path) else { throw HopdError(errno: ENOENT, "read the attributes", at: path) }
    return FileAttributes(
      owner: found.owner, group: found.group, mode: found.mode,
      extended: try within(path) { parent, file in
        try extendedAttributes(
          at: path, list: { clinux_listxattr_at(parent, file, $0, $1) },
          get: { clinux_getxattr_at(parent, file, $0, $1, $2) })
      })
  }

  /// Gives an existing file or directory to the owner of its directory, if root owns it and it has only this name.
  package func adoptByDirectoryOwner(_ path: FilePath) throws {
    guard geteuid() == 0 else { return }
    try within(path) { parent, name in
      let file = Descriptor(
        try call("give to the directory's owner", at: path) {
          clinux_openat_beneath(parent, name, clinux_o_path() | O_NOFOLLOW | O_CLOEXEC, 0)
        })
      try adopt(file.number, in: parent, path)
    }
  }

  /// Gives a file that this process has just made in the directory `parent` to the owner of that directory: where the
  /// process is root, and the directory another user's.
  func adopt(_ file: Int32, in parent: Int32, _ path: FilePath) throws {
    guard geteuid() == 0 else { return }
    // Descriptors make sure that the inspected file is the changed one: one of the directory, and one of the file.
    var directory = clinux_file_status()
    try call("read the status", at: path.removingLastComponent()) { clinux_status_at(parent, ".", &directory) }
    var found = stat()
    try call("read the status", at: path) { fstat(file, &found) }
    guard found.st_uid != directory.owner || found.st_gid != directory.group else { return }
    // Only a file that root has just made is given away: not another user's file, nor one that has another name
    // elsewhere.
    let isDirectory = found.st_mode & S_IFMT == S_IFDIR
    guard found.st_uid == 0, isDirectory || (found.st_mode & S_IFMT == S_IFREG && found.st_nlink == 1) else { return }
    try call("give to the directory's owner", at: path) {
      clinux_change_owner(file, directory.owner, directory.group)
    }
  }

  package func setAttributes(_ attributes: FileAttributes, of path: FilePath) throws {
    let file = try open(path, "set the attributes", O_RDONLY | O_NONBLOCK)
    guard let found = try status(path) else { throw HopdError(errno: ENOENT, "set the attributes", at: path) }
    // Owner first: changing it clears the set-id bits and may clear capabilities.
    if found.owner != attributes.owner || found.group != attributes.group {
      let (owner, group) = (AccountName.ofUser(attributes.owner), AccountName.ofGroup(attributes.group))
      try call("set owner \(owner) and group \(group)", at: path) {
        fchown(file.number, attributes.owner, attributes.group)
      }
    }
    let present = try extendedAttributes(
      at: path, list: { clinux_flistxattr(file.number, $0, $1) },
      get: { clinux_fgetxattr(file.number, $0, $1, $2) })
    // A new file may have inherited an ACL from its directory which the old one does not have. Labels that the system
    // itself sets (security.*) are overwritten below, never removed.
    for name in present.keys.sorted() where attributes.extended[name] == nil && !name.hasPrefix("security.") {
      try call("remove the attribute \(name)", at: path) { clinux_fremovexattr(file.number, name) }
    }
    for (name, value) in attributes.extended.sorted(by: { $0.key < $1.key }) where present[name] != value {
      try call("set the attribute \(name)", at: path) {
        value.withUnsafeBytes { clinux_fsetxattr(file.number, name, $0.baseAddress, $0.count) }
      }
    }
    // Last: an ACL changes the group bits, and the mode read from a file with an ACL has its mask in them.
    try call("set the mode", at: path) { fchmod(file.number, attributes.mode) }

    let result = try self.attributes(of: path)
    let kept = result.extended.filter { attributes.extended[$0.key] != nil || !$0.key.hasPrefix("security.") }
    guard
      result.owner == attributes.owner, result.group == attributes.group, result.mode == attributes.mode,
      kept == attributes.extended
    else {
      throw HopdError(
        .noPermission, "owner, mode or extended attributes were not preserved", at: Place(file: path))
    }
  }

  private func extendedAttributes(
    at path: FilePath, list: (UnsafeMutablePointer<CChar>?, Int) -> Int,
    get: (UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int
  ) throws -> [String: [UInt8]] {
    // 64 KiB is the kernel's limit for the list and for one value (XATTR_LIST_MAX, XATTR_SIZE_MAX).
    var names = [CChar](repeating: 0, count: 65_536)
    let length: Int
    do {
      length = try call("list the extended attributes", at: path) { list(&names, names.count) }
    } catch let error as HopdError where error.errno == .notSupported {
      return [:]
    }
    var result: [String: [UInt8]] = [:]
    for raw in names.prefix(length).split(separator: 0) {
      let name = String(decoding: raw.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      var value = [UInt8](repeating: 0, count: 65_536)
      let count = try call("read the attribute \(name)", at: path) { get(name, &value, value.count) }
      result[name] = Array(value.prefix(count))
    }
    return result
  }
}
