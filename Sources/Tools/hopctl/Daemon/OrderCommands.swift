// Orders to the running daemon: each is one call of its control socket. An order changes what hopd does, never a store
// itself, and prints how to undo it.

import ArgumentParser
import Diagnostics
import HopdConfiguration
import HopdControl
import MigrationChecking
import PersistentStore
import ServiceState
import StoreReplacement
import SystemPackage

extension DaemonOptions {
  /// The path of a store in hopd's record.
  func path(of store: String) throws -> String {
    if let state = try? recorded(), let path = try? state.path(of: store) { return path }
    return try StoreArgument.location(of: store).database.string
  }
}

extension ControlValue {
  fileprivate func texts(_ name: String) -> [String] { self[name]?.list?.compactMap(\.text) ?? [] }
}

/// `hopctl retry STORE…|--failed`.
struct RetryCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry", abstract: "Retry failed stores now",
    discussion: """
      Inspects refused stores again, and starts the next attempt of waiting ones now. With --first, moves the store to \
      the front of the queue, even if it has not failed.
      """)

  @Argument(help: ArgumentHelp("Stores in watched directories", valueName: "store"), completion: .file())
  var stores: [String] = []

  @Flag(help: "All stores that failed, are busy, or wait for the next attempt")
  var failed = false

  @Flag(help: "Move the store to the front of the queue")
  var first = false

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if failed != stores.isEmpty { throw ValidationError("Pass stores or --failed.") }
    if first, stores.count != 1 { throw ValidationError("--first requires one store.") }
  }

  func execute() throws {
    let client = try daemon.client()
    if first, let store = stores.first { return try prioritize(daemon.path(of: store), client) }
    let names = try stores.map { ControlValue.string(try daemon.path(of: $0)) }
    let answer = try client.call("Retry", failed ? ["failed": .boolean(true)] : ["stores": .array(names)])
    let tried = answer.texts("stores")
    typealias Found = (store: String, word: String, wait: WindowWait?)
    let found = (answer["results"]?.list ?? []).compactMap { result -> Found? in
      guard let store = result["store"]?.text, let word = result["found"]?.text else { return nil }
      return (store, word, result["waits"]?.text.map { WindowWait(until: $0) })
    }
    if !tried.isEmpty {
      try output.line("retrying \(MessageFormatter.count(tried.count, "store", "stores"))")
      for store in tried.prefix(20) { try output.line("  \(store)") }
      if tried.count > 20 { try output.line("  and \(MessageFormatter.count(tried.count - 20)) more") }
    }
    for result in found {
      if let sentence = result.wait?.sentence() ?? Self.sentence(result.word, daemon) {
        try output.line("\(result.store): \(sentence)")
      }
    }
    if tried.isEmpty, found.isEmpty { try output.line("nothing to retry") }
    // `stores` are those that have failed; `found` is the state in which the retry found each store: current,
    // migrating, waiting, paused, or retrying.
    let words = JSONObject(found.map { ($0.store, $0.word) })
    let waits = JSONObject(found.compactMap { result in result.wait.map { (result.store, $0.until) } })
    try output.object(["command": "retry", "stores": tried, "found": words, "waits": waits])
  }

  private func prioritize(_ path: String, _ client: ControlClient) throws {
    let answer = try client.call("RetryFirst", ["store": .string(path)])
    let state = answer["state"]?.text ?? ""
    let wait = answer["waits"]?.text.map { WindowWait(until: $0) }
    let what =
      switch state {
      case StoreCondition.migrating.name, StoreCondition.current.name: Self.sentence(state, daemon) ?? state
      case "paused": "at the front of the queue, but paused (hopctl resume\(daemon.words))"
      default: "at the front of the queue" + (wait.map { ", but \($0.sentence())" } ?? "")
      }
    try output.line("\(FilePath(path).printable): \(what)")
    let isMigrating = state == StoreCondition.migrating.name
    try output.object(["command": "retry", "stores": [path], "running": isMigrating, "waits": wait?.until])
  }

  /// The sentence about a store that had not failed.
  static func sentence(_ found: String, _ daemon: DaemonOptions) -> String? {
    switch found {
    case "current": "already at the target version; hopd inspects it again"
    case "migrating": "already running"
    case "waiting": "already queued; to move it to the front: `hopctl retry STORE --first\(daemon.words)`"
    case "paused": "paused; to resume: `hopctl resume\(daemon.words)`"
    default: nil
    }
  }
}

/// `hopctl pause [WATCH|STORE]`.
struct PauseCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause", abstract: "Pause migrations",
    discussion: """
      No migration starts, and running ones pause after the current chunk. The store of a paused migration remains \
      locked; with --now, its migration stops at the next checkpoint and the store is unlocked and unchanged. A pause \
      persists across restarts until `hopctl resume`, which continues from the checkpoint. While /run/hopd/pause \
      exists, all migrations are paused.
      """)

  @Argument(
    help: ArgumentHelp("A watch or a store", valueName: "watch|store"),
    completion: .custom { words, _, start in DaemonOptions.watches(of: words) + DaemonOptions.stores(of: words, start) }
  )
  var name: String?

  @Flag(help: "Stop the migration of the store at its next checkpoint and unlock the store")
  var now = false

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if now, name == nil { throw ValidationError("--now requires a store.") }
  }

  func execute() throws {
    if now, let name { return try stop(name) }
    try PauseOrder(name: name, daemon: daemon, output: output).pause()
  }

  private func stop(_ store: String) throws {
    let client = try daemon.client()
    let path = try daemon.path(of: store)
    let isRunning = try client.call("PauseNow", ["store": .string(path)])["running"]?.truth ?? false
    try output.line(
      (isRunning ? "stops at the next checkpoint and remains paused: " : "paused; no migration was running: ")
        + FilePath(path).printable)
    try output.line("to resume: `hopctl resume \(FilePath(path).quotedForShell)\(daemon.words)`")
    try output.object(["command": "pause", "stores": [path], "running": isRunning])
  }
}

/// `hopctl resume [WATCH|STORE]`.
struct ResumeCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume", abstract: "Resume paused migrations, unpin restored stores",
    discussion: """
      Without a name, ends all pauses. With STORE, ends the pause of that store and removes the pin set by `hopctl \
      restore`, even if hopd is not running. With --group, removes the pins set by one `hopctl restore --watch`, in \
      all watches or in the given watch or directory. Prints what changed and what is still paused.
      """)

  @Argument(
    help: ArgumentHelp("A watch or a store", valueName: "watch|store"),
    completion: .custom { words, _, start in DaemonOptions.watches(of: words) + DaemonOptions.stores(of: words, start) }
  )
  var name: String?

  @Flag(help: "End only the global pause; watches and stores paused by name remain paused")
  var global = false

  @Option(help: ArgumentHelp("Unpin all stores of this group; no pause ends", valueName: "group"))
  var group: String?

  @Option(
    help: "Configuration file with the watches of the group (default: the installed ones)",
    completion: .file(extensions: ["toml"]))
  var config: String?

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if global, name != nil { throw ValidationError("Pass either a name or --global, not both.") }
    if global, group != nil { throw ValidationError("Pass either --group or --global, not both.") }
    if config != nil, group == nil { throw ValidationError("--config requires --group.") }
  }

  func execute() throws {
    if let group { return try GroupUnpinning(group: group, place: name, config: config).run(output) }
    try PauseOrder(name: name, daemon: daemon, output: output).resume(global: global)
  }
}

/// Shared by pause and resume.
private struct PauseOrder {
  let name: String?
  let daemon: DaemonOptions
  let output: OutputOptions

  func pause() throws {
    let answer = try daemon.client().call("Pause", try parameters())
    let (paused, changed) = (answer.texts("paused"), answer.texts("changed"))
    let what = changed.isEmpty ? [name ?? "everything"] : changed
    try report(what, as: changed.isEmpty ? "already paused" : "paused")
    try report(paused.filter { !what.contains($0) }, as: "also paused")
    let undo = name.map { " \($0.quotedForShell)" } ?? " --global"
    try output.line("to resume: `hopctl resume\(undo)\(daemon.words)`")
    try output.object(["command": "pause", "paused": paused, "changed": changed])
  }

  func resume(global: Bool) throws {
    let store = namedStore()
    let unpinning = try store.flatMap { try Unpinning(of: $0, output) }
    try unpinning?.report(output, daemon)
    var answer: ControlValue?
    do {
      let client = try daemon.client()
      var parameters = try parameters()
      if global { parameters["global"] = .boolean(true) }
      answer = try client.call("Resume", parameters)
    } catch let error as HopdError where unpinning != nil && Self.saysNotPaused(error) {
      try reportPauseOnRecord()
    } catch let error as HopdError where unpinning != nil && error.code == .noPermission {
      // Whoever may write beside the store may unpin it, also without orders to hopd.
      output.warn([error])
    } catch let error as HopdError where error.code == .notRunning && store?.database.linkStatus() != nil {
      throw HopdError(
        .notRunning, "the store is not pinned, and a pause ends only while hopd is running",
        at: Place(store: store?.database), hint: error.hint)
    }
    let (paused, changed) = (answer?.texts("paused") ?? [], answer?.texts("changed") ?? [])
    try report(changed, as: "resumed")
    if answer != nil, paused.isEmpty { try output.line("nothing is paused") }
    try report(paused, as: "still paused")
    let common: JSONObject = ["command": "resume", "paused": paused, "changed": changed]
    try output.object(common + (unpinning?.json ?? [:]))
  }

  /// Whether an error only means that the store has no pause to end, which is not a failure if it was pinned.
  private static func saysNotPaused(_ error: HopdError) -> Bool {
    ["not-paused", HopdError.Code.notFound.name, HopdError.Code.notRunning.name].contains(error.code.name)
  }

  /// Reports a pause of the store that a stopped hopd has recorded, and that outlives the pin.
  private func reportPauseOnRecord() throws {
    guard let name, let path = try? daemon.path(of: name), let state = try? daemon.recorded(),
      state.lines(.paused).contains(path)
    else { return }
    try report([path], as: "still paused")
  }

  /// The named store; nil without a name, and for the name of a watch.
  private func namedStore() -> CanonicalStoreLocation? {
    guard let name else { return nil }
    if !name.contains("/"), (try? daemon.recorded().reader.counts()[name]) != nil { return nil }
    return try? StoreArgument.location(of: name)
  }

  private func report(_ names: [String], as what: String) throws {
    if !names.isEmpty { try output.line("\(what): \(MessageFormatter.list(names))") }
  }

  /// A word without a slash names a watch, unless hopd has no such watch but a store of this name in the working
  /// directory.
  private func parameters() throws -> [String: ControlValue] {
    guard let name else { return [:] }
    let isWatch = try !name.contains("/") && daemon.recorded().reader.counts()[name] != nil
    let isPath =
      name.contains("/") || (!isWatch && (try? StoreArgument.location(of: name)).map { isThere($0) } ?? false)
    return ["name": .string(isPath ? try daemon.path(of: name) : name)]
  }

  private func isThere(_ location: CanonicalStoreLocation) -> Bool {
    (try? daemon.recorded().reader.store(location.database.printable)) != nil
  }
}

/// `hopctl reload`.
struct ReloadCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Reload the configuration and models",
    discussion: """
      If the configuration is invalid, hopd keeps the old one, and the exit status is not 0. Warns about unknown keys, \
      directories that the service cannot write to, and missing programs.
      """)

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let client = try daemon.client()
    // Only the reload itself may take long: a hopd that stands still is told at once.
    _ = try client.call("GetStatus")
    let answer = try client.call("Reload", timeout: .seconds(300))
    let (files, warnings) = (answer.texts("files"), answer.texts("warnings"))
    output.warn(texts: warnings)
    try output.line("in use: \(files.joined(separator: ", "))")
    try output.object(["command": "reload", "files": files, "warnings": warnings])
  }
}

/// `hopctl set KEY VALUE`.
struct SetCommand: HopctlCommand {
  static let keys = ConfigurationKey.settable + ["throttle"]
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Change a setting until the daemon restarts",
    discussion: """
      Keys: jobs, memory_limit (applies to new migrations), log_level, io_pressure, cpu_pressure, memory_pressure, \
      throttle (on or off). A reload keeps the value; a restart restores the configured one.
      """)

  @Argument(
    help: ArgumentHelp("One of the keys above (default: list the keys)", valueName: "key"),
    completion: .list(SetCommand.keys))
  var key: String?

  @Argument(
    help: "Value as in the configuration, without quotes: 4, 128MiB, debug",
    completion: .custom { words, _, _ in SetCommand.values(after: words) })
  var value: String?

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    guard let key else {
      try output.lines(Self.keys)
      return try output.object(["keys": Self.keys])
    }
    guard let value else {
      throw HopdError(
        .usage, "no value specified for \(key.printableLine)",
        hint: "run `hopctl set KEY VALUE`, e.g. `hopctl set jobs 4`")
    }
    let answer = try daemon.client().call("Set", ["key": .string(key), "value": .string(value)])
    let before = answer["before"]?.text ?? "?"
    try output.line("\(key) = \(value) until hopd restarts (was \(Self.readable(before)))")
    try output.object(["command": "set", "key": key, "value": value, "before": before])
  }

  /// Possible values of a key, for shell completion.
  static func values(after words: [String]) -> [String] {
    switch words.first(where: { keys.contains($0) }) {
    case "throttle": ["on", "off"]
    case "log_level": Configuration.LogLevel.allCases.map(\.rawValue)
    case "memory_limit": ["64MiB", "256MiB", "1GiB"]
    case "jobs": ["1", "2", "4", "8"]
    case .some: ["0", "20", "40", "60"]
    case nil: []
    }
  }

  /// A value for people: bytes in the largest unit without a fraction.
  static func readable(_ value: String) -> String { Quantity.bytes(value).map(Quantity.text) ?? value }
}
