// Reads the kernel's pressure stall information: the share of time that programs of this machine wait for a resource
// (Documentation/accounting/psi.rst). Read at most once a second, and only while there is work.

import Glibc
import HopdConfiguration
import SystemPackage

/// The share of the last ten seconds in which some program waited, in per cent; nil if the kernel does not report it.
package struct Pressure: Sendable, Hashable {
  /// For disks.
  package var io: Double?
  /// For processors.
  package var cpu: Double?
  /// For memory.
  package var memory: Double?
}

/// The kernel's pressure files.
package struct PressureFiles: Sendable {
  private let folders: [(folder: FilePath, ending: String)]

  /// The files of the system. If /proc has none, or hides them, the root control group has the same values.
  package init() { folders = [("/proc/pressure", ""), ("/sys/fs/cgroup", ".pressure")] }

  /// The files of one folder, `io`, `cpu` and `memory`.
  package init(folder: FilePath) { folders = [(folder, "")] }

  /// Reads the current pressure; nil if this kernel reports none.
  package func read() -> Pressure? {
    let found = Pressure(io: share("io"), cpu: share("cpu"), memory: share("memory"))
    return found == Pressure() ? nil : found
  }

  private func share(_ resource: String) -> Double? {
    folders.lazy.compactMap { Self.text(of: $0.folder.appending(resource + $0.ending)) }.first.flatMap(Self.share)
  }

  /// Parses `avg10` of the line `some`.
  static func share(_ text: String) -> Double? {
    for line in text.split(separator: "\n") where line.hasPrefix("some ") {
      guard let word = line.split(separator: " ").first(where: { $0.hasPrefix("avg10=") }),
        let value = Double(word.dropFirst(6)), value.isFinite
      else { return nil }
      return min(max(value, 0), 100)
    }
    return nil
  }

  /// Reads a kernel file with one call.
  private static func text(of file: FilePath) -> String? {
    let descriptor = file.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 1024)
    // A kernel started with psi=0 has the files, but read(2) fails.
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : nil
  }
}

/// Decides whether work halts because of the pressure, and what to log: once when work halts, and once when the
/// pressure has been low for a minute, because halted work itself lowers the pressure.
struct PressureThrottle: Sendable {
  typealias Instant = ContinuousClock.Instant

  /// An event to log.
  enum News: Equatable {
    /// Work halts for the given reason.
    case halted(String)
    /// Work has continued for a minute.
    case over
  }

  /// Why work halts, such as "I/O pressure above 40%"; nil if it does not.
  private(set) var reason: String?
  /// The same with the current value.
  private(set) var detail: String?
  private var isReported = false
  private var quietSince: Instant?

  /// Whether work must halt.
  var isHalting: Bool { reason != nil }

  /// How long work must have continued before that is logged.
  static let quiet = Duration.seconds(60)

  /// Takes in a reading, nil if the kernel reports none; returns what to log.
  mutating func take(_ pressure: Pressure?, limits: Configuration.Throttle, now: Instant) -> News? {
    let found: [(name: String, value: Double?, limit: Int)] = [
      ("I/O", pressure?.io, limits.ioPressure), ("processor", pressure?.cpu, limits.cpuPressure),
      ("memory", pressure?.memory, limits.memoryPressure),
    ]
    let over = found.first { $0.limit > 0 && ($0.value ?? 0) > Double($0.limit) }
    reason = over.map { "\($0.name) pressure above \($0.limit)%" }
    detail = over.map { "\($0.name) pressure \(Int(($0.value ?? 0).rounded(.up)))%, limit \($0.limit)%" }
    if let reason {
      quietSince = nil
      if isReported { return nil }
      isReported = true
      return .halted(reason)
    }
    guard isReported else { return nil }
    guard let since = quietSince else {
      quietSince = now
      return nil
    }
    guard now - since >= Self.quiet else { return nil }
    (isReported, quietSince) = (false, nil)
    return .over
  }

  /// Resets the throttle when there is no work.
  mutating func rest() { self = PressureThrottle() }
}
