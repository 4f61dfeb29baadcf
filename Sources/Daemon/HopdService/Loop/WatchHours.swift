// The windows of hours of the watches. The wall clock decides, so it is read each time, in seconds since 1970.

import HopdConfiguration

/// Decides which watches may begin no migration now.
struct WatchHours {
  /// When closed windows open, by watch, as far as it was computed.
  private var openings: [String: Int64] = [:]

  /// Returns the names of the watches whose window is closed.
  mutating func closed(_ watches: [Configuration.Watch], at moment: Int64) -> Set<String> {
    let closed = Set(watches.filter { $0.window?.isOpen(at: moment) == false }.map(\.name))
    // Times in the past belong to windows that are open, or to a clock that was set.
    openings = openings.filter { $0.value > moment && closed.contains($0.key) }
    return closed
  }

  /// Returns the time until the hours are checked again: until the first of these closed windows opens, and at most a
  /// minute, because clocks can be set.
  mutating func pause(_ watches: [Configuration.Watch], at moment: Int64) -> Duration {
    for watch in watches where openings[watch.name] == nil {
      openings[watch.name] = watch.window?.nextOpening(from: moment)
    }
    let next = watches.compactMap { openings[$0.name] }.min()
    return .seconds(next.map { min(max($0 &- moment, 1), 60) } ?? 60)
  }
}
