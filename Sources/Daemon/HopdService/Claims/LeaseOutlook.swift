// Warns if hopd cannot see which programs have a store open. For that it needs a file lease (decision 0029), which the
// kernel grants to the owner of a file and to processes with CAP_LEASE, and which some file systems do not support. The
// operator gets the warning at the start, not store by store.

import Diagnostics
import Glibc
import HopdConfiguration
import MigrationPipeline
import StoreReplacement
import StoreWatching
import SystemPackage

extension HopdError.Code {
  /// hopd cannot get leases on the stores of a watch.
  package static let noLease = HopdError.Code("no-lease", severity: .warning)
}

/// Searches watched directories for stores without leases.
enum LeaseOutlook {
  /// The maximum number of files to check in one directory.
  private static let mostFiles = 10_000

  /// Returns one warning for each watch whose stores hopd cannot lease.
  static func warnings(
    _ configuration: Configuration, user: UInt32 = geteuid(), canLease: Bool = hasCapability(28)
  ) -> [HopdError] {
    configuration.watches.compactMap { watch in
      let reason: String
      if let name = networkFileSystem(watch.directory) {
        reason = "\(watch.directory.printable) is a \(name) file system, which may not support leases"
      } else if !canLease, let stranger = stranger(in: watch, user: user) {
        reason = "\(stranger.printable) belongs to another user, and hopd has no CAP_LEASE"
      } else {
        return nil
      }
      let consequence =
        switch watch.migration.replacement {
        case nil: "such stores are replaced in place, which is safe but needs more time and space"
        case .rename?: "such stores are refused, because `replace` is \"rename\""
        case .inPlace?: ""
        }
      guard !consequence.isEmpty else { return nil }
      return HopdError(
        .noLease,
        "hopd cannot see which programs have the stores of the watch \(watch.name) open: \(reason); \(consequence)",
        at: Place(file: watch.directory, key: "watch.\(watch.name).replace"),
        hint:
          "grant CAP_LEASE to the service (/usr/share/doc/hopd/stores.conf.example), or set replace = \"in-place\" to "
          + "silence this warning")
    }
  }

  /// Returns a file of the watch that another user owns.
  private static func stranger(in watch: Configuration.Watch, user: UInt32) -> FilePath? {
    let patterns = watch.include.map { Glob($0) }
    var seen = 0
    var stranger: FilePath?
    // The outlook is a warning, so a folder that cannot be read has none; the scan of the watch reports it.
    try? watch.directory.readEntries { entry in
      let bytes = UnsafeBufferPointer(start: entry.name, count: strlen(entry.name)).map { UInt8(bitPattern: $0) }
      guard patterns.contains(where: { $0.matches(bytes) }), let component = entry.component else { return true }
      seen += 1
      let path = watch.directory.appending(component)
      if let status = path.linkStatus(), status.st_mode & S_IFMT == S_IFREG, status.st_uid != user { stranger = path }
      return stranger == nil && seen < mostFiles
    }
    return stranger
  }

  /// Returns the type of a network file system, whose kernel modules support leases only in part; nil for a local one.
  private static func networkFileSystem(_ path: FilePath) -> String? {
    guard let file = fopen("/proc/self/mounts", "re") else { return nil }
    defer { fclose(file) }
    var best: (depth: Int, type: String) = (-1, "")
    var buffer = [CChar](repeating: 0, count: 8192)
    while fgets(&buffer, Int32(buffer.count), file) != nil {
      let line = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let words = line.split(separator: " ")
      guard words.count > 2 else { continue }
      let mount = FilePath(String(words[1]).replacing("\\040", with: " "))
      // Of two mounts on one directory, the last one is visible.
      if path.starts(with: mount), mount.components.count >= best.depth {
        best = (mount.components.count, String(words[2]))
      }
    }
    return ["nfs", "nfs4", "9p", "ceph", "cifs", "smb3", "afs"].contains(best.type) ? best.type : nil
  }

  /// Whether this process has a capability, by its number.
  static func hasCapability(_ number: Int) -> Bool {
    guard let bytes = ClaimFile.read("/proc/self/status") else { return geteuid() == 0 }
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") where line.hasPrefix("CapEff:") {
      let digits = line.dropFirst("CapEff:".count).filter { $0 != "\t" && $0 != " " }
      return (UInt64(digits, radix: 16) ?? 0) & (1 << UInt64(number)) != 0
    }
    return geteuid() == 0
  }
}
