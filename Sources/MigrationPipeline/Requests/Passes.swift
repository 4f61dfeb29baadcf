// How the hops of a plan are carried out: which of them are one pass over the rows, the cost, and the fingerprint by
// which a run recognises staged stores of other passes.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import StoreReplacement

/// The passes of a plan.
package struct Passes: Sendable {
  /// In order; together they are all hops of the plan.
  package let groups: [HopGroup]
  /// The cost of the passes: the plan's estimate refers to hops that are made one by one.
  package let estimate: MigrationEstimate
  /// `MigrationPlan.fingerprint` together with the passes: staged stores and checkpoints are at the end of passes
  /// only.
  package let fingerprint: String
  /// The program that alters a copy of the store; nil where rows are written.
  package let alterProgram: AlterProgram?
  /// A short description of the alteration, or why there is none.
  package let reason: String

  /// Decides by the plan alone.
  package init(of plan: MigrationPlan, options: EngineOptions) throws(HopdError) {
    let form: String
    switch try AlterCompiler.decide(plan, options: options) {
    case .copyAndAlter(let program):
      alterProgram = program
      reason = program.summary
      form = "a\(program.kept.count).\(program.written.count)"
      groups = [HopGroup(hops: plan.hops.indices, execution: .copyAndAlter, boundary: nil)]
    case .chunks(let why):
      alterProgram = nil
      reason = why
      form = ""
      groups = try HopFusion.groups(of: plan, options: options)
    }
    estimate = Passes.estimate(groups, of: plan)
    let ends = groups.map { "\($0.hops.upperBound)" }
    fingerprint = "\(plan.fingerprint)-\(ends.joined(separator: "."))\(form)"
  }

  /// Disk for one staged store; where there are several passes two of them exist at once.
  var stagedBytes: Int64 { groups.count > 1 ? estimate.diskNeeded / 2 : estimate.diskNeeded }

  /// The last hop of a pass.
  func last(of position: Int) -> Int { groups[position].hops.upperBound - 1 }

  /// Rows that a pass writes.
  static func rows(of group: HopGroup, in plan: MigrationPlan) -> Int64 {
    group.hops.last.map { plan.hops[$0].rowsToRead } ?? 0
  }

  private static func estimate(_ groups: [HopGroup], of plan: MigrationPlan) -> MigrationEstimate {
    let whole = plan.estimate
    let rows = groups.reduce(Int64(0)) { $0.addingReportingOverflow(Passes.rows(of: $1, in: plan)).partialValue }
    // The plan counts two staged stores at once where there are several hops; one pass has one.
    let disk = groups.count == 1 && plan.hops.count > 1 ? whole.diskNeeded / 2 : whole.diskNeeded
    let share = whole.rows > 0 ? Double(rows) / Double(whole.rows) : 1
    return MigrationEstimate(
      rows: rows, bytes: whole.bytes, diskNeeded: disk, memory: whole.memory, seconds: whole.seconds * share)
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

extension HopGroup {
  /// "hop 2" or "hops 1 to 3".
  package var title: String {
    hops.count == 1 ? "hop \(hops.upperBound)" : "hops \(hops.lowerBound + 1) to \(hops.upperBound)"
  }
}

extension HopGroup.Execution {
  /// The word of JSON outputs.
  package var word: String {
    switch self {
    case .chunks: "chunks"
    case .copyAndAlter: "copy-and-alter"
    }
  }

  /// A description for a line of a plan.
  package var sentence: String {
    switch self {
    case .chunks: "rows are written in chunks"
    case .copyAndAlter: "the store is copied and its tables altered"
    }
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
