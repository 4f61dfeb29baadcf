// The check of all models: which versions to try, the pieces of work that threads share, and their combined results.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import Synchronization
import SystemPackage

/// Checks models.
package struct ModelChecker: Sendable {
  private let request: CheckRequest
  private let stop: StopSignal

  /// Creates a check; `stop` ends it.
  package init(_ request: CheckRequest, stop: StopSignal = StopSignal()) {
    self.request = request
    self.stop = stop
  }

  /// One piece of work.
  private enum Piece: Sendable {
    case version(line: Int, CatalogedVersion)
    case store(Int)
  }

  /// The results of the pieces.
  private struct Outcome: Sendable {
    var versions: [Int: [VersionCheck]] = [:]
    var stores: [Int: StoreCheck] = [:]
    var failure: HopdError?
    var done = 0
  }

  /// Runs the check. `progress` receives the number of finished pieces and of all pieces, on any thread.
  ///
  /// Throws if the check itself is impossible: unknown versions, no space for stores, a stop.
  package func run(progress: @escaping @Sendable (Int, Int) -> Void = { _, _ in }) throws(HopdError) -> CheckReport {
    let start = ContinuousClock.now
    let lines = request.catalog.bundles.map { LineCheck($0, request: request) }
    try requireKnownVersions(lines)
    let files = LinuxFileSystem(isDurable: false)
    let scratch = try ScratchDirectory(in: request.scratch, files: files)
    defer { try? scratch.remove() }
    let deadline = request.budget.map { start + .milliseconds(Int64(max(0, min($0, 1e9)) * 1000)) }
    let trial = StoreTrial(request: request, scratch: scratch.path, files: files, stop: stop, deadline: deadline)
    let pieces = self.pieces(lines)
    let outcome = Mutex(Outcome())
    Workers.run(pieces.count, threads: request.workers) { [self] index in
      let piece = pieces[index]
      let result = Result { () throws(HopdError) in try work(piece, lines, trial) }
      let done = outcome.withLock { outcome in
        outcome.done += 1
        switch (piece, result) {
        case (.version(let line, _), .success(.version(let check))): outcome.versions[line, default: []].append(check)
        case (.store(let number), .success(.store(let check))): outcome.stores[number] = check
        case (_, .failure(let error)): outcome.failure = outcome.failure ?? error
        case (_, .success): break
        }
        return outcome.done
      }
      progress(done, pieces.count)
    }
    let found = outcome.withLock { $0 }
    if let failure = found.failure { throw failure }
    var report = CheckReport(
      models: lines.enumerated().map { $0.element.result(with: found.versions[$0.offset] ?? []) },
      stores: found.stores.sorted { $0.key < $1.key }.map(\.value), warnings: [])
    report.seconds = Self.seconds(since: start)
    report.peakMemory = ProgramMemory.peak
    return report
  }

  /// Returns what the models and mapping models show about their hops; no store is tried.
  package func inspect() -> CheckReport {
    CheckReport(
      models: request.catalog.bundles.map { bundle in
        let line = LineCheck(bundle, request: request)
        var model = line.result(with: [])
        model.findings = model.hops.filter { $0.isConsecutive && $0.step.kind == .missing }.flatMap { hop in
          hop.reasons.flatMap { StoreTrial.leaves(of: $0.located(Place(hop: hop.title))) }.map { CheckFinding($0) }
        }.map(line.withRemedies)
        return model
      }, stores: [], warnings: [])
  }

  /// Returns the single causes of a refusal, each with its remedies.
  package func findings(of error: HopdError) -> [CheckFinding] {
    let lines = request.catalog.bundles.map { LineCheck($0, request: request) }
    return StoreTrial.leaves(of: error, isOfTrial: false).map { leaf in
      let finding = CheckFinding(leaf)
      return lines.lazy.map { $0.withRemedies(finding) }.first { !$0.remedies.isEmpty } ?? finding
    }
  }

  static func seconds(since start: ContinuousClock.Instant) -> Double { (ContinuousClock.now - start).seconds }

  private enum Answer {
    case version(VersionCheck)
    case store(StoreCheck)
  }

  private func work(_ piece: Piece, _ lines: [LineCheck], _ trial: StoreTrial) throws(HopdError) -> Answer {
    if stop.isStopping { throw HopdError(.interrupted, "stopped on request", hint: "run the command again") }
    switch piece {
    case .version(let index, let version): return .version(try lines[index].check(version, trial))
    case .store(let number): return .store(try trial.check(storeAt: request.stores[number]))
    }
  }

  /// The newest version comes first: if something stops it, it stops others too, and these need not be tried to the
  /// end. Then come the longest chains, so that none of them is left for a single thread at the end. With a budget the
  /// newest versions come first, because most users have these.
  private func pieces(_ lines: [LineCheck]) -> [Piece] {
    var versions: [Piece] = []
    for (index, line) in lines.enumerated() {
      let wanted = line.toCheck
      let ordered = request.budget == nil ? wanted.suffix(1) + wanted.dropLast() : wanted.reversed()
      versions += ordered.map { .version(line: index, $0) }
    }
    return request.stores.indices.map { .store($0) } + versions
  }

  private func requireKnownVersions(_ lines: [LineCheck]) throws(HopdError) {
    let known = lines.flatMap(\.names)
    for name in request.only.sorted() + [request.since].compactMap(\.self) where !known.contains(name) {
      throw HopdError(
        .noSuchVersion, "no such version: '\(name)'",
        at: Place(file: request.catalog.bundles.first?.path),
        hint: NearestName.hint(NearestName.among(known, to: name), of: known))
    }
  }
}
