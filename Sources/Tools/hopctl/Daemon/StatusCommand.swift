import ArgumentParser
import Diagnostics
import ServiceState
import StoreReplacement
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

  /// The most failed stores to list one by one.
  private static let most = 20
  /// The most jobs of one store to list.
  private static let mostJobs: Int64 = 5

  func execute() throws {
    let state = try daemon.recorded()
    if let store { try report(store, state) } else { try report(state) }
    if state.process == nil { throw Finished(status: .notRunning) }
  }

  private func report(_ state: RecordedState) throws {
    let counts = try state.reader.counts().sorted { $0.key < $1.key }
    let all = StoreText.sum(counts.map(\.value))
    let failing = try state.reader.stores(
      StateReader.Filter(conditions: [.failed, .retrying, .heldBack], limit: 1000))
    // Failures that only the operator can fix come first.
    let attention =
      failing.filter { $0.condition == .failed } + failing.filter { $0.condition != .failed }
    // What the restore of a set pinned is one decision of the operator, however many stores it has.
    let held = attention.filter { $0.group != nil && !StoreText.isReleased($0.path) }
    let groups = Dictionary(grouping: held) { $0.group }.sorted { $0.key?.name ?? "" < $1.key?.name ?? "" }
    let heldPaths = Set(held.map(\.path))
    let single = attention.filter { !heldPaths.contains($0.path) }
    try output.line(state.headline)
    if let paused = state.facts[.paused] { try output.line("paused: \(paused.replacing("\n", with: ", "))") }
    try output.lines(state.lines(.waits).map { "waits: \($0)" })
    for (watch, reason) in state.unserved { try output.line("not served: \(watch): \(reason)") }
    try output.lines(state.lines(.skipped).map { "skipped: \($0)" })
    if let note = state.facts[.note] { try output.line(note) }
    for change in state.changes {
      try output.line("set until hopd restarts: \(change.key) = \(change.value) (configured: \(change.configured))")
    }
    if let outdated = state.outdated { try output.line("\(outdated): systemctl restart \(daemon.unit.quotedForShell)") }
    try output.line(StoreText.counts(all))
    if counts.count > 1 {
      try output.lines(MessageFormatter.table(counts.map { [$0.key, StoreText.counts($0.value)] }))
    }
    for case (let group?, let stores) in groups { try output.lines(StoreText.lines(group, stores)) }
    try output.lines(single.prefix(Self.most).flatMap { StoreText.lines($0, daemon) })
    if single.count > Self.most {
      let rest = Int64(single.count - Self.most)
      try output.line(
        "and \(MessageFormatter.count(rest)) more: "
          + "hopctl list --state failed --state retrying --state held-back\(daemon.words)"
      )
    }
    try output.object([
      "daemon": state.json,
      // Every state has a count, even 0.
      "counts": JSONObject(StoreCondition.allCases.map { ($0.name, all[$0] ?? 0) }),
      "watches": counts.map { watch, counts in
        ["watch": watch, "counts": JSONObject(counts.map { ($0.key.name, $0.value) })] as JSONObject
      },
      // Stores that are retried only after a change, and stores that are retried automatically.
      "attention": attention.map(\.json),
    ])
  }

  private func report(_ name: String, _ state: RecordedState) throws {
    let path = try state.path(of: name)
    guard let store = try state.reader.store(path) else { return }
    let jobs = try state.reader.jobs(of: path, limit: Self.mostJobs)
    if state.process == nil { try output.line("\(state.headline); this is what it last knew") }
    try output.lines(StoreText.lines(store, daemon))
    try output.line("  version \(StoreText.versions(store.version, store.target)), watch \(store.watch)")
    try output.lines(MessageFormatter.table(jobs.map { Array(StoreText.cells($0).dropLast()) }))
    try output.object(["running": state.process != nil, "store": store.json, "jobs": jobs.map(\.json)])
  }
}
