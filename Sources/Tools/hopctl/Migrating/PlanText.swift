// The text output of a plan: its hops with their entities, how each is carried out, and the needed disk space.

import Diagnostics
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import StoreReplacement

/// A plan as lines.
struct PlanText {
  let plan: MigrationPlan
  /// The plan's hops as `--json` has them.
  let hops: [PlanShape.Hop]
  let execution: ChainExecution
  /// Dropped columns and entities, including those that only the trial found.
  let drops: [DroppedColumn]
  let request: MigrationRequest

  /// "3 hops".
  var count: String { MessageFormatter.count(plan.hops.count, "hop", "hops") }

  // MARK: Hops

  var hopLines: [TerminalText] { zip(plan.hops, hops).flatMap { lines($0, $1) } }

  private func lines(_ hop: Hop, _ shape: PlanShape.Hop) -> [TerminalText] {
    var lines = [TerminalText("hop \(hop.index + 1)/\(plan.hops.count)  \(hop.title)  (\(way(hop, shape)))")]
    // A hook copies every entity unchanged. Its entity mapping without a source is its program, which is listed below.
    let entities = shape.entities.filter { hop.hook == nil || $0.source != nil }
    let rows = entities.map { entity in
      ["\(entity.subject)", entity.type, MessageFormatter.count(entity.rows, "row", "rows")]
        + (hop.isMapped && hop.hook == nil ? [entity.execution] : [])
    }
    lines += MessageFormatter.table(rows, right: [2]).map { TerminalText($0) }
    for entity in entities where !entity.reasons.isEmpty {
      lines.append("  \(entity.subject): \(entity.reasons.joined(separator: "; "))")
    }
    for policy in shape.policies {
      let what = hop.hook == nil ? "policy \(policy.name)" : "then the program \(policy.name) changes objects"
      let program = policy.bound ? TerminalText("bound") : TerminalText("no program", .bad) + "; pass one with --policy"
      lines.append("  \(what): " + program)
    }
    for drop in drops where drop.hop == hop.index {
      lines.append("  drops \(drop.subject) (\(drop.column ?? drop.table)): \(drop.amount)")
    }
    return lines
  }

  /// The origin of a hop's rules.
  private func way(_ hop: Hop, _ shape: PlanShape.Hop) -> String {
    guard let place = hop.hook?.stage.place else {
      return shape.mappings.isEmpty ? "inferred" : "mapping: \(shape.mappings.joined(separator: ", "))"
    }
    return "stage, declared in \(place.file?.printable ?? "")" + (place.line.map { ":\($0)" } ?? "")
  }

  // MARK: Execution

  /// How each hop is carried out, with its tables or the reason for writing all rows; and the dropped history.
  var executionLines: [TerminalText] {
    var lines = execution.hops.enumerated().flatMap { index, decision -> [TerminalText] in
      ["hop \(index + 1)/\(plan.hops.count)  \(execution.sentence(ofHop: index)): \(decision.reason)"]
        + tableLines(decision)
    }
    for table in plan.clearedHistory where table.rows > 0 {
      lines.append("clears \(table.table) (persistent history): \(MessageFormatter.count(table.rows, "row", "rows"))")
    }
    return lines
  }

  /// The tables that change in an altered file; the others are only counted.
  private func tableLines(_ decision: HopDecision) -> [TerminalText] {
    guard let changes = decision.program?.changes else { return [] }
    let changed = changes.filter { $0.action != .kept }
    guard !changed.isEmpty else { return [] }
    let rows = changed.map { [$0.table, $0.action.rawValue, $0.reason] }
    let kept = changes.count - changed.count
    return MessageFormatter.table(rows, right: []).map { "  \($0)" }
      + (kept == 0
        ? [] : ["  \(MessageFormatter.count(kept, "table unchanged", "tables unchanged"))"])
  }

  // MARK: Requirements

  /// How the new store replaces the old one, if not by a rename.
  var replacement: String? {
    guard request.replacement == .inPlace else { return nil }
    return "replace: in-place (SQLite writes the new store into the same file in one transaction)"
  }

  /// Bytes of free disk that the migration needs.
  var diskNeeded: Int64 {
    execution.estimate.diskNeeded(
      replacing: request.replacement ?? .rename, keepsBackupElsewhere: request.backup.directory != nil)
  }

  var estimate: String {
    let estimate = execution.estimate
    // The rows of each hop count, so they may be more than the store has.
    let hops = plan.hops.count > 1 ? " in \(plan.hops.count) hops" : ""
    return "estimate: \(MessageFormatter.count(estimate.rows, "row", "rows"))\(hops), "
      + "\(MessageFormatter.bytes(estimate.bytes)) to read, \(MessageFormatter.bytes(diskNeeded)) of free disk, "
      + "\(MessageFormatter.bytes(estimate.memory)) of memory, about "
      + MessageFormatter.duration(estimate.seconds)
  }
}
