// Results of all workers become one report. Lines may come in any order, twice, or from runs that were killed: a store
// counts once, with the last thing that happened to it.

import Diagnostics
import FoundationEssentials
import MigrationChecking
import StoreReplacement
import SystemPackage

/// Reads results, and makes the report. A store takes some forty bytes of memory, however long its path is.
package struct FleetReportBuilder {
  /// Slow stores that are named.
  private static let slowest = 10
  /// Examples that are kept of a cause: a store may be migrated later.
  private static let examples = 64

  private struct Entry {
    var time: Moment
    var result: StoreResult
    var versions: Int32
    /// Index into `causes`; -1 where there is none.
    var cause: Int32
    var wasMigratedTwice = false
  }

  private struct Example {
    var hash: UInt64
    var store: String
  }

  private struct CauseKey: Hashable {
    let code: String
    let hop: String?
    let entity: String?
    let property: String?
  }

  private struct VersionsKey: Hashable {
    let model: String?
    let before: String?
    let after: String?
  }

  private struct Run {
    /// Its position among all runs as they were read: within a file that is the order of time, whatever the clocks
    /// showed.
    var order: Int
    var begin: RunLine?
    var end: RunLine?
  }

  private var entries: [UInt64: Entry] = [:]
  private var versions: [VersionsKey: Int32] = [:]
  private var versionList: [VersionsKey] = []
  private var causes: [CauseKey: Int32] = [:]
  private var causeList: [(error: LineError, isRetryable: Bool, examples: [Example])] = []
  private var runs: [String: Run] = [:]
  private var report = FleetReport()

  /// An empty report.
  package init() {}

  /// Reads a results file. Half a line at its end is what a killed worker leaves, and zeros are lines that a power cut
  /// took; any other text that is not a line is an error.
  package mutating func read(_ path: FilePath) throws(HopdError) {
    var lines = try LineReader(path: path)
    let decoder = JSONDecoder()
    while let found = try lines.next() {
      let bytes = Array(found.drop { $0 == 0 })
      guard bytes.contains(where: { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\r") }) else { continue }
      let data = Data(bytes)
      if let line = try? decoder.decode(ResultLine.self, from: data), line.isPlausible {
        add(line)
      } else if let line = try? decoder.decode(RunLine.self, from: data), line.isPlausible {
        add(line)
      } else if !lines.endsTorn, !found.contains(0) {
        throw HopdError(
          .badManifest, "the line is not a result of `hopctl fleet run`", at: Place(file: path, line: lines.number),
          hint: "pass the files that `hopctl fleet run --results` wrote")
      }
    }
  }

  /// Counts the first or last line of a run.
  package mutating func add(_ line: RunLine) {
    var run = runs[line.run] ?? Run(order: runs.count)
    switch line.event {
    case .begin: run.begin = line
    case .end: run.end = line
    }
    runs[line.run] = run
  }

  /// Counts a store's line.
  package mutating func add(_ line: ResultLine) {
    let hash = StableHash.of(line.store)
    let old = entries[hash]
    if line.result == .migrated {
      report.rows = report.rows &+ (line.rows ?? 0)
      report.bytes = report.bytes &+ (line.size ?? 0)
      report.seconds += line.seconds
      note(slow: line)
    }
    var entry = Entry(
      time: line.time, result: line.result, versions: number(of: line), cause: cause(of: line, hash))
    if let old {
      let isNewer = line.time >= old.time
      entry.wasMigratedTwice =
        old.wasMigratedTwice
        || (old.result == .migrated && line.result == .migrated && old.versions == entry.versions)
      // A migrated store is current for every later run; it still counts as migrated.
      let keeps = isNewer ? old.result == .migrated && line.result == .current : line.result != .migrated
      let isLateNews = !isNewer && line.result == .migrated && old.result != .current
      if keeps || isLateNews {
        entries[hash]?.wasMigratedTwice = entry.wasMigratedTwice
        entries[hash]?.time = max(entry.time, old.time)
        return
      }
      entry.time = max(entry.time, old.time)
    }
    entries[hash] = entry
  }

  private mutating func number(of line: ResultLine) -> Int32 {
    let after = line.result == .migrated || line.result == .current ? line.to : line.from
    let key = VersionsKey(model: line.model, before: line.from, after: after)
    if let known = versions[key] { return known }
    let number = Int32(truncatingIfNeeded: versionList.count)
    versions[key] = number
    versionList.append(key)
    return number
  }

  private mutating func cause(of line: ResultLine, _ hash: UInt64) -> Int32 {
    guard line.result == .failed || line.result == .waiting else { return -1 }
    let error = line.error ?? LineError(HopdError(.internalError, "no reason was noted"))
    let key = CauseKey(code: error.code, hop: error.hop, entity: error.entity, property: error.property)
    let number = causes[key] ?? Int32(truncatingIfNeeded: causeList.count)
    if causes[key] == nil {
      causes[key] = number
      causeList.append((error, line.result == .waiting, []))
    }
    let place = Int(number)
    if causeList[place].examples.count == Self.examples { causeList[place].examples.removeFirst() }
    causeList[place].examples.append(Example(hash: hash, store: line.store))
    return number
  }

  private mutating func note(slow line: ResultLine) {
    let slow = FleetReport.Slow(store: line.store, seconds: line.seconds, rows: line.rows, bytes: line.size)
    let place = report.slowest.firstIndex { $0.seconds < slow.seconds } ?? report.slowest.count
    guard place < Self.slowest else { return }
    report.slowest.insert(slow, at: place)
    if report.slowest.count > Self.slowest { report.slowest.removeLast() }
  }

  /// The report over everything that was read.
  package func made() -> FleetReport {
    var report = report
    var versionCounts: [Int32: Int] = [:]
    var causeCounts: [Int32: Int] = [:]
    for entry in entries.values {
      switch entry.result {
      case .migrated: report.migrated += 1
      case .current: report.current += 1
      case .failed: report.failed += 1
      case .waiting: report.waiting += 1
      }
      if entry.wasMigratedTwice { report.migratedTwice += 1 }
      versionCounts[entry.versions, default: 0] += 1
      if entry.cause >= 0 { causeCounts[entry.cause, default: 0] += 1 }
    }
    report.versions = versionCounts.map { number, count in
      let key = versionList[Int(number)]
      return FleetReport.Versions(model: key.model, before: key.before, after: key.after, stores: count)
    }.sorted { ($1.stores, $0.before ?? "", $0.after ?? "") < ($0.stores, $1.before ?? "", $1.after ?? "") }
    report.failures = causeCounts.map { number, count in made(causeList[Int(number)], number, count) }
      .sorted { ($1.stores, $0.error.code, $0.example) < ($0.stores, $1.error.code, $1.example) }
    report.runs = runs.count
    report.shards = shardStates()
    report.fleet = fleet(report.shards)
    report.withoutResult = max(0, report.fleet - entries.count)
    return report
  }

  private func made(
    _ cause: (error: LineError, isRetryable: Bool, examples: [Example]), _ number: Int32,
    _ count: Int
  ) -> FleetReport.Cause {
    let example = cause.examples.last { entries[$0.hash]?.cause == number } ?? cause.examples.last
    let store = example?.store ?? ""
    let inspection = "hopctl plan \(store.quotedForShell) \(options ?? "--models MODEL")"
    let unpinning = "hopctl resume \(store.quotedForShell)"
    let command = cause.error.code == HopdError.Code.pinned.name ? unpinning : inspection
    return FleetReport.Cause(
      error: cause.error, isRetryable: cause.isRetryable, stores: count, example: store,
      next: cause.isRetryable ? "start the workers again" : command)
  }

  /// Stores of the whole manifest: the sum of the shares, or its lines where a shard is missing.
  private func fleet(_ shards: [FleetReport.ShardState]) -> Int {
    let known = runs.values.compactMap { $0.begin ?? $0.end }
    if let count = shards.first?.shards, !shards.contains(where: { $0.state == .missing }) {
      let shares = Dictionary(grouping: known.filter { $0.shards == count && !$0.canary }) { $0.shard }
      return shares.values.reduce(0) {
        min($0 + ($1.max { $0.time < $1.time }?.stores ?? 0), LineBounds.counts.upperBound)
      }
    }
    return known.map(\.fleet).max() ?? 0
  }

  /// The models and rules of the last run.
  private var options: String? {
    runs.values.compactMap(\.begin).max { $0.time < $1.time }.flatMap { $0.options.isEmpty ? nil : $0.options }
  }

  /// Each shard by its last run. Where the number of shards changed between runs, the last number counts.
  private func shardStates() -> [FleetReport.ShardState] {
    let known = runs.values.compactMap { run in (run.begin ?? run.end).map { (run, $0) } }
      .filter { !$0.1.canary }.sorted { ($0.1.time, $0.0.order) < ($1.1.time, $1.0.order) }
    guard let shards = known.last?.1.shards, (1...Shard.most).contains(shards) else { return [] }
    let byShard = Dictionary(grouping: known.filter { $0.1.shards == shards }) { $0.1.shard }
    return (1...shards).map { shard in
      guard let runs = byShard[shard], let (last, line) = runs.last else {
        return FleetReport.ShardState(shard: shard, shards: shards, state: .missing, runs: 0)
      }
      let outcome = last.end?.outcome
      return FleetReport.ShardState(
        shard: shard, shards: shards, state: outcome.map { $0.stopped == nil ? .ended : .stopped } ?? .unfinished,
        runs: runs.count, host: line.host, exit: outcome?.exit)
    }
  }
}
