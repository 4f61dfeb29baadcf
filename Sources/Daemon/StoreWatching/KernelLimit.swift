// The messages for the kernel's limits on inotify: the number, the sysctl, and what happens instead.

import Diagnostics
import Glibc
import SystemPackage

enum KernelLimit {
  /// The error to report if the kernel refuses a watch (ENOSPC) or an instance (EMFILE).
  static func error(_ code: Errno, watch: WatchedDirectory, armed: Int) -> HopdError {
    let name = code == .noSpace ? "max_user_watches" : "max_user_instances"
    let number = read("/proc/sys/fs/inotify/\(name)").map { " (\($0))" } ?? ""
    return HopdError(
      .watchLimit,
      "inotify limit \(name)\(number) reached: changes in \(armed) directories of this watch are seen immediately, "
        + "others by the rescan every \(watch.rescan)",
      at: Place(file: watch.path, key: "watch.\(watch.name).directory"),
      hint: "run `sysctl fs.inotify.\(name)=1048576`, and make it permanent in /etc/sysctl.d")
  }

  /// Reads a number from a file of /proc; nil if the unit hides the file (ProcSubset=pid).
  private static func read(_ path: String) -> Int? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 32)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    guard count > 0 else { return nil }
    return Int(String(decoding: buffer.prefix(count).prefix { $0 >= 0x30 && $0 <= 0x39 }, as: UTF8.self))
  }
}
