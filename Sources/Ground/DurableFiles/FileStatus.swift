// The status of a file as plain values that can be compared, kept and printed.

import CLinux
import SystemPackage

/// Which file it is, whatever its name: device and inode.
package struct FileIdentity: Hashable, Sendable, Codable {
  /// Device number of the file system.
  package let device: UInt64
  /// Inode number on it.
  package let inode: UInt64

  /// Names a file by device and inode.
  package init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }
}

/// The kind of a file.
package enum FileKind: String, Sendable, CustomStringConvertible {
  case regular, directory, symbolicLink, fifo, socket, device, other

  /// With its article, for messages.
  package var description: String {
    switch self {
    case .regular: "a regular file"
    case .directory: "a directory"
    case .symbolicLink: "a symbolic link"
    case .fifo: "a FIFO"
    case .socket: "a socket"
    case .device: "a device"
    case .other: "no regular file"
    }
  }
}

/// Status of a file at one moment.
package struct FileStatus: Hashable, Sendable {
  /// Device and inode.
  package var identity: FileIdentity
  /// What it is.
  package var kind: FileKind
  /// Bytes.
  package var size: Int64
  /// Bytes on the disk, including those reserved beyond the end.
  package var allocated: Int64
  /// How many names it has.
  package var links: UInt64
  /// Owner's user number.
  package var owner: UInt32
  /// Group number.
  package var group: UInt32
  /// Permission bits with set-id and sticky bits (07777).
  package var mode: UInt32
  /// Last change of the content, nanoseconds since 1970.
  package var modified: Int64
  /// Whether something is mounted exactly here.
  package var isMountPoint: Bool

  /// Notes a status.
  package init(
    identity: FileIdentity, kind: FileKind, size: Int64, links: UInt64, owner: UInt32, group: UInt32, mode: UInt32,
    modified: Int64, isMountPoint: Bool, allocated: Int64? = nil
  ) {
    self.allocated = allocated ?? size
    self.identity = identity
    self.kind = kind
    self.size = size
    self.links = links
    self.owner = owner
    self.group = group
    self.mode = mode
    self.modified = modified
    self.isMountPoint = isMountPoint
  }

  init(_ found: clinux_file_status) {
    let kind: FileKind =
      switch found.mode & 0o170000 {
      case 0o100000: .regular
      case 0o040000: .directory
      case 0o120000: .symbolicLink
      case 0o010000: .fifo
      case 0o140000: .socket
      case 0o020000, 0o060000: .device
      default: .other
      }
    let (product, _) = found.modified_seconds.multipliedReportingOverflow(by: 1_000_000_000)
    self.init(
      identity: FileIdentity(device: found.device, inode: found.inode), kind: kind, size: found.size,
      links: found.links, owner: found.owner, group: found.group, mode: found.mode & 0o7777,
      modified: product &+ Int64(found.modified_nanoseconds), isMountPoint: found.is_mount_root != 0,
      allocated: found.allocated)
  }
}

/// The attributes that a file must keep when its content is replaced: owner, group, mode, and extended attributes with
/// ACLs (`system.posix_acl_access`) and security labels among them.
package struct FileAttributes: Hashable, Sendable {
  /// Owner's user number.
  package var owner: UInt32
  /// Group number.
  package var group: UInt32
  /// Permission bits (07777).
  package var mode: UInt32
  /// Extended attributes by name.
  package var extended: [String: [UInt8]]

  /// Notes attributes.
  package init(owner: UInt32, group: UInt32, mode: UInt32, extended: [String: [UInt8]] = [:]) {
    self.owner = owner
    self.group = group
    self.mode = mode
    self.extended = extended
  }
}
