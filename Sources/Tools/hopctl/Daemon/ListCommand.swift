import ArgumentParser
import Diagnostics
import ServiceState
import StoreReplacement
import SystemPackage

/// `hopctl list`.
struct ListCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists the stores that hopd watches, with their state; also while hopd is down.",
    discussion: """
      Columns: state, version, since when, next attempt, store. A store that waits for the window of its watch has the \
      opening of the window as its next attempt. States: current; waiting (to be inspected or \
      migrated); migrating; busy (another program uses it); retrying (it failed, and hopd tries again); failed (you \
      must change something first); held-back (a restore pinned it); paused.
      """)

  @Option(
    help: ArgumentHelp("Only stores in this state; may be repeated.", valueName: "state"),
    completion: .list(StoreCondition.allCases.map(\.name)))
  var state: [String] = []

  @Flag(help: "The same as --state failed.")
  var failed = false

  @Option(
    help: ArgumentHelp("Only stores of this watch.", valueName: "name"),
    completion: .custom { words, _, _ in DaemonOptions.watches(of: words) })
  var watch: String?

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let conditions = try (state + (failed ? ["failed"] : [])).map { try Self.condition($0) }
    let recorded = try daemon.recorded()
    if let watch, try recorded.reader.counts()[watch] == nil {
      let names = try recorded.reader.counts().keys.sorted().joined(separator: ", ")
      throw HopdError(
        .usage, "hopd knows no store of a watch \"\(watch)\"", hint: "watches with stores: \(names)")
    }
    let stores = try recorded.reader.stores(StateReader.Filter(conditions: conditions, watch: watch))
    let rows: [[TerminalText]] = stores.map { store in
      [
        StoreText.word(store.condition), "\(StoreText.versions(store.version, store.target))",
        "\(BackupRecord.time(store.failure?.since ?? store.since))",
        "\(store.failure?.nextAttempt.map { BackupRecord.time($0) } ?? recorded.waits(store)?.until ?? "-")",
        "\(store.path)",
      ]
    }
    for (line, store) in zip(MessageFormatter.table(rows, indent: ""), stores) {
      try output.line(line)
      if let failure = store.failure {
        try output.line("    " + StoreText.cause(store, failure))
        if !failure.command.isEmpty { try output.line("    next: \(failure.command)") }
      }
    }
    // They have no state, so they are in no state's list.
    let skipped = conditions.isEmpty ? recorded.lines(.skipped) : []
    try output.lines(skipped.map { "skipped: \($0)" })
    if recorded.process == nil, !output.json, !output.quiet { StandardStreams.report("hopctl: \(recorded.headline)") }
    try output.object([
      "running": recorded.process != nil, "stores": stores.map { $0.json(recorded) }, "skipped": skipped,
    ])
  }

  static func condition(_ name: String) throws(HopdError) -> StoreCondition {
    if let condition = StoreCondition(name: name) { return condition }
    let names = StoreCondition.allCases.map(\.name)
    let near = NearestName.among(names, to: name).map { "do you mean \($0)? " } ?? ""
    throw HopdError(
      .usage, "there is no state \"\(name)\"", hint: near + "states: \(names.joined(separator: ", "))")
  }
}
