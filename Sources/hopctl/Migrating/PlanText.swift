// The text output of a plan: its hops with their entities, its passes over the rows, and the needed disk space.

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
  let passes: Passes
  /// Dropped columns, including those that only the trial found.
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
      let program = policy.bound ? TerminalText("bound") : TerminalText("no program", .bad) + "; give one with --policy"
      lines.append("  \(what): " + program)
    }
    for drop in drops where drop.hop == hop.index {
      let values = MessageFormatter.count(drop.nonNull, "value", "values")
      lines.append("  drops \(drop.entity).\(drop.property) (\(drop.column)): \(values)")
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

  // MARK: Passes

  /// The passes with their hops, their execution and its reason, the reason for each boundary, and the dropped history.
  var passLines: [TerminalText] {
    let count = passes.groups.count
    var lines = passes.groups.enumerated().flatMap { index, group -> [TerminalText] in
      let detail = group.execution == .copyAndAlter ? " (\(passes.reason))" : ""
      return ["pass \(index + 1)/\(count)  \(group.title): \(group.execution.sentence)\(detail)"]
        + (group.boundary.map { ["  ends there: \($0)"] } ?? [])
    }
    lines += tableLines
    if count > 0, passes.alterProgram == nil { lines.append("  hopd rewrites the rows: \(passes.reason)") }
    for table in plan.clearedHistory where table.rows > 0 {
      lines.append("clears \(table.table) (persistent history): \(MessageFormatter.count(table.rows, "row", "rows"))")
    }
    return lines
  }

  /// The tables that change in an altered copy; the others are only counted.
  private var tableLines: [TerminalText] {
    guard let program = passes.alterProgram else { return [] }
    let changes = program.changes
    let changed = changes.filter { $0.action != .kept }
    guard !changed.isEmpty else { return [] }
    let rows = changed.map { [$0.table, $0.action.rawValue, $0.reason] }
    let kept = changes.count - changed.count
    return MessageFormatter.table(rows, right: []).map { "  \($0)" }
      + (kept == 0
        ? [] : ["  \(MessageFormatter.count(kept, "table stays as it is", "tables stay as they are"))"])
  }

  // MARK: Needs

  /// How the new store replaces the old one, if not by a rename.
  var replacement: String? {
    guard request.replacement == .inPlace else { return nil }
    return "replace: in-place (the file stays; SQLite writes the new store into it in one transaction)"
  }

  /// Bytes of free disk that the migration needs.
  var diskNeeded: Int64 {
    passes.estimate.diskNeeded(
      replacing: request.replacement ?? .rename, keepsBackupElsewhere: request.backup.directory != nil)
  }

  var estimate: String {
    let estimate = passes.estimate
    return "estimate: \(MessageFormatter.count(estimate.rows, "row", "rows")), "
      + "\(MessageFormatter.bytes(estimate.bytes)) to read, \(MessageFormatter.bytes(diskNeeded)) of free disk, "
      + "\(MessageFormatter.bytes(estimate.memory)) of memory, about "
      + MessageFormatter.duration(estimate.seconds)
  }
}
