// Reads the `Configuration` from the merged tree, by the rows of the table of keys. It reports all mistakes at once, so
// that an operator can repair a file in one go.

import Diagnostics
import SystemPackage
import TOMLDocuments

/// Reads the tree and collects its mistakes and unknown keys.
struct ConfigurationReader {
  private(set) var errors: [HopdError] = []
  private(set) var warnings: [HopdError] = []
  /// Zones that were read, by name; "" is the system's.
  private var zones: [String: TimeZoneRules] = [:]

  /// Reads everything; the value is valid only if `errors` is empty afterwards.
  mutating func read(_ root: TOMLNode, watches: [TOMLNode]) -> Configuration {
    var configuration = Configuration()
    let top = ConfigurationEntry(root)
    read(top, Configuration.keys, into: &configuration)
    // A mistake is reported at its place, even if no watch uses the window.
    if let daemon = top["daemon"] { _ = window(configuration.daemon.hours, daemon) }
    configuration.watches = watches.map { node in
      var watch = Configuration.Watch()
      // Hours and commands that a watch does not set are those of `[daemon]`.
      watch.hours = configuration.daemon.hours
      watch.commands = configuration.daemon.commands
      var name = "?"
      if case .string(let text)? = ConfigurationEntry(node)["name"]?.node.value { name = text }
      let entry = ConfigurationEntry(node, path: "watch", shown: "watch.\(name)")
      read(entry, Configuration.Watch.keys, into: &watch)
      watch.window = window(watch.hours, entry)
      return watch
    }
    configuration.policies = policies(of: top)
    return configuration
  }

  /// Reads the keys of a table that are there; the values of the others stay.
  mutating func read<Root>(_ table: ConfigurationEntry, _ keys: [Key<Root>], into root: inout Root) {
    let known = keys.map(\.name)
    var table = table
    for entry in table.all where !known.contains(entry.name) {
      let home = table.outer.last { $0.keys.contains(entry.name) }.map { home in
        "it is a key of \(home.path == "watch" ? "[[watch]]" : "[\(home.path)]"): move it above [\(table.path)]"
      }
      let near = NearestName.among(known, to: entry.name).map { "use `\($0)`" }
      warnings.append(
        HopdError(.unknownKey, "unknown key, ignored", at: entry.node.place(key: entry.shown), hint: home ?? near))
    }
    if !table.path.isEmpty { table.outer.append((table.path, known)) }
    for key in keys { key.read(&root, table, &self) }
  }

  /// The table of that name; nil if it is not there, or not a table.
  mutating func table(_ name: String, of table: ConfigurationEntry) -> ConfigurationEntry? {
    guard let entry = table[name] else { return nil }
    if case .table = entry.node.value { return entry }
    return wrong(entry, "must be a table, not \(entry.node.kind)", hint: "write a [\(entry.path)] section")
  }

  /// Reads `[policies]`: one table per class.
  private mutating func policies(of top: ConfigurationEntry) -> [Configuration.Policy] {
    (table("policies", of: top)?.all ?? []).compactMap { entry in
      guard case .table = entry.node.value else {
        return wrong(
          entry, "must be a table, not \(entry.node.kind)",
          hint: "write \"\(entry.name)\" = { command = [\"/usr/lib/hopd/policies/\(entry.name.lowercased())\"] }")
      }
      var policy = Configuration.Policy(name: entry.name)
      read(entry, Configuration.Policy.keys, into: &policy)
      // A relative path would depend on the working directory; a plain name is looked up in PATH.
      let program = policy.command.first ?? ""
      if program.isEmpty || (program.contains("/") && !FilePath(program).isAbsolute) {
        report(
          entry["command"] ?? entry.entry("command", entry.node),
          "must start with the absolute path or the plain name of a program",
          write: "[\"/usr/lib/hopd/policies/NAME\"]")
      }
      return policy
    }
  }

  // MARK: Error reporting

  /// Reports a mistake. The hint is `hint`, or to write `text`, or the default.
  mutating func report(
    _ entry: ConfigurationEntry, _ message: String, write text: String? = nil, hint: String? = nil
  ) {
    errors.append(
      HopdError(
        .configurationInvalid, "`\(entry.name)` \(message)", at: entry.node.place(key: entry.shown),
        hint: hint ?? "write \(entry.name) = \(text ?? entry.standard)"))
  }

  /// Reports a mistake; returns no value.
  mutating func wrong<Value>(
    _ entry: ConfigurationEntry, _ message: String, write text: String? = nil, hint: String? = nil
  ) -> Value? {
    report(entry, message, write: text, hint: hint)
    return nil
  }

  /// Returns a path; reports it if it is not absolute.
  mutating func path(_ text: String, _ entry: ConfigurationEntry) -> FilePath {
    let path = FilePath(text).lexicallyNormalized()
    if !path.isAbsolute || text.utf8.contains(0) {
      report(entry, "\"\(text)\" is not an absolute path", hint: "write an absolute path, starting with /")
    }
    return path
  }

  /// Parses the hours of a table; nil for always, or after a mistake, which is reported in the table that has it.
  mutating func window(_ hours: Configuration.Hours, _ scope: ConfigurationEntry) -> TimeWindow? {
    if hours.window.isEmpty, hours.timeZone.isEmpty { return nil }
    let (window, timeZone) = (scope["window"], scope["time_zone"])
    do throws(HopdError) {
      let zone = try zone(hours.timeZone)
      if hours.window.isEmpty { return nil }
      if let window = TimeWindow(hours.window, zone: zone) { return window }
      if let entry = window ?? timeZone {
        report(
          entry, "\"\(hours.window.printableLine)\" is not a time window",
          hint: "write window = \"22:00-06:00\", or \"\" for any time")
      }
    } catch {
      if let entry = timeZone ?? window {
        report(entry, "cannot be used: \(error.message)", hint: error.hint ?? "")
      }
    }
    return nil
  }

  private mutating func zone(_ name: String) throws(HopdError) -> TimeZoneRules {
    if let known = zones[name] { return known }
    let zone = try TimeZoneRules.named(name.isEmpty ? nil : name)
    zones[name] = zone
    return zone
  }
}
