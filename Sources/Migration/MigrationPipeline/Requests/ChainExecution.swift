// How the hops of a plan are carried out, the cost, and the fingerprint by which a run recognizes staged stores that
// were made in another way.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import StoreReplacement
import StoreVerification

/// How the hops of a plan are carried out, one after the other.
package struct ChainExecution: Sendable {
  /// By hop.
  package let hops: [HopDecision]
  /// By hop, whether it alters the staged store of the hop before where it stands.
  private let stays: [Bool]
  /// The cost.
  package let estimate: MigrationEstimate
  /// `MigrationPlan.fingerprint` together with the decisions.
  package let fingerprint: String

  /// Decides by the plan alone.
  package init(of plan: MigrationPlan, options: EngineOptions) throws(HopdError) {
    hops = try AlterCompiler.decide(plan, options: options)
    // In a chain whose results are counted hop by hop, the store before is needed for that.
    stays = hops.enumerated().map { $0 > 0 && !plan.isMixed && $1.program?.readsSource == false }
    fingerprint = "\(plan.fingerprint)-\(hops.map(\.mark).joined(separator: "."))"
    var whole = plan.estimate
    // The plan counts two staged stores at once where there are several hops.
    if hops.count > 1, stays.dropFirst().allSatisfy({ $0 }) {
      whole = MigrationEstimate(
        rows: whole.rows, bytes: whole.bytes, diskNeeded: whole.diskNeeded / 2, memory: whole.memory,
        seconds: whole.seconds)
    }
    estimate = whole
  }

  /// Whether a hop alters the staged store of the hop before where it stands.
  package func staysInStore(_ index: Int) -> Bool { stays[index] }

  /// What a hop does, for a line of a plan.
  package func sentence(ofHop index: Int) -> String {
    switch hops[index] {
    case .write: "writes all rows into a new file"
    case .alter: staysInStore(index) ? "alters the file of the hop before" : "copies the file and alters the copy"
    }
  }

  /// Whether two staged stores exist at once.
  var needsTwoStores: Bool { stays.dropFirst().contains(false) }

  /// Disk for one staged store.
  var stagedBytes: Int64 { needsTwoStores ? estimate.diskNeeded / 2 : estimate.diskNeeded }

  /// The tables of the last staged store that stayed in their file while hops altered it, by name.
  package var staying: [String: StayingTable] {
    var tables: [String: StayingTable] = [:]
    for (index, decision) in hops.enumerated() {
      let before = tables
      tables = [:]
      for kept in decision.program?.kept ?? [] {
        // A table that is not known was there, or was written by the hop before.
        let table = before[kept.origin] ?? StayingTable(origin: kept.origin, since: index, isRenamed: false)
        tables[kept.name] = StayingTable(
          origin: table.origin, since: table.since, isRenamed: table.isRenamed || kept.origin != kept.name)
      }
    }
    return tables
  }
}

extension HopDecision {
  /// "alter" or "write": the word of JSON outputs.
  package var word: String {
    switch self {
    case .alter: "alter"
    case .write: "write"
    }
  }

  /// The work in a few words, or the reason for writing all rows.
  package var reason: String {
    switch self {
    case .alter(let program): program.summary
    case .write(let reason): reason
    }
  }

  fileprivate var mark: String {
    switch self {
    case .alter(let program): "a\(program.kept.count).\(program.written.count)"
    case .write: "w"
    }
  }
}

extension MigrationEstimate {
  /// Free bytes that a migration needs beyond those that its staged stores take already (`there`). A replacement in
  /// place begins when only the last of them is left; it is assumed to be as large as the store.
  package func diskNeeded(
    replacing mode: ReplacementMode, keepsBackupElsewhere: Bool, there: Int64 = 0
  ) -> Int64 {
    let building = max(0, diskNeeded.subtractingReportingOverflow(there).partialValue)
    guard mode == .inPlace else { return building }
    let commit = ReplacementMode.bytesToCommit(
      store: bytes, staged: bytes, backup: keepsBackupElsewhere ? 0 : bytes, journalMode: .wal)
    let staged = max(0, bytes.subtractingReportingOverflow(there).partialValue)
    return max(building, commit.addingReportingOverflow(staged).partialValue)
  }
}

extension Hop {
  /// "inferred", "mapping" or "stage", as plans and reports call it.
  package var kind: String { hook != nil ? "stage" : isMapped ? "mapping" : "inferred" }

  /// Rows that its mappings read, without those of removed entities.
  var rowsToRead: Int64 {
    let costs =
      isMapped ? entities : zip(mapping.entityMappings, entities).filter { $0.0.kind != .remove }.map(\.1)
    return costs.reduce(0) { $0.addingReportingOverflow($1.rows).partialValue }
  }
}
