// A scan: every store below some folders, or of a list, inspected on several threads; each becomes one line.

import Diagnostics
import MigrationPipeline
import MigrationPlanning
import Synchronization
import SystemPackage

/// Scans a fleet.
package struct FleetScan {
  /// Files of one round: enough to keep the threads busy, few enough to be nothing in memory.
  private static let round = 2048

  private let inspector: StoreInspector
  private let threads: Int
  private let stop: StopSignal

  /// Scans with `threads` threads; ends between two rounds when stopped.
  package init(inspector: StoreInspector, threads: Int, stop: StopSignal) {
    self.inspector = inspector
    self.threads = threads
    self.stop = stop
  }

  /// The result of a round, in the order of the walk or the list.
  package struct Round: Sendable {
    package var lines: [StoreLine]
    /// SQLite databases that Core Data did not make.
    package var otherDatabases = 0
  }

  /// Inspects all databases of a walk. `known` has the stores of an earlier scan by path: one that did not change since
  /// is neither inspected nor returned again. `found` gets each round and may throw to end the scan. Throws
  /// `interrupted` when stopped.
  package func run(
    _ walk: inout StoreWalk, known: [String: KnownStore] = [:], found: (Round) throws -> Void
  ) throws {
    while true {
      let candidates = walk.next(Self.round)
      if candidates.isEmpty { return }
      let fresh = candidates.filter { known[$0.name] != KnownStore($0) }
      let stores = try inParallel(fresh) { [inspector] file in
        StoreModels.mayBeStore(file.path) ? inspector.line(for: file) : nil
      }
      let isOther = { (line: StoreLine) in line.state == StoreState.notAStore.rawValue }
      try found(Round(lines: stores.filter { !isOther($0) }, otherDatabases: stores.count(where: isOther)))
    }
  }

  /// The same for a list. Each of its stores is one line, also where there is no store.
  package func run(
    _ list: inout Manifest, known: [String: KnownStore] = [:], found: (Round) throws -> Void
  ) throws {
    while true {
      var named: [StoreLine] = []
      while named.count < Self.round, let line = try list.next() { named.append(line) }
      if named.isEmpty { return }
      let fresh = named.filter { line in
        known[line.store] == nil || known[line.store] != StoreWalk.Candidate(line).map { KnownStore($0) }
      }
      try found(Round(lines: try completed(fresh)))
    }
  }

  /// Lines of which only the path counts, completed by an inspection.
  package func completed(_ lines: [StoreLine]) throws -> [StoreLine] {
    try inParallel(lines) { [inspector] line in
      guard !line.hasNoPath else { return line }
      let file = StoreWalk.Candidate(line) ?? StoreWalk.Candidate(path: FilePath(line.store), size: 0, modified: 0)
      return inspector.line(for: file)
    }
  }

  private func inParallel<Input: Sendable>(
    _ inputs: [Input], _ body: @escaping @Sendable (Input) -> StoreLine?
  ) throws -> [StoreLine] {
    guard !stop.isStopping else {
      throw HopdError(.interrupted, "the scan was stopped", hint: "run the same command with --resume to continue")
    }
    let shared = Shared(count: inputs.count)
    Workers.run(inputs.count, threads: threads) { index in
      let line = body(inputs[index])
      shared.slots.withLock { $0[index] = line }
    }
    return shared.slots.withLock { $0.compactMap(\.self) }
  }

  private final class Shared: Sendable {
    let slots: Mutex<[StoreLine?]>

    init(count: Int) { slots = Mutex(Array(repeating: nil, count: count)) }
  }
}

/// The size and time that show that a store did not change since a scan.
package struct KnownStore: Sendable, Hashable {
  private let size: Int64
  private let modified: Int64

  init(_ file: StoreWalk.Candidate) { (size, modified) = (file.size, file.modified) }

  /// Nil for a line without size and time.
  package init?(_ line: StoreLine) {
    guard let size = line.size, let modified = line.modified else { return nil }
    (self.size, self.modified) = (size, modified)
  }
}
