import ArgumentParser
import Diagnostics
import Glibc
import HopdControl
import MigrationPipeline
import SystemPackage

/// `hopctl top`.
struct TopCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "top", abstract: "Shows the stores at work each second: rows, rows per second, time to go.",
    discussion: """
      On a terminal it redraws the table until Ctrl-C; elsewhere, or with --once, it prints it once. With --json each \
      status is a line.
      """)

  @Flag(help: "Print it once and end.")
  var once = false

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let client = try daemon.client()
    let isLive = !once && (output.json || isatty(STDOUT_FILENO) == 1)
    guard isLive else {
      let status = try client.call("GetStatus")["status"] ?? .null
      return try show(status, over: false)
    }
    let stop = StopOnSignals.start()
    // A stop signal is checked between two statuses, which arrive each second.
    try client.stream("Monitor") { answer in
      if stop.isStopping { return false }
      try show(answer["status"] ?? .null, over: !output.json)
      return true
    }
  }

  private func show(_ status: ControlValue, over: Bool) throws {
    if output.json { return try StandardStreams.write(JSONText.of(status) + "\n", to: .output) }
    var lines = [status["line"]?.text ?? ""]
    if let remaining = status["remaining"]?.real {
      lines.append("queue: \(MessageFormatter.duration(remaining)) to go")
    }
    let work = status["work"]?.list ?? []
    var rows = work.isEmpty ? [] : [["%", "ROWS/S", "ETA", "HOP", "ACTIVITY", "VERSIONS", "STORE"]]
    for job in work {
      let percent = Int(min(max(job["fraction"]?.real ?? 0, 0), 1) * 100)
      rows.append([
        "\(min(percent, 99))", MessageFormatter.count(Int64(job["rowsPerSecond"]?.real ?? 0)),
        job["remaining"]?.real.map { MessageFormatter.duration($0) } ?? "",
        job["hop"]?.whole.map { "\($0)/\(job["hops"]?.whole ?? 0)" } ?? "",
        [job["activity"]?.text ?? "", job["subject"]?.text ?? ""].filter { !$0.isEmpty }.joined(separator: " "),
        StoreText.versions(job["from"]?.text, job["to"]?.text), job["store"]?.text ?? "",
      ])
    }
    lines += MessageFormatter.table(rows, right: [0, 1, 2], indent: "")
    guard !output.quiet else { return }
    let text = lines.map { $0.escapingControls(keepingNewlines: false) }
    // Moves the cursor home, clears each line to its end, and clears everything below.
    let drawn =
      over ? "\u{1b}[H" + text.map { $0 + "\u{1b}[K\n" }.joined() + "\u{1b}[J" : text.joined(separator: "\n") + "\n"
    try StandardStreams.write(drawn, to: .output)
  }
}
