import ArgumentParser
import Diagnostics
import Glibc
import HopdControl
import MigrationPipeline
import SystemPackage

/// `hopctl top`.
struct TopCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "top", abstract: "Show running migrations, updated every second",
    discussion: """
      On a terminal, updates the screen until you press q or Ctrl-C; otherwise, or with --once, prints the tables \
      once. With --json, prints one line for each status.
      """)

  @Flag(help: "Print once and exit")
  var once = false

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let client = try daemon.client()
    let hasScreen = AlternateScreen.isPossible && !output.quiet
    if once || !(output.json || hasScreen) {
      let status = try client.call("GetStatus")["status"] ?? .null
      if output.json { return try StandardStreams.write(JSONText.of(status) + "\n", to: .output) }
      let picture = TopPicture(status: status, waiting: Self.waiting(client))
      return try output.lines(picture.lines(width: StandardStreams.Stream.output.size?.columns))
    }
    if output.json {
      let stop = StopOnSignals.start()
      // A stop signal is checked between two statuses, which arrive each second.
      return try client.stream("Monitor") { answer in
        if stop.isStopping { return false }
        try StandardStreams.write(JSONText.of(answer["status"] ?? .null) + "\n", to: .output)
        return true
      }
    }
    // A connection has one call at a time.
    let other = try daemon.client()
    let screen = AlternateScreen()
    screen.begin()
    defer { screen.end() }
    try client.stream("Monitor") { answer in
      let picture = TopPicture(status: answer["status"] ?? .null, waiting: Self.waiting(other))
      screen.draw { rows, columns in picture.screen(rows: rows, columns: columns) }
      return true
    }
  }

  /// The stores that wait, as many as hopd lists in one answer; none if they cannot be listed.
  private static func waiting(_ client: ControlClient) -> [ControlValue] {
    (try? client.call("ListStores", ["states": .strings(["waiting"])]))?["stores"]?.list ?? []
  }
}
