// One run of `hopctl fleet run`: its lines in the results file, the progress output, and the summary.

import Diagnostics
import DurableFiles
import Glibc
import MigrationPipeline
import StoreFleet
import StoreVerification
import Synchronization
import SystemPackage

/// Migrates stores and prints its progress.
struct WorkSession {
  /// The maximum number of failures to print one by one; the results file has all.
  private static let reportedFailures = 10

  let templates: WorkTemplates
  /// The directory for the records of running migrations.
  let stateDirectory: FilePath
  let shard: Shard
  /// Number of stores in the fleet.
  let fleet: Int
  let limits: FleetWorker.Limits
  let file: LineFile?
  let stop: StopSignal
  /// The options for models and rules, as shell words.
  let options: String
  let output: OutputOptions
  let bar: ProgressLine

  /// Runs the migrations. With `mayEnd`, a canary run without failures ends the command, so that a person can inspect
  /// the result.
  func run(_ stores: [StoreLine], isCanary: Bool, mayEnd: Bool) throws -> RunOutcome {
    let run = RequestOptions.jobName()
    var line = RunLine(
      run: run, shard: shard, stores: stores.count, fleet: fleet, host: RunLine.hostName(), time: .now,
      canary: isCanary, options: options)
    try Self.keep(line, file, output)
    var outcome = try worker(run, isCanary).run(stores, observer: observer(of: stores.count, isCanary))
    bar.end()
    if isCanary, mayEnd, outcome.exit == 0, outcome.stopped == nil {
      outcome.stopped = .canary
      outcome.exit = ExitStatus.workToDo.rawValue
    }
    (line.event, line.time, line.outcome) = (.end, .now, outcome)
    try Self.keep(line, file, output)
    try output.lines(FleetText.lines(of: outcome, shard: shard, isCanary: isCanary))
    if outcome.stopped == .canary {
      try output.lines(stores.prefix(Self.reportedFailures).map { "    \($0.store.printableLine)" })
      if stores.count > Self.reportedFailures {
        let rest = MessageFormatter.count(stores.count - Self.reportedFailures)
        try output.line("    and \(rest) more, in the results")
      }
    }
    return outcome
  }

  /// Appends a line to the results, and prints it with `--json`.
  private static func keep(_ line: some Encodable, _ file: LineFile?, _ output: OutputOptions) throws(HopdError) {
    try file?.append(line)
    if output.json { try StandardStreams.write(LineFile.bytes(of: line), to: .output) }
  }

  private func worker(_ run: String, _ isCanary: Bool) throws -> FleetWorker {
    let task = try StoreTask(run: run, stateDirectory: stateDirectory) { [templates] line in
      var request = try templates.request(for: line)
      if isCanary { request.verification = .full }
      return request
    }
    let work: FleetWorker.Task = { store, stop in task.migrate(store, stop: stop) }
    return FleetWorker(task: work, limits: limits, signal: stop) {
      [file, output] line throws(HopdError) in try Self.keep(line, file, output)
    }
  }

  private func observer(
    of count: Int, _ isCanary: Bool
  ) -> @Sendable (FleetWorker.Tally, ResultLine) -> Void {
    let start = ContinuousClock.now
    return { [bar, stop] tally, result in
      // After a signal the stores at work wait for the next run, which the summary says.
      let isReason = result.result == .failed || result.result == .waiting && !stop.isStopping
      let reported = tally.failed + tally.waiting
      if isReason, reported <= Self.reportedFailures {
        bar.end()
        let error = result.error
        StandardStreams.report(
          "hopctl: \(result.store.printableLine): \(error?.message.printableLine ?? "failed")"
            + (error?.hint.map { "\n  hint: \($0.printableHint)" } ?? ""))
        if reported == Self.reportedFailures {
          StandardStreams.report("hopctl: further failures are in the results")
        }
      }
      let pace = Double(tally.tried) / max((ContinuousClock.now - start).seconds, 0.001)
      let left = Double(count - tally.tried) / max(pace, 0.001)
      bar.show(
        FleetText.line(
          "\(isCanary ? "canary: " : "")\(MessageFormatter.count(tally.tried)) of "
            + MessageFormatter.count(count, "store", "stores"),
          "\(MessageFormatter.count(tally.failed)) failed", "\(MessageFormatter.duration(left)) to go",
          "\(MessageFormatter.count(Int64(pace))) a second"))
    }
  }
}
