// Holds migrations back for a pause, the machine's pressure, or the hour of the day. Pauses and pressure also halt
// running migrations between two chunks; outside its hours a watch only begins no new ones.

import Diagnostics
import Glibc
import HopdConfiguration
import Logging
import MigrationPipeline
import SystemPackage
import SystemdSupport

extension DaemonCoordinator {
  /// Checks pauses, hours and pressure, and halts running migrations or lets them continue.
  func updateHolds(now: ContinuousClock.Instant) {
    updatePauseFile()
    updateHours(now: now)
    updatePressure(now: now)
    for job in running.values where job.ticket.step == .migrate { job.stop.hold(isHeld(job.ticket.store)) }
  }

  /// Whether the migration of a store must halt.
  func isHeld(_ store: FoundStore) -> Bool { isPaused || throttle.isHolding || scheduler.isPaused(store) }

  /// Whether no migration may begin.
  var holdsAll: Bool { isPaused || throttle.isHolding || scheduler.pauses.all }

  /// Whether any store is being migrated or waits for its migration.
  private var hasWork: Bool {
    scheduler.counts.waiting > 0 || running.values.contains { $0.ticket.step == .migrate }
  }

  private func updatePauseFile() {
    let wasPaused = isPaused
    if surroundings.pauseFile.withPlatformString({ access($0, F_OK) }) == 0 {
      isPaused = true
    } else if errno == ENOENT || errno == ENOTDIR {
      isPaused = false
    }  // else it cannot be looked at, and what was known stays true
    guard isPaused != wasPaused else { return }
    let file = surroundings.pauseFile.printable
    logger.notice(
      isPaused
        ? "paused: no migration begins while \(file) exists, and those at work halt between two chunks"
        : "migrations go on: \(file) is gone")
  }

  // MARK: Pressure

  private func updatePressure(now: ContinuousClock.Instant) {
    let limits = setup.configuration.throttle
    guard limits.isSet, isThrottled, hasWork else {
      throttle.rest()
      return
    }
    if let last = pressureAt, now < last.advanced(by: .seconds(1)) { return }
    pressureAt = now
    let pressure = surroundings.pressure.read()
    switch throttle.take(pressure, limits: limits, now: now) {
    case .halted(let reason)?:
      logger.event(
        .workThrottled, "migrations halt between two chunks: \(reason); they go on by themselves below it",
        fields: [.hint: "`hopctl set throttle off` lets them go on now"])
    case .over?: logger.event(.workThrottled, "migrations go on: the pressure has been low for a minute")
    case nil: break
    }
  }

  /// Warns once if limits are set but the kernel reports no pressure.
  func tellPressure() {
    guard setup.configuration.throttle.isSet, !isPressureMissingTold, surroundings.pressure.read() == nil else {
      return
    }
    isPressureMissingTold = true
    logger.event(
      .configurationWarning,
      "this kernel tells no pressure (/proc/pressure), so [throttle] has no effect; migrations run without it",
      fields: [.hint: "start the kernel with psi=1, or leave [throttle] out"])
  }

  // MARK: Hours

  /// Updates which watches may begin no migration now. The wall clock decides, so it is read each time.
  private func updateHours(now: ContinuousClock.Instant) {
    let windows = setup.configuration.watches.filter { $0.window != nil }
    guard !windows.isEmpty else { return scheduler.close([]) }
    let moment = Self.wallTime()
    let closed = windows.filter { $0.window?.isOpen(at: moment) == false }
    scheduler.close(Set(closed.map(\.name)))
    // Times in the past belong to windows that are open, or to a clock that was set.
    hoursUntil = hoursUntil.filter { opening in opening.value > moment && closed.contains { $0.name == opening.key } }
  }

  /// When the window of a watch opens, in seconds since 1970; computed once.
  private func opening(of watch: Configuration.Watch) -> Int64? {
    if let known = hoursUntil[watch.name] { return known }
    let found = watch.window?.nextOpening(from: Self.wallTime())
    hoursUntil[watch.name] = found
    return found
  }

  /// When to check the hours again: at the next opening, and at least each minute, because clocks can be set.
  func nextHour(now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    guard !scheduler.closed.isEmpty, scheduler.counts.waiting > 0 else { return nil }
    let moment = Self.wallTime()
    let openings = setup.configuration.watches.filter { scheduler.closed.contains($0.name) }.compactMap(opening)
    let pause = openings.map { $0 &- moment }.min().map { min(max($0, 1), 60) } ?? 60
    return now.advanced(by: .seconds(pause))
  }

  // MARK: Words

  /// What migrations wait for, such as "I/O pressure above 40 %" or "library until 22:00".
  var waits: [String] { (throttle.reason.map { [$0] } ?? []) + hourWaits }

  /// Watches that wait for their window to open, as text.
  private var hourWaits: [String] {
    let waiting = scheduler.waitingForTheirHour()
    guard !waiting.isEmpty else { return [] }
    let watches = setup.configuration.watches.filter { waiting.contains($0.name) }
    let texts = watches.map { watch -> String in
      guard let window = watch.window else { return "" }
      // The zone is named if it is not the system's.
      return "until \(window.opensAt)" + (window.zone.name.map { " \($0)" } ?? "")
    }
    // One text if it is the same for all watches.
    if let first = texts.first, watches.count == setup.configuration.watches.count, texts.allSatisfy({ $0 == first }) {
      return [first]
    }
    return zip(watches, texts).map { "\($0.name) \($1)" }
  }

  /// The same for the status line.
  var waitsText: [String] {
    (throttle.detail.map { ["halted: \($0)"] } ?? [])
      + (hourWaits.isEmpty ? [] : ["waits \(hourWaits.joined(separator: ", "))"])
  }
}
