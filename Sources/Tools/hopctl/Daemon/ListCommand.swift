import ArgumentParser
import Diagnostics
import ServiceState
import StoreReplacement
import SystemPackage

/// `hopctl list`.
struct ListCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List watched stores and their states",
    discussion: """
      States: current; waiting (to be inspected or migrated); migrating; busy (another program uses it); retrying \
      (failed; hopd retries); failed (no retry until something changes); pinned (by a restore); paused. A store that \
      waits for the window of its watch is retried when the window opens. Other columns: watch, code, reason, \
      attempts, command.
      """)

  @Option(
    help: ArgumentHelp("Only stores in this state; repeatable", valueName: "state"),
    completion: .list(StoreCondition.allCases.map(\.name)))
  var state: [String] = []

  @Flag(help: "Short for --state failed")
  var failed = false

  @Option(help: ArgumentHelp("Only stores with this error code; repeatable", valueName: "code"))
  var code: [String] = []

  @Option(
    help: ArgumentHelp("Only stores of this watch", valueName: "name"),
    completion: .custom { words, _, _ in DaemonOptions.watches(of: words) })
  var watch: String?

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var columns: ColumnsOption
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let table = try Table(Self.columns, shown: ["state", "version", "since", "next-attempt", "store"], columns)
    let conditions = try (state + (failed ? ["failed"] : [])).map { try Self.condition($0) }
    let recorded = try daemon.recorded()
    if let watch, try recorded.reader.counts()[watch] == nil {
      let names = try recorded.reader.counts().keys.sorted().joined(separator: ", ")
      throw HopdError(
        .usage, "no stores found for watch '\(watch)'", hint: "use one of: \(names)")
    }
    var stores = try recorded.reader.stores(StateReader.Filter(conditions: conditions, watch: watch))
    if !code.isEmpty { stores = stores.filter { store in code.contains { $0 == store.failure?.code } } }
    try output.table(table, stores.map { ListedStore($0, recorded) }) { listed in
      let store = listed.store
      guard let failure = store.failure else { return [] }
      return ["    \(StoreText.cause(store, failure))"]
        + (failure.command.isEmpty ? [] : ["    next: \(failure.command)"])
    }
    // They have no state, so they are in no state's list.
    let skipped = conditions.isEmpty && code.isEmpty ? recorded.lines(.skipped) : []
    if !table.isChosen { try output.lines(skipped.map { "skipped: \($0)" }) }
    if recorded.process == nil, !output.json, !output.quiet { StandardStreams.report("hopctl: \(recorded.headline)") }
    try output.object([
      "running": recorded.process != nil, "stores": stores.map { $0.json(recorded) }, "skipped": skipped,
    ])
  }

  private static let columns: [Table<ListedStore>.Column] = [
    Table.Column(name: "state") { StoreText.word($0.store.condition) },
    Table.Column(name: "version", rank: 1) { "\(StoreText.versions($0.store.version, $0.store.target))" },
    Table.Column(name: "since", rank: 2) { "\(BackupRecord.time($0.store.failure?.since ?? $0.store.since))" },
    Table.Column(name: "next-attempt", rank: 3) { "\($0.nextAttempt ?? "-")" },
    Table.Column(name: "store", isPath: true) { "\($0.store.path)" },
    Table.Column(name: "watch") { "\($0.store.watch)" },
    Table.Column(name: "code") { "\($0.store.failure?.code ?? "-")" },
    Table.Column(name: "reason") { "\($0.store.failure?.reason ?? "-")" },
    Table.Column(name: "attempts", isNumber: true) { "\(MessageFormatter.count($0.store.failure?.attempts ?? 0))" },
    Table.Column(name: "command") { "\($0.store.failure?.command ?? "-")" },
  ]

  static func condition(_ name: String) throws(HopdError) -> StoreCondition {
    if let condition = StoreCondition(name: name) { return condition }
    let names = StoreCondition.allCases.map(\.name)
    throw HopdError(
      .usage, "unknown state '\(name)'", hint: NearestName.hint(NearestName.among(names, to: name), of: names))
  }
}

/// A store with what only the daemon's record as a whole shows.
private struct ListedStore {
  let store: StoreRecord
  /// The time of the next attempt, or of the opening of the window that the store waits for.
  let nextAttempt: String?

  init(_ store: StoreRecord, _ recorded: RecordedState) {
    self.store = store
    nextAttempt = store.failure?.nextAttempt.map { BackupRecord.time($0) } ?? recorded.waits(store)?.until
  }
}
