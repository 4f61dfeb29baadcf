import ArgumentParser
import Diagnostics
import ServiceState
import StoreReplacement
import SystemPackage

/// `hopctl status [STORE]`.
struct StatusCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show daemon status and stores that need attention",
    discussion: """
      With STORE, shows that store and its latest jobs; otherwise groups stores that failed for the same cause. Works \
      while hopd is down. Columns: those of the table of watches (watch, stores, and each state), with STORE those of \
      history. Exit status 7: hopd is not running, or has no state directory; 75: it does not respond within five \
      seconds; 66: no such store.
      """)

  @Argument(help: ArgumentHelp("A store in a watched directory", valueName: "store"), completion: .file())
  var store: String?

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var columns: ColumnsOption
  @OptionGroup(title: "Output options") var output: OutputOptions

  /// The maximum number of causes to list one by one.
  private static let most = 20
  /// The maximum number of jobs of one store to list.
  private static let mostJobs: Int64 = 5

  func execute() throws {
    var state = try daemon.recorded()
    state.isAnswering = daemon.isAnswering(state)
    if let store { try report(store, state) } else { try report(state) }
    if state.process == nil { throw Finished(status: .notRunning) }
    if state.isAnswering == false { throw Finished(status: .temporaryFailure) }
  }

  private func report(_ state: RecordedState) throws {
    let watches = try state.reader.counts().sorted { $0.key < $1.key }
      .map { WatchCounts(watch: $0.key, counts: $0.value) }
    let all = StoreText.sum(watches.map(\.counts))
    let seen = StoreCondition.allCases.filter { (all[$0] ?? 0) > 0 }.map(\.name)
    let table = try Table(WatchCounts.columns, shown: ["watch", "stores"] + seen, columns)
    let causes = try causes(state)
    let failing = try state.reader.stores(StateReader.Filter(conditions: Self.troubles, limit: 1000))
    let attention = failing.filter { $0.condition == .failed } + failing.filter { $0.condition != .failed }
    if table.isChosen {
      try output.table(table, watches)
    } else {
      try head(state)
      try output.line(StoreText.counts(all))
      if watches.count > 1 { try output.table(table, watches, indent: 2) }
      try tell(causes, attention)
    }
    guard output.json else { return }
    try output.object([
      "daemon": state.json,
      // Every state has a count, even 0.
      "counts": JSONObject(StoreCondition.allCases.map { ($0.name, all[$0] ?? 0) }),
      "watches": watches.map { watch in
        ["watch": watch.watch, "counts": JSONObject(watch.counts.map { ($0.key.name, $0.value) })] as JSONObject
      },
      // Stores that are retried only after a change, and stores that are retried automatically.
      "attention": attention.map { $0.json(state) },
      "causes": causes.map { $0.cause.json(example: $0.example) },
    ])
  }

  private static let troubles: [StoreCondition] = [.failed, .retrying, .pinned]

  /// The causes of failures, each with a store. Those that only the operator can fix come first.
  private func causes(_ state: RecordedState) throws -> [(cause: StateReader.Cause, example: StoreRecord)] {
    let all = try state.reader.causes(of: Self.troubles)
    let sorted = all.filter { $0.condition == .failed } + all.filter { $0.condition != .failed }
    // A store may be gone by now.
    return try sorted.compactMap { cause in try state.reader.store(cause.example).map { (cause, $0) } }
  }

  /// Prints the causes of failures.
  private func tell(
    _ all: [(cause: StateReader.Cause, example: StoreRecord)], _ attention: [StoreRecord]
  ) throws {
    // What the restore of a set pinned is one decision of the operator, however many stores it has.
    let pinned = attention.filter { $0.condition == .pinned }
    let grouped = pinned.filter { $0.group != nil && !StoreText.isReleased($0.path) }
    let groups = Dictionary(grouping: grouped, by: \.group).sorted { $0.key?.name ?? "" < $1.key?.name ?? "" }
    for case (let group?, let stores) in groups { try output.lines(StoreText.lines(group, stores)) }
    let paths = Set(grouped.map(\.path))
    let causes = all.compactMap { found -> (cause: StateReader.Cause, example: StoreRecord)? in
      guard found.cause.condition == .pinned, !paths.isEmpty else { return found }
      guard let example = pinned.first(where: { !paths.contains($0.path) }) else { return nil }
      var cause = found.cause
      cause.stores -= Int64(paths.count)
      return (cause, example)
    }
    try output.lines(causes.prefix(Self.most).flatMap { StoreText.lines($0.cause, example: $0.example, daemon) })
    let rest = causes.dropFirst(Self.most).reduce(0) { $0 + $1.cause.stores }
    guard rest > 0 else { return }
    try output.line(
      "and \(MessageFormatter.count(rest)) more: "
        + "hopctl list --state failed --state retrying --state pinned\(daemon.words)")
  }

  /// Prints what is to be said of the daemon itself.
  private func head(_ state: RecordedState) throws {
    try output.line(state.headline)
    let paused = state.lines(.paused)
    if !paused.isEmpty { try output.line("paused: \(MessageFormatter.list(paused))") }
    try output.lines(state.lines(.waits).map { "waits: \($0)" })
    for (watch, reason) in state.unavailable { try output.line("unavailable: \(watch): \(reason)") }
    try output.lines(state.lines(.skipped).map { "skipped: \($0)" })
    if let note = state.facts[.note] { try output.line(note) }
    for change in state.changes {
      try output.line("set until hopd restarts: \(change.key) = \(change.value) (configured: \(change.configured))")
    }
    if let outdated = state.outdated { try output.line("\(outdated): systemctl restart \(daemon.unit.quotedForShell)") }
  }

  private func report(_ name: String, _ state: RecordedState) throws {
    let table = try Table(
      StoreText.jobColumns, shown: ["ended", "result", "versions", "rows", "time", "requested-by"], columns)
    let path = try state.path(of: name)
    guard let store = try state.reader.store(path) else { return }
    let jobs = try state.reader.jobs(of: path, limit: Self.mostJobs)
    if !table.isChosen {
      if state.process == nil || state.isAnswering == false {
        try output.line("\(state.headline); showing the last recorded state")
      }
      try output.lines(StoreText.lines(store, daemon))
      if store.condition == .migrating, let pause = state.pause(of: store) {
        try output.line("  paused between two chunks; to continue: `hopctl resume\(pause)\(daemon.words)`")
      }
      if let waits = state.waits(store) { try output.line("  " + waits.sentence(store.watch)) }
      try output.line("  version \(StoreText.versions(store.version, store.target)), watch \(store.watch)")
    }
    try output.table(table, jobs, indent: table.isChosen ? 0 : 2)
    try output.object(["running": state.process != nil, "store": store.json(state), "jobs": jobs.map(\.json)])
  }
}

/// The stores of a watch, by state.
private struct WatchCounts {
  let watch: String
  let counts: [StoreCondition: Int64]

  static let columns: [Table<WatchCounts>.Column] =
    [
      Table.Column(name: "watch") { "\($0.watch)" },
      Table.Column(name: "stores", isNumber: true) { watch in
        "\(MessageFormatter.count(watch.counts.values.reduce(0, &+)))"
      },
    ]
    + StoreCondition.allCases.enumerated().map { index, condition in
      Table.Column(name: condition.name, isNumber: true, rank: StoreCondition.allCases.count - index) { watch in
        "\(MessageFormatter.count(watch.counts[condition] ?? 0))"
      }
    }
}
