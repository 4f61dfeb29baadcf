// Reads the `Configuration` from the merged tree: each key with its type, range and default. It reports all mistakes at
// once, so that an operator can repair a file in one go.

import Diagnostics
import MappingModel
import MigrationPlanning
import StoreReplacement
import StoreVerification
import SystemPackage
import TOMLDocuments

/// Reads the tree and collects its mistakes and unknown keys.
struct ConfigurationReader {
  private(set) var errors: [HopdError] = []
  private(set) var warnings: [HopdError] = []
  /// The hours of `[daemon]`, which are the default of each watch.
  private var daemonHours = Hours()
  /// Zones that were read, by name; "" is the system's.
  var zones: [String: TimeZoneRules] = [:]

  /// A table that is being read: its entries, its path in the key list, its path in messages.
  struct Scope {
    var entries: [String: TOMLNode]
    var path: String
    var shown: String

    func shown(_ key: String) -> String { shown.isEmpty ? key : "\(shown).\(key)" }
  }

  /// Reads everything; the value is valid only if `errors` is empty afterwards.
  mutating func read(_ root: TOMLNode, watches: [TOMLNode]) -> Configuration {
    guard case .table(let entries) = root.value else {
      return Configuration(daemon: daemon(Scope(entries: [:], path: "daemon", shown: "daemon")), watches: [])
    }
    let top = Scope(entries: entries, path: "", shown: "")
    reportUnknown(top)
    let daemon = daemon(table(top, "daemon"))
    let throttle = throttle(table(top, "throttle"))
    let control = table(top, "control")
    let standard = Configuration.Control.standard
    let socket = control.entries["socket"] == nil ? standard : optionalPath(control, "socket")
    return Configuration(
      daemon: daemon, control: Configuration.Control(socket: socket), throttle: throttle,
      watches: watches.map { watch($0) },
      policies: policies(top))
  }

  // MARK: Tables

  private mutating func daemon(_ scope: Scope) -> Configuration.Daemon {
    daemonHours = hours(scope)
    return Configuration.Daemon(
      logLevel: choice(scope, "log_level", .info),
      jobs: integer(scope, "jobs", 2, in: 1...256),
      memoryLimit: bytes(scope, "memory_limit", 64 << 20, in: (1 << 20)...(1 << 46)),
      metricsFile: optionalPath(scope, "metrics_file"))
  }

  private mutating func watch(_ node: TOMLNode) -> Configuration.Watch {
    var name = ""
    var entries: [String: TOMLNode] = [:]
    if case .table(let all) = node.value { entries = all }
    if case .string(let text)? = entries["name"]?.value { name = text }
    let scope = Scope(entries: entries, path: "watch", shown: "watch.\(name.isEmpty ? "?" : name)")
    reportUnknown(scope)
    let target = string(scope, "target", "current")
    if target.isEmpty { wrong(scope, "target", "is empty", "write \"current\" or the name of a version") }
    let hours = hours(scope, outer: daemonHours)
    return Configuration.Watch(
      name: name,
      directory: path(scope, "directory") ?? missing(scope, "directory", node, "directory = \"/srv/stores\""),
      include: patterns(scope, "include", ["*.sqlite", "*.store"]),
      exclude: patterns(scope, "exclude", []),
      recursive: boolean(scope, "recursive", false),
      models: models(scope, node),
      mappings: strings(scope, "mappings", []).map { absolute($0, scope, "mappings") },
      versions: strings(scope, "versions", []),
      target: target == "current" ? nil : target,
      infer: boolean(scope, "infer", true),
      renames: renames(scope),
      route: choice(scope, "route", .progressive),
      settle: duration(scope, "settle", .seconds(2), in: .milliseconds(1) ... .seconds(86_400)),
      rescan: duration(scope, "rescan", .seconds(600), in: .seconds(1) ... .seconds(30 * 86_400)),
      priority: integer(scope, "priority", 0, in: -1000...1000), window: window(hours, nil),
      migration: migration(table(scope, "migration")),
      backup: backup(table(scope, "backup")))
  }

  private mutating func migration(_ scope: Scope) -> Configuration.Migration {
    let retry = table(scope, "retry")
    let invalidRows = invalidRows(scope)
    return Configuration.Migration(
      chunkTime: duration(scope, "chunk_time", .milliseconds(250), in: .milliseconds(1) ... .seconds(60)),
      chunkRowsMax: integer(scope, "chunk_rows_max", 50_000, in: 1...10_000_000),
      invalidRows: invalidRows.standard,
      invalidRowsByEntity: invalidRows.byEntity,
      unmappedEntities: choice(scope, "unmapped_entities", .fail),
      history: choice(scope, "history", .migrate),
      cloudKit: choice(scope, "cloudkit", .refuse),
      verify: choice(scope, "verify", .quick),
      replace: replacement(scope),
      journalMode: choice(scope, "journal_mode", .keep),
      joinTables: joinTables(scope),
      reference: optionalPath(scope, "reference"),
      retry: Configuration.Retry(
        attempts: integer(retry, "attempts", 5, in: 1...1000),
        backoff: duration(retry, "backoff", .seconds(30), in: .milliseconds(1) ... .seconds(86_400)),
        max: duration(retry, "max", .seconds(3600), in: .milliseconds(1) ... .seconds(30 * 86_400))))
  }

  /// `replace`: with "auto", the default, hopd chooses for each store.
  private mutating func replacement(_ scope: Scope) -> ReplacementMode? {
    guard let node = scope.entries["replace"] else { return nil }
    if case .string(let text) = node.value {
      if text == "auto" { return nil }
      if let mode = ReplacementMode(rawValue: text) { return mode }
    }
    wrong(scope, "replace", "must be one of auto, rename, in-place", "write replace = \"auto\"")
    return nil
  }

  private mutating func backup(_ scope: Scope) -> BackupRule {
    BackupRule(
      keep: integer(scope, "keep", 1, in: 0...10_000),
      keepFor: duration(scope, "keep_for", .zero, in: .zero ... .seconds(36_600 * 86_400)),
      directory: optionalPath(scope, "directory"))
  }

  /// `invalid_rows`: one rule for all entities, or a table of entities in which "*" means all others.
  private mutating func invalidRows(
    _ scope: Scope
  ) -> (standard: InvalidRowsRule, byEntity: [String: InvalidRowsRule]) {
    guard case .table(let entries)? = scope.entries["invalid_rows"]?.value else {
      return (choice(scope, "invalid_rows", .fail), [:])
    }
    let inner = Scope(
      entries: entries, path: "\(scope.path).invalid_rows", shown: scope.shown("invalid_rows"))
    var rules: [String: InvalidRowsRule] = [:]
    for entity in entries.keys.sorted() { rules[entity] = choice(inner, entity, .fail) }
    let standard = rules.removeValue(forKey: "*") ?? .fail
    return (standard, rules)
  }

  /// `[policies]`: one table or command per class.
  private mutating func policies(_ top: Scope) -> [Configuration.Policy] {
    guard let node = top.entries["policies"] else { return [] }
    guard case .table(let entries) = node.value else {
      wrong(top, "policies", "must be a table, not \(node.kind)", "write a [policies] section")
      return []
    }
    let scope = Scope(entries: entries, path: "policies", shown: "policies")
    return entries.sorted { $0.key < $1.key }.map { name, node in
      guard case .table(let values) = node.value else {
        wrong(
          scope, name, "must be a table, not \(node.kind)",
          "write \"\(name)\" = { command = [\"/usr/lib/hopd/policies/\(name.lowercased())\"] }")
        return Configuration.Policy(name: name, command: [], timeout: .seconds(30), memory: 0)
      }
      let inner = Scope(entries: values, path: "policies.\(name)", shown: "policies.\(name)")
      for (key, node) in values.sorted(by: { $0.key < $1.key })
      where !["command", "timeout", "memory"].contains(key) {
        warnings.append(HopdError(.unknownKey, "unknown key, ignored", at: node.place(key: inner.shown(key))))
      }
      let command = strings(inner, "command", [])
      // A relative path would depend on the working directory; a plain name is looked up in PATH.
      let program = command.first ?? ""
      if program.isEmpty || (program.contains("/") && !FilePath(program).isAbsolute) {
        wrong(
          inner, "command", "must begin with the absolute path or the plain name of a program",
          "write command = [\"/usr/lib/hopd/policies/NAME\"]", at: values["command"] ?? node)
      }
      return Configuration.Policy(
        name: name, command: command,
        timeout: duration(inner, "timeout", .seconds(30), in: .milliseconds(100) ... .seconds(86_400)),
        memory: bytes(inner, "memory", 256 << 20, in: (1 << 20)...(1 << 46)))
    }
  }

  private mutating func joinTables(_ scope: Scope) -> [String] {
    let names = strings(scope, "join_tables", [])
    for name in names
    where name.split(separator: ".").count != 2 || name.utf8.count(where: { $0 == UInt8(ascii: ".") }) != 1 {
      wrong(
        scope, "join_tables", "\"\(name)\" names no relationship of an entity",
        "write join_tables = [\"Entity.relationship\"]")
    }
    return names
  }

  private mutating func renames(_ scope: Scope) -> RenameRules {
    var rules = RenameRules(namesCount: boolean(scope, "no_rename", false))
    for text in strings(scope, "renames", []) {
      if let (old, new) = RenameRules.parse(text) {
        rules.renames[old] = new
      } else {
        wrong(
          scope, "renames", "\"\(text)\" is not a renaming",
          "write renames = [\"Entity.old=new\"], or \"Old=New\" for an entity")
      }
    }
    return rules
  }

  private mutating func models(_ scope: Scope, _ node: TOMLNode) -> [FilePath] {
    guard let models = scope.entries["models"] else {
      return [missing(scope, "models", node, "models = [\"/srv/models/Library.momd\"]")]
    }
    let names = strings(scope, "models", [])
    if names.isEmpty, case .array(let all) = models.value, all.isEmpty {
      wrong(scope, "models", "names no model", "write models = [\"/srv/models/Library.momd\"]")
    }
    return names.map { absolute($0, scope, "models") }
  }

  // MARK: Values

  private mutating func table(_ scope: Scope, _ key: String) -> Scope {
    var inner = Scope(entries: [:], path: scope.path.isEmpty ? key : "\(scope.path).\(key)", shown: scope.shown(key))
    guard let node = scope.entries[key] else { return inner }
    guard case .table(let entries) = node.value else {
      wrong(scope, key, "must be a table, not \(node.kind)", "write a [\(inner.path)] section")
      return inner
    }
    inner.entries = entries
    reportUnknown(inner)
    return inner
  }

  mutating func string(_ scope: Scope, _ key: String, _ standard: String) -> String {
    guard let node = scope.entries[key] else { return standard }
    if case .string(let text) = node.value { return text }
    wrong(scope, key, "must be a string, not \(node.kind)", "write \(key) = \"\(standard)\"")
    return standard
  }

  private mutating func boolean(_ scope: Scope, _ key: String, _ standard: Bool) -> Bool {
    guard let node = scope.entries[key] else { return standard }
    if case .boolean(let flag) = node.value { return flag }
    wrong(scope, key, "must be true or false, not \(node.kind)", "write \(key) = \(standard), without quotes")
    return standard
  }

  mutating func integer(_ scope: Scope, _ key: String, _ standard: Int, in range: ClosedRange<Int>) -> Int {
    guard let node = scope.entries[key] else { return standard }
    guard case .integer(let number) = node.value else {
      wrong(scope, key, "must be an integer, not \(node.kind)", "write \(key) = \(standard)")
      return standard
    }
    guard let number = Int(exactly: number), range.contains(number) else {
      wrong(
        scope, key, "must be between \(range.lowerBound) and \(range.upperBound)", "write \(key) = \(standard)")
      return standard
    }
    return number
  }

  private mutating func bytes(
    _ scope: Scope, _ key: String, _ standard: Int64, in range: ClosedRange<Int64>
  ) -> Int64 {
    guard let node = scope.entries[key] else { return standard }
    let remedy = "write \(key) = \"\(standard >> 20)MiB\" (units: B, KiB, MiB, GiB, TiB)"
    guard case .string(let text) = node.value, let number = Quantity.bytes(text) else {
      wrong(scope, key, "is not a size", remedy)
      return standard
    }
    if !range.contains(number) {
      wrong(scope, key, "must be between \(range.lowerBound >> 20)MiB and \(range.upperBound >> 40)TiB", remedy)
    }
    return number
  }

  private mutating func duration(
    _ scope: Scope, _ key: String, _ standard: Duration, in range: ClosedRange<Duration>
  ) -> Duration {
    guard let node = scope.entries[key] else { return standard }
    let remedy = "write \(key) = \(Self.defaultText(scope, key)) (units: ms, s, min, h, d, w)"
    guard case .string(let text) = node.value, let time = Quantity.duration(text) else {
      wrong(scope, key, "is not a duration", remedy)
      return standard
    }
    if !range.contains(time) {
      wrong(scope, key, "must be between \(range.lowerBound) and \(range.upperBound)", remedy)
    }
    return time
  }

  private mutating func choice<Choice: RawRepresentable & CaseIterable>(
    _ scope: Scope, _ key: String, _ standard: Choice
  ) -> Choice where Choice.RawValue == String {
    guard let node = scope.entries[key] else { return standard }
    if case .string(let text) = node.value, let choice = Choice(rawValue: text) { return choice }
    let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
    wrong(scope, key, "must be one of \(names)", "write \(key) = \"\(standard.rawValue)\"")
    return standard
  }

  private mutating func strings(_ scope: Scope, _ key: String, _ standard: [String]) -> [String] {
    guard let node = scope.entries[key] else { return standard }
    guard case .array(let elements) = node.value else {
      wrong(scope, key, "must be an array of strings, not \(node.kind)", "write \(key) = [\"…\"]")
      return standard
    }
    var result: [String] = []
    for element in elements {
      if case .string(let text) = element.value, !text.isEmpty {
        result.append(text)
      } else {
        wrong(
          scope, key, "holds something that is not a string, or an empty one", "write \(key) = [\"…\"]", at: element)
      }
    }
    return result
  }

  /// Patterns are compared with file names, so a pattern with a slash would never match.
  private mutating func patterns(_ scope: Scope, _ key: String, _ standard: [String]) -> [String] {
    let patterns = strings(scope, key, standard)
    if let slashed = patterns.first(where: { $0.utf8.contains(UInt8(ascii: "/")) }) {
      wrong(
        scope, key, "\"\(slashed)\" holds a slash; patterns are compared with file names",
        "write the part after the slash, and recursive = true for the directories below")
    }
    if key == "include", patterns.isEmpty, case .array(let all)? = scope.entries[key]?.value, all.isEmpty {
      wrong(scope, key, "matches no file", "write include = [\"*.sqlite\"]")
    }
    return patterns
  }

  private mutating func path(_ scope: Scope, _ key: String) -> FilePath? {
    guard let node = scope.entries[key] else { return nil }
    guard case .string(let text) = node.value else {
      wrong(scope, key, "must be a string, not \(node.kind)", "write \(key) = \"/srv/stores\"")
      return "/"
    }
    return absolute(text, scope, key)
  }

  /// A path; nil for an empty string.
  private mutating func optionalPath(_ scope: Scope, _ key: String) -> FilePath? {
    if case .string("")? = scope.entries[key]?.value { return nil }
    return path(scope, key)
  }

  private mutating func absolute(_ text: String, _ scope: Scope, _ key: String) -> FilePath {
    let path = FilePath(text).lexicallyNormalized()
    if !path.isAbsolute || text.utf8.contains(0) {
      wrong(scope, key, "\"\(text)\" is not an absolute path", "begin it with /")
    }
    return path
  }

  // MARK: What is wrong

  /// Reports that a path is not set; the returned path is a placeholder that is never used.
  private mutating func missing(_ scope: Scope, _ key: String, _ node: TOMLNode, _ example: String) -> FilePath {
    wrong(scope, key, "is not set", "write \(example)", at: node)
    return "/"
  }

  mutating func wrong(
    _ scope: Scope, _ key: String, _ message: String, _ hint: String, at node: TOMLNode? = nil
  ) {
    let place = (node ?? scope.entries[key])?.place(key: scope.shown(key)) ?? Place(key: scope.shown(key))
    errors.append(HopdError(.configurationInvalid, "`\(key)` \(message)", at: place, hint: hint))
  }

  private mutating func reportUnknown(_ scope: Scope) {
    let known = ConfigurationKey.names(below: scope.path)
    for (key, node) in scope.entries.sorted(by: { $0.key < $1.key }) where !known.contains(key) {
      warnings.append(
        HopdError(
          .unknownKey, "unknown key, ignored", at: node.place(key: scope.shown(key)),
          hint: ConfigurationKey.home(of: key, around: scope.path)
            ?? NearestName.among(known, to: key).map { "did you mean `\($0)`?" }))
    }
  }

  private static func defaultText(_ scope: Scope, _ key: String) -> String {
    ConfigurationKey.all.first { $0.path == "\(scope.path).\(key)" }?.defaultText ?? "\"30s\""
  }
}

// Reads the keys with which hopd yields the machine to other programs: pressure and hours of the day.

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
