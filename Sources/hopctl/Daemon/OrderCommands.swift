// Orders to the running daemon: each is one call of its control socket. Each changes what hopd does and no store
// itself, and says how it is undone.

import ArgumentParser
import Diagnostics
import HopdControl
import PersistentStore
import ServiceState
import SystemPackage

/// What orders print.
struct OrderShape: Encodable {
  let order: String
  /// Stores that it concerns.
  var stores: [String]?
  /// What is paused now.
  var paused: [String]?
  /// Files of the configuration that is in force.
  var files: [String]?
  var key: String?
  var value: String?
  var before: String?
  var running: Bool?
}

extension DaemonOptions {
  /// The path that hopd is told for a store.
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
    commandName: "retry", abstract: "Lets hopd try stores again at once, as if they had never failed.",
    discussion: "A store that hopd refused is looked at again; one that waits for its next attempt has it now.")

  @Argument(help: ArgumentHelp("Stores in watched directories.", valueName: "store"), completion: .file())
  var stores: [String] = []

  @Flag(help: "All stores that failed, are busy, or are tried again later.")
  var failed = false

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if failed != stores.isEmpty { throw ValidationError("Name stores, or give --failed.") }
  }

  func execute() throws {
    let client = try daemon.client()
    let names = try stores.map { ControlValue.string(try daemon.path(of: $0)) }
    let answer = try client.call("Retry", failed ? ["failed": .boolean(true)] : ["stores": .array(names)])
    let tried = answer.texts("stores")
    try output.line(
      tried.isEmpty
        ? "nothing to try again" : "tried again now: \(MessageFormatter.count(Int64(tried.count), "store", "stores"))")
    for store in tried.prefix(20) { try output.line("  \(store)") }
    try output.object(OrderShape(order: "retry", stores: tried))
  }
}

/// `hopctl pause [WATCH|STORE]`.
struct PauseCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause", abstract: "Lets no migration begin: of all stores, of one watch, or of one store.",
    discussion: """
      Migrations at work go on to their end (hopctl cancel stops one). The pause outlives restarts and reboots; hopctl resume ends \
      it. The file /run/hopd/pause holds all migrations back, too.
      """)

  @Argument(help: ArgumentHelp("A watch, or a store.", valueName: "watch|store"), completion: .file())
  var name: String?

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    try PauseOrder(name: name, daemon: daemon, output: output).give("Pause", undo: "hopctl resume")
  }
}

/// `hopctl resume [WATCH|STORE]`.
struct ResumeCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume", abstract: "Ends a pause; without a name, all of them.")

  @Argument(help: ArgumentHelp("A watch, or a store.", valueName: "watch|store"), completion: .file())
  var name: String?

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    try PauseOrder(name: name, daemon: daemon, output: output).give("Resume", undo: nil)
  }
}

/// What pause and resume have in common.
private struct PauseOrder {
  let name: String?
  let daemon: DaemonOptions
  let output: OutputOptions

  func give(_ method: String, undo: String?) throws {
    let client = try daemon.client()
    let answer = try client.call(method, try parameters())
    let paused = answer.texts("paused")
    try output.line(paused.isEmpty ? "nothing is paused" : "paused: \(paused.joined(separator: ", "))")
    if let undo, !paused.isEmpty { try output.line("\(undo) ends it") }
    try output.object(OrderShape(order: method.lowercased(), paused: paused))
  }

  /// A word without a slash is a watch, unless hopd knows no such watch and there is such a file.
  private func parameters() throws -> [String: ControlValue] {
    guard let name else { return [:] }
    let isWatch = try !name.contains("/") && daemon.recorded().reader.counts()[name] != nil
    let isPath =
      name.contains("/") || (!isWatch && (try? StoreArgument.location(of: name)).map { isThere($0) } ?? false)
    return ["name": .string(isPath ? try daemon.path(of: name) : name)]
  }

  private func isThere(_ location: StoreLocation) -> Bool {
    (try? daemon.recorded().reader.store(location.database.printable)) != nil
  }
}

/// `hopctl cancel STORE`.
struct CancelCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "cancel", abstract: "Stops the migration of a store at its next checkpoint, and pauses the store.",
    discussion: "The store stays the complete old one. hopctl resume STORE goes on from the checkpoint.")

  @Argument(help: ArgumentHelp("A store in a watched directory.", valueName: "store"), completion: .file())
  var store: String

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let client = try daemon.client()
    let path = try daemon.path(of: store)
    let isRunning = try client.call("Cancel", ["store": .string(path)])["running"]?.truth ?? false
    try output.line(
      (isRunning ? "stops at its next checkpoint, and stays paused: " : "paused; it was not being migrated: ")
        + FilePath(path).printable)
    try output.line("hopctl resume STORE lets it go on")
    try output.object(OrderShape(order: "cancel", stores: [path], running: isRunning))
  }
}

/// `hopctl next STORE`.
struct NextCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "next", abstract: "Puts a store in front of hopd's queue.")

  @Argument(help: ArgumentHelp("A store in a watched directory.", valueName: "store"), completion: .file())
  var store: String

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let client = try daemon.client()
    let path = try daemon.path(of: store)
    let state = try client.call("Next", ["store": .string(path)])["state"]?.text ?? ""
    let what =
      switch state {
      case "running": "at work already"
      case "paused": "in front of the queue, but paused (hopctl resume)"
      default: "in front of the queue"
      }
    try output.line("\(FilePath(path).printable): \(what)")
    try output.object(OrderShape(order: "next", stores: [path], running: state == "running"))
  }
}

/// `hopctl reload`.
struct ReloadCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Lets hopd read its configuration and models again, and waits until they are in force.",
    discussion: "All or nothing: with a mistake anywhere the old configuration stays, and the status is not 0.")

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let answer = try daemon.client().call("Reload", timeout: .seconds(300))
    let files = answer.texts("files")
    try output.line("in force: \(files.joined(separator: ", "))")
    try output.object(OrderShape(order: "reload", files: files))
  }
}

/// `hopctl set KEY VALUE`.
struct SetCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Changes a limit of the running hopd, until it restarts.",
    discussion: """
      Keys: jobs (stores migrated at once), memory_limit (for the chunks of all jobs together; for migrations that begin from now \
      on), log_level. A reload keeps what was set; a restart takes what the configuration says.
      """)

  @Argument(help: "jobs, memory_limit or log_level.", completion: .list(["jobs", "memory_limit", "log_level"]))
  var key: String

  @Argument(help: "As the configuration writes it, without quotes: 4, 128MiB, debug.")
  var value: String

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let answer = try daemon.client().call("Set", ["key": .string(key), "value": .string(value)])
    let before = answer["before"]?.text ?? "?"
    try output.line("\(key) = \(value), it was \(before); until hopd restarts")
    try output.object(OrderShape(order: "set", key: key, value: value, before: before))
  }
}
