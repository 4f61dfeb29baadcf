// The state that hopd has recorded, and whether that hopd still runs. It is read from the file, so it works with the
// daemon up or down and does not start it.

import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import HopdControl
import MigrationChecking
import PersistentStore
import ServiceState
import StoreReplacement
import SystemPackage

/// The options of the commands about the daemon.
struct DaemonOptions: ParsableArguments {
  @Option(
    name: .customLong("state-directory"),
    help: ArgumentHelp(
      "State directory of hopd",
      discussion: "Default: $HOPD_STATE_DIRECTORY, $STATE_DIRECTORY, or /var/lib/hopd.", valueName: "dir"),
    completion: .directory)
  var stateDirectory: String?

  @Option(
    help: ArgumentHelp(
      "Control socket of hopd",
      discussion: "Default: the one that hopd has recorded, or /run/hopd/control.sock.",
      valueName: "path"), completion: .file())
  var socket: String?

  /// The same option as shell words, with a space in front, for suggested commands; empty if it was not given.
  var words: String { stateDirectory.map { " --state-directory \($0.quotedForShell)" } ?? "" }

  /// The unit that owns the directory: `hopd`, or `hopd@NAME` for the directory of an instance.
  var unit: String {
    guard let name = directory.lastComponent?.string, name.hasPrefix("hopd-") else { return "hopd" }
    return "hopd@\(name.dropFirst(5))"
  }

  /// Names of the watches with stores, for shell completion.
  static func watches(of words: [String]) -> [String] {
    (try? completed(words).recorded().reader.counts().keys.sorted()) ?? []
  }

  /// Paths of recorded stores that begin with a text, for shell completion.
  static func stores(of words: [String], _ start: String) -> [String] {
    guard start.hasPrefix("/") else { return [] }
    let filter = StateReader.Filter(after: start, limit: 200)
    return ((try? completed(words).recorded().reader.stores(filter)) ?? []).map(\.path).filter { $0.hasPrefix(start) }
  }

  /// The options of an incomplete command line.
  private static func completed(_ words: [String]) -> DaemonOptions {
    var options = DaemonOptions()
    options.socket = nil
    options.stateDirectory = zip(words, words.dropFirst()).first { $0.0 == "--state-directory" }?.1
    return options
  }

  /// Connects to the running daemon. Connecting to a socket that systemd listens on would start a stopped daemon, so it
  /// throws first if the record says that none runs.
  func client() throws -> ControlClient {
    if let socket { return try ControlClient(FilePath(socket)) }
    let state = try? recorded()
    if let state, state.process == nil {
      throw HopdError(.notRunning, state.headline, hint: "run `systemctl start \(unit.quotedForShell)`")
    }
    if let state, state.facts[.socket] == nil {
      throw HopdError(
        .notRunning, "this hopd has no control socket",
        hint: "run `journalctl -t hopd -p warning`, or set control.socket in the configuration")
    }
    return try ControlClient(FilePath(state?.facts[.socket] ?? Configuration.Control.standard.string))
  }

  /// Whether the running daemon answers; nil if it does not run, has no socket, or refuses this user.
  func isAnswering(_ state: RecordedState) -> Bool? {
    guard state.process != nil, state.facts[.socket] != nil else { return nil }
    do {
      _ = try client().call("GetStatus")
      return true
    } catch {
      return (error as? HopdError)?.code == .notAnswering ? false : nil
    }
  }

  /// The state directory; it is not made if it is missing.
  var directory: FilePath {
    if let stateDirectory { return FilePath(stateDirectory) }
    return StateDirectory.ofEnvironment ?? StateDirectory.standard
  }

  /// Opens the recorded state.
  func recorded() throws -> RecordedState {
    let path: FilePath
    do { path = try directory.resolved() } catch let error as HopdError where error.code == .notFound {
      throw HopdError(
        .stateMissing, "hopd is not running: no state directory", at: Place(file: directory),
        hint: "check `systemctl status hopd`, or pass another directory with --state-directory")
    } catch let error as HopdError where error.code == .noPermission {
      throw HopdError(
        .noPermission, "permission denied: cannot read the state of hopd", at: Place(file: directory),
        cause: error.cause,
        hint: "run it as root, or as a member of the group hopd: `usermod -aG hopd USER`")
    }
    return try RecordedState(path)
  }
}

/// The database with the facts of the daemon that wrote it.
struct RecordedState {
  let reader: StateReader
  let facts: [ServiceFact: String]
  /// Process ID of the daemon; nil if it does not run.
  let process: Int32?
  /// Whether that daemon answers; nil if it was not asked.
  var isAnswering: Bool?

  init(_ directory: FilePath) throws {
    reader = try StateReader(stateDirectory: directory)
    facts = try reader.service()
    process = Self.running(facts)
  }

  /// The recorded process ID, if that process is still the daemon.
  private static func running(_ facts: [ServiceFact: String]) -> Int32? {
    guard let process = facts[.process].flatMap({ Int32($0) }), process > 0 else { return nil }
    if let boot = facts[.boot], !boot.isEmpty, let now = try? LinuxFileSystem().bootIdentifier(), now != boot {
      return nil
    }
    guard kill(process, 0) == 0 || errno == EPERM else { return nil }
    // Another program's process may have this ID by now.
    guard let name = try? LinuxFileSystem().read(FilePath("/proc/\(process)/comm"), limit: 64) else { return process }
    return String(decoding: name, as: UTF8.self).hasPrefix("hopd") ? process : nil
  }

  /// Returns a store's path in hopd's record, however the user names it.
  func path(of store: String) throws -> String {
    if try reader.store(FilePath(store).printable) != nil { return FilePath(store).printable }
    let location = try StoreArgument.location(of: store).database
    if try reader.store(location.printable) != nil { return location.printable }
    for path in try reader.paths(named: location.lastComponent.map { FilePath($0.string).printable } ?? "") {
      if let other = try? StoreArgument.location(of: path), other.database == location { return path }
    }
    throw UnknownStore(location: location, configurationFiles: lines(.configuration).map { FilePath($0) }).error
  }

  /// The lines of a fact; none if it is not recorded.
  func lines(_ fact: ServiceFact) -> [String] {
    facts[fact]?.split(separator: "\n").map { String($0) } ?? []
  }

  /// The watches that are not served, each with the reason; an older hopd records none.
  var unavailable: [(watch: String, reason: String)] {
    let (watches, reasons) = (lines(.unavailable), lines(.unavailableReasons))
    return watches.enumerated().map { number, watch in
      (watch, number < reasons.count ? reasons[number] : "run `journalctl -t hopd HOPD_WATCH=\(watch)`")
    }
  }

  /// How long a store's migration waits for the window of its watch; nil if it does not, or if hopd does not run.
  func waits(_ store: StoreRecord) -> WindowWait? {
    process == nil ? nil : store.waits(facts[.windows]).map { WindowWait(until: $0) }
  }

  /// The name that `hopctl resume` takes to end the pause of a store, as a shell word with a space in front; empty for
  /// the pause of all stores; nil if none is paused.
  func pause(of store: StoreRecord) -> String? {
    let paused = lines(.paused)
    if let name = [store.path, store.watch].first(where: { paused.contains($0) }) { return " \(name.quotedForShell)" }
    return paused.contains("everything") ? " --global" : nil
  }

  /// A key with its value from `hopctl set`, which lasts until hopd restarts, and its configured value.
  struct Change {
    let key: String
    let value: String
    let configured: String
  }

  /// The changes by `hopctl set`.
  var changes: [Change] {
    if process == nil { return [] }
    return lines(.changed).compactMap { line in
      let words = line.split(separator: " ").map { String($0) }
      guard words.count == 3 else { return nil }
      return Change(
        key: words[0], value: SetCommand.readable(words[1]), configured: SetCommand.readable(words[2]))
    }
  }

  /// Why the running hopd is not the installed one; nil if it is, or if that is unknown.
  var outdated: String? {
    guard process != nil else { return nil }
    let running = facts[.program].flatMap { $0.split(whereSeparator: { " ,".contains($0) }).dropFirst().first }
    if let running, running != ProgramVersion.number {
      return "the running hopd is \(running), this hopctl \(ProgramVersion.number)"
    }
    if facts[.file].flatMap({ ProgramFile(text: $0) })?.isReplaced == true {
      return "the running hopd is older than the installed one"
    }
    return nil
  }

  /// The first line of `status`: the program, and since when it has run.
  var headline: String {
    let program = facts[.program].map { String($0.prefix { $0 != "," }) } ?? "hopd"
    if let process {
      let silence = isAnswering == false ? "; hopd does not respond (systemctl status hopd)" : ""
      return "\(program) running since \(Self.time(facts[.started]) ?? "?") (PID \(process))\(silence)"
    }
    if let stopped = Self.time(facts[.stopped]) { return "hopd is not running: it was stopped at \(stopped)" }
    return "hopd is not running: it terminated unexpectedly (`journalctl -t hopd -n 20`)"
  }

  /// Converts seconds since 1970 to RFC 3339.
  static func time(_ seconds: String?) -> String? { seconds.flatMap { Int64($0) }.map { BackupRecord.time($0) } }
}
