import ArgumentParser
import Diagnostics
import ServiceState
import SystemPackage

/// `hopctl status [STORE]`.
struct StatusCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "What hopd does, and which stores need you: why, since when, and what to type next.",
    discussion: """
      With STORE: the state of that store, and its last jobs. It reads hopd's record, so it also works while hopd is \
      down. Exit status 7: hopd does not run; 66: hopd has no record here.
      """)

  @Argument(help: ArgumentHelp("A store in a watched directory.", valueName: "store"), completion: .file())
  var store: String?

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  /// Stores in trouble that are told one by one.
  private static let most = 20
  /// Jobs of one store that are told.
  private static let mostJobs: Int64 = 5

  func execute() throws {
    let state = try daemon.recorded()
    if let store { try tell(store, state) } else { try tell(state) }
    if state.process == nil { throw Finished(status: .notRunning) }
  }

  private func tell(_ state: RecordedState) throws {
    let counts = try state.reader.counts()
    var all: [StoreCondition: Int64] = [:]
    for watch in counts.values { all.merge(watch) { $0 &+ $1 } }
    let inTrouble = try state.reader.stores(
      StateReader.Filter(conditions: [.failed, .retrying, .heldBack], limit: 1000))
    // What nobody but the operator can mend comes first.
    let attention =
      inTrouble.filter { $0.condition == .failed } + inTrouble.filter { $0.condition != .failed }
    let facts = StatusShape.Daemon(state)
    try output.line(state.headline)
    if let paused = facts.paused { try output.line("paused: \(paused.replacing("\n", with: ", "))") }
    for wait in facts.waits { try output.line("waits: \(wait)") }
    for watch in facts.unserved { try output.line("not served: \(watch) (`journalctl -t hopd HOPD_WATCH=\(watch)`)") }
    if let note = facts.note { try output.line(note) }
    for change in facts.changed {
      try output.line("set until hopd restarts: \(change.key) = \(change.value) (configured: \(change.configured))")
    }
    if let outdated = facts.outdated { try output.line("\(outdated): systemctl restart \(daemon.unit)") }
    try output.line(StoreText.counts(all))
    if counts.count > 1 {
      let rows = counts.sorted { $0.key < $1.key }.map { [$0.key, StoreText.counts($0.value)] }
      for line in MessageFormatter.table(rows) { try output.line(line) }
    }
    for store in attention.prefix(Self.most) {
      for line in StoreText.lines(store, daemon) { try output.line(line) }
    }
    if attention.count > Self.most {
      let rest = Int64(attention.count - Self.most)
      try output.line(
        "and \(MessageFormatter.count(rest)) more: "
          + "hopctl list --state failed --state retrying --state held-back\(daemon.words)"
      )
    }
    var shown: [String: Int64] = [:]
    for condition in StoreCondition.allCases { shown[condition.name] = all[condition] ?? 0 }
    try output.object(
      StatusShape(
        daemon: facts, counts: shown,
        watches: counts.sorted { $0.key < $1.key }.map { watch in
          StatusShape.Watch(
            watch: watch.key,
            counts: Dictionary(watch.value.map { ($0.key.name, $0.value) }) { first, _ in first })
        }, attention: attention.map { KnownStoreShape($0) }))
  }

  private func tell(_ name: String, _ state: RecordedState) throws {
    let path = try state.path(of: name)
    guard let store = try state.reader.store(path) else { return }
    let jobs = try state.reader.jobs(of: path, limit: Self.mostJobs)
    if state.process == nil { try output.line("\(state.headline); this is what it last knew") }
    for line in StoreText.lines(store, daemon) { try output.line(line) }
    try output.line("  version \(StoreText.versions(store.version, store.target)), watch \(store.watch)")
    for line in MessageFormatter.table(jobs.map { Array(StoreText.cells($0).dropLast()) }) { try output.line(line) }
    try output.object(
      StoreStatusShape(
        running: state.process != nil, store: KnownStoreShape(store), jobs: jobs.map { JobShape($0) }))
  }
}
