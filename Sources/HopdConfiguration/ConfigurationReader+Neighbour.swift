// The keys by which hopd leaves the machine to others: pressure, hours of the day, whose turn it is.

import Diagnostics

extension ConfigurationReader {
  /// What a table says of the hours in which migrations begin; what it does not say is as in `outer`.
  struct Hours {
    /// "22:00-06:00"; empty for always.
    var window = ""
    /// Name of a zone; empty for the system's.
    var timeZone = ""
  }

  mutating func throttle(_ scope: Scope) -> Configuration.Throttle {
    Configuration.Throttle(
      ioPressure: integer(scope, "io_pressure", 0, in: 0...100),
      cpuPressure: integer(scope, "cpu_pressure", 0, in: 0...100),
      memoryPressure: integer(scope, "memory_pressure", 0, in: 0...100))
  }

  /// The hours of `[daemon]` or of a watch. A watch that says nothing has those of `[daemon]`.
  mutating func hours(_ scope: Scope, outer: Hours = Hours()) -> Hours {
    let hours = Hours(
      window: string(scope, "window", outer.window), timeZone: string(scope, "time_zone", outer.timeZone))
    // Told where it stands, also where no watch uses it.
    if scope.entries["window"] != nil || scope.entries["time_zone"] != nil { _ = window(hours, scope) }
    return hours
  }

  /// The window that hours make; nil for always.
  mutating func window(_ hours: Hours, _ scope: Scope?) -> TimeWindow? {
    let zone: TimeZoneRules
    do throws(HopdError) {
      zone = try TimeZoneRules.named(hours.timeZone.isEmpty ? nil : hours.timeZone)
    } catch {
      if let scope {
        wrong(
          scope, scope.entries["time_zone"] == nil ? "window" : "time_zone", "cannot be used: \(error.message)",
          error.hint ?? "")
      }
      return nil
    }
    if hours.window.isEmpty { return nil }
    if let window = TimeWindow(hours.window, zone: zone) { return window }
    if let scope {
      wrong(
        scope, scope.entries["window"] == nil ? "time_zone" : "window",
        "\"\(hours.window.printableLine)\" is not a window of hours",
        "write window = \"22:00-06:00\", or \"\" for always")
    }
    return nil
  }
}
