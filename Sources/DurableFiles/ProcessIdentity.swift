// The identity of a process, by which another process can find out whether it has ended. A number alone is given again
// to another process, and means nothing in another container or on another machine.

import CLinux
import Glibc
import SystemPackage

/// A process of one boot of one kernel, for as long as that runs.
package struct ProcessIdentity: Hashable, Sendable {
  /// Boot id of the kernel; empty where it is hidden.
  package let boot: String
  /// Number of the namespace in which `process` counts; 0 where it is hidden.
  package let space: UInt64
  /// Its number.
  package let process: Int32
  /// When it was started, in the kernel's ticks since the boot; 0 where that is hidden.
  package let started: UInt64

  /// Names a process.
  package init(boot: String, space: UInt64, process: Int32, started: UInt64) {
    (self.boot, self.space, self.process, self.started) = (boot, space, process, started)
  }

  /// This process.
  package static func current() -> ProcessIdentity {
    let own = getpid()
    var found = stat()
    let space = stat("/proc/self/ns/pid", &found) == 0 ? UInt64(found.st_ino) : 0
    let boot = (try? LinuxFileSystem().bootIdentifier()) ?? ""
    return ProcessIdentity(
      boot: boot.filter { $0 != "-" }, space: space, process: own, started: startTime(of: own) ?? 0)
  }

  /// The name of this machine in its network; empty where it has none. For people, and to distinguish the folders of
  /// several machines: it proves nothing.
  package static func hostName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Whether the process has provably ended. False wherever that cannot be determined: under another boot, in another
  /// namespace, or where these are hidden.
  package func isGone(seenFrom observer: ProcessIdentity) -> Bool {
    guard !boot.isEmpty, boot == observer.boot, space != 0, space == observer.space, process > 0 else { return false }
    if kill(process, 0) == -1, Glibc.errno == ESRCH { return true }
    guard started != 0, let now = Self.startTime(of: process) else { return false }
    return now != started
  }

  /// The start of a process, from /proc/PID/stat; nil where that cannot be read.
  private static func startTime(of process: Int32) -> UInt64? {
    guard let bytes = try? LinuxFileSystem().read(FilePath("/proc/\(process)/stat"), limit: 4096) else { return nil }
    // The program's name is in parentheses and may contain any character: the fields begin after the last parenthesis
    // (proc(5)).
    let text = String(decoding: bytes, as: UTF8.self)
    guard let bracket = text.lastIndex(of: ")") else { return nil }
    let fields = text[bracket...].split(separator: " ")
    return fields.count > 20 ? UInt64(fields[20]) : nil
  }
}
