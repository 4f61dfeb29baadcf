// Reads the keys with which hopd yields the machine to other programs: pressure and hours of the day.

import Diagnostics

extension ConfigurationReader {
  /// The hours in which migrations begin, as written in a table.
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

  /// The hours of `[daemon]` or of a watch. Keys that a watch does not set are those of `outer`, the hours of
  /// `[daemon]`.
  mutating func hours(_ scope: Scope, outer: Hours = Hours()) -> Hours {
    let hours = Hours(
      window: string(scope, "window", outer.window), timeZone: string(scope, "time_zone", outer.timeZone))
    // Reports a mistake at its place, even if no watch uses the window.
    if scope.entries["window"] != nil || scope.entries["time_zone"] != nil { _ = window(hours, scope) }
    return hours
  }

  /// Returns the zone of a name; "" is the system's.
  private mutating func zone(_ name: String) throws(HopdError) -> TimeZoneRules {
    if let known = zones[name] { return known }
    let zone = try TimeZoneRules.named(name.isEmpty ? nil : name)
    zones[name] = zone
    return zone
  }

  /// Parses the hours; nil for always, or after a mistake, which is reported if there is a `scope`.
  mutating func window(_ hours: Hours, _ scope: Scope?) -> TimeWindow? {
    if hours.window.isEmpty, hours.timeZone.isEmpty { return nil }
    let zone: TimeZoneRules
    do throws(HopdError) {
      zone = try self.zone(hours.timeZone)
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
