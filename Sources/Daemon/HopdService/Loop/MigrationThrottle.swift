// The throttle: reads the machine's pressure while there is work, halts migrations above the limits, and logs that.

import HopdConfiguration
import Logging
import SystemdSupport

/// Halts migrations while the machine's pressure is above the limits.
struct MigrationThrottle {
  private let files: PressureFiles
  private let logger: Logger
  private var pressure = PressureThrottle()
  private var readAt: ContinuousClock.Instant?
  private var isMissingReported = false
  /// Whether pressure halts migrations; an operator can switch that off.
  var isOn = true

  init(_ files: PressureFiles, logger: Logger) { (self.files, self.logger) = (files, logger) }

  /// Whether migrations must halt.
  var isHalting: Bool { pressure.isHalting }
  /// Why they halt, such as "I/O pressure above 40%"; nil if they do not.
  var reason: String? { pressure.reason }
  /// The same with the current value.
  var detail: String? { pressure.detail }

  /// Reads the pressure, at most once a second.
  mutating func update(_ limits: Configuration.Throttle, hasWork: Bool, now: ContinuousClock.Instant) {
    guard limits.isSet, isOn, hasWork else { return pressure.rest() }
    if let last = readAt, now < last.advanced(by: .seconds(1)) { return }
    readAt = now
    switch pressure.take(files.read(), limits: limits, now: now) {
    case .halted(let reason)?:
      logger.event(
        .workThrottled, "migrations throttled: \(reason); they resume automatically below the limit",
        fields: [.hint: "run `hopctl set throttle off` to resume them now"])
    case .over?: logger.event(.workThrottled, "migrations resumed: the pressure has been low for a minute")
    case nil: break
    }
  }

  /// Forgets the pressure, because other limits are in force.
  mutating func reset() { pressure.rest() }

  /// Warns once if limits are set but the kernel reports no pressure.
  mutating func warnIfMissing(_ limits: Configuration.Throttle) {
    guard limits.isSet, !isMissingReported, files.read() == nil else { return }
    isMissingReported = true
    logger.event(
      .configurationWarning,
      "the kernel does not report pressure (/proc/pressure); ignoring [throttle]",
      fields: [.hint: "boot the kernel with psi=1, or remove [throttle]"])
  }
}
