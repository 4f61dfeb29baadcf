// The offset of local time from UTC at any moment, as the C library knows it. glibc has one time zone per process, in
// the environment variable TZ, and windows may have several. So the offsets are asked for once, when the configuration
// is read; afterwards nothing depends on the variable.

import Diagnostics
import Glibc
import Synchronization
import SystemPackage

/// A time zone: its offsets from 1970 to 2106.
package struct TimeZoneRules: Sendable, Hashable {
  private struct Change: Sendable, Hashable {
    /// Seconds since 1970.
    var moment: Int64
    /// The offset from then on, in seconds east of UTC.
    var offset: Int64
  }

  /// The name under which it was loaded; nil for the system's zone.
  package let name: String?
  /// In the order of time; the first one holds for all time before it too.
  private let changes: [Change]

  /// UTC.
  package static let utc = TimeZoneRules(name: "UTC", changes: [Change(moment: 0, offset: 0)])

  private init(name: String?, changes: [Change]) { (self.name, self.changes) = (name, changes) }

  /// Returns the seconds east of UTC at a time in seconds since 1970.
  package func offset(at moment: Int64) -> Int64 {
    var (low, high) = (0, changes.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if changes[middle].moment <= moment { low = middle } else { high = middle }
    }
    return changes[low].offset
  }

  // MARK: C library

  /// Held while TZ has another value than the process's own.
  static let variable = Mutex(())
  private static let day: Int64 = 86_400

  /// Creates the zone that a value of TZ stands for (tzset(3)).
  init(name: String?, variable value: String) {
    // getenv(3) in other threads stays safe: TZ is the only variable that this process ever adds, and it is never
    // removed again, so later calls exchange a pointer. A process without TZ keeps the value that means the same as
    // none.
    let changes = Self.variable.withLock { _ in
      let own = getenv("TZ").map { String(cString: $0) } ?? ":\(Self.local)"
      setenv("TZ", value, 1)
      tzset()
      defer {
        setenv("TZ", own, 1)
        tzset()
      }
      return Self.changes()
    }
    self.init(name: name, changes: changes)
  }

  /// Returns the changes in the zone that the C library has now. No zone changes twice within a day.
  private static func changes() -> [Change] {
    var found = [Change(moment: 0, offset: offset(0))]
    for start in stride(from: 0, to: Int64(UInt32.max), by: Int(day)) {
      let next = offset(start + day)
      guard next != found[found.count - 1].offset else { continue }
      var (before, after) = (start, start + day)
      while after - before > 1 {
        let middle = (before + after) / 2
        if offset(middle) == next { after = middle } else { before = middle }
      }
      found.append(Change(moment: after, offset: next))
    }
    return found
  }

  private static func offset(_ moment: Int64) -> Int64 {
    var (time, parts) = (time_t(moment), tm())
    return localtime_r(&time, &parts) == nil ? 0 : Int64(parts.tm_gmtoff)
  }

  // MARK: Files

  /// The directory of zone files, and the file of the system's zone.
  private static let directory: FilePath = "/usr/share/zoneinfo"
  private static let local: FilePath = "/etc/localtime"

  /// Returns the zone of a name; for nil the system's zone, which is UTC if none is set. Throws if there is no such
  /// zone: the C library would take an unknown name for UTC.
  package static func named(_ name: String?) throws(HopdError) -> TimeZoneRules {
    guard let name else { return TimeZoneRules(name: nil, variable: ":\(local)") }
    // A name is a path below the directory; it must not lead out of it.
    let isName =
      !name.isEmpty && !name.hasPrefix("/") && !name.split(separator: "/").contains("..")
      && name.utf8.allSatisfy { byte in
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "/_+-".utf8.contains(byte)
      }
    if isName, isZone(directory.appending(name)) {
      return TimeZoneRules(name: name, variable: ":\(directory.appending(name))")
    }
    if name == "UTC" { return utc }
    throw HopdError(
      .configurationInvalid, "this system has no time zone \"\(name.printableLine)\"",
      hint: "run `timedatectl list-timezones` to list them, or install tzdata")
  }

  /// Whether a file begins as a zone file (RFC 9636, 3.1).
  private static func isZone(_ file: FilePath) -> Bool {
    // Nonblocking: a pipe instead of a file must not block the start.
    let descriptor = file.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var start: [UInt8] = [0, 0, 0, 0]
    return read(descriptor, &start, 4) == 4 && start.elementsEqual("TZif".utf8)
  }
}
