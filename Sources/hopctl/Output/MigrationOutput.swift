// The result of a migration or a rehearsal, in sentences and as JSON.

import Diagnostics
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage

/// Tells how a run ended.
struct MigrationOutput {
  let output: OutputOptions

  /// The report of a run that ended well; `verb` is what was done.
  func show(
    _ report: MigrationReport, verb: String, depth: VerificationDepth, warnings: [HopdError], isCopy: Bool
  ) throws {
    let path = report.store.printable
    switch report.result {
    case .current:
      try output.line(
        !isCopy
          ? "current \(path): \(report.to), nothing to do"
          : "current \(path): a copy of the store, which is \(report.to) already")
    case .migrated, .completedBeforeCrash:
      let rows = report.rows.values.reduce(Int64(0), &+)
      let how =
        report.result == .completedBeforeCrash
        ? "finished by the run before" : MessageFormatter.duration(report.seconds)
      try output.line(
        "\(verb) \(path): \(report.from) → \(report.to), "
          + "\(MessageFormatter.count(rows, "object", "objects")), \(how)\(report.wasResumed ? ", resumed" : "")")
      for drop in report.dropped {
        try output.line(
          "  dropped \(drop.entity).\(drop.property): \(MessageFormatter.count(drop.nonNull, "value", "values"))")
      }
      for table in report.clearedHistory where table.rows > 0 {
        try output.line(
          "  cleared \(table.table) (persistent history): \(MessageFormatter.count(table.rows, "row", "rows"))")
      }
      for hop in report.hops { for line in MigrationOutput.lines(hop.tallies) { try output.line("  \(line)") } }
      if let quarantine = report.quarantine {
        try output.line("  the quarantined objects are kept: \(quarantine.printable)")
      }
      try tellBackups(report)
    }
    try output.object(shape(of: report, depth: depth, warnings: warnings))
  }

  /// The report as JSON.
  private func shape(of report: MigrationReport, depth: VerificationDepth, warnings: [HopdError]) -> MigrateShape {
    var shape = MigrateShape(
      store: report.store.string, result: report.result == .current ? "current" : "migrated",
      from: OrNull(wrappedValue: report.from), to: OrNull(wrappedValue: report.to),
      backup: OrNull(wrappedValue: report.backup?.string), seconds: report.seconds,
      verified: OrNull(
        wrappedValue: report.checks.isEmpty
          ? nil : MigrateShape.Verified(depth: depth.rawValue, checks: report.checks.map(CheckShape.init))))
    shape.hops = report.hops.map {
      MigrateShape.Hop(
        source: $0.source, destination: $0.destination, kind: $0.kind, mappings: $0.mappings, rowsRead: $0.rowsRead,
        rowsWritten: $0.rowsWritten, chunks: $0.chunks, seconds: $0.seconds, merged: $0.tallies.merged,
        leftOut: $0.tallies.dropped, fused: $0.isFused,
        invalidRows: $0.tallies.invalidRows.map(MigrateShape.InvalidRows.init))
    }
    shape.rows = report.rows
    shape.dropped = report.dropped.map {
      MigrateShape.Dropped(
        hop: $0.hop, entity: $0.entity, property: OrNull(wrappedValue: $0.property),
        column: OrNull(wrappedValue: $0.column), table: $0.table, nonNull: $0.nonNull)
    }
    shape.dropped += report.clearedHistory.filter { $0.rows > 0 }.map {
      MigrateShape.Dropped(
        hop: $0.hop, entity: $0.entity, property: OrNull(wrappedValue: nil),
        column: OrNull(wrappedValue: nil), table: $0.table, nonNull: $0.rows)
    }
    shape.stages = Dictionary(uniqueKeysWithValues: report.stages.map { ($0.key.rawValue, $0.value) })
    shape.peakMemory = report.peakMemory
    shape.resumed = report.wasResumed
    shape.quarantine = report.quarantine?.string
    shape.prunedBackups = report.prunedBackups.map { $0.generation.directory.string }
    shape.releasedPin = report.releasedPin.map { PinShape($0) }
    shape.storeUUID = report.storeUUID
    shape.warnings = warnings.map(ErrorShape.init)
    return shape
  }

  /// Where the old store is, which older ones are gone, and whether a restored store is released.
  private func tellBackups(_ report: MigrationReport) throws {
    if let backup = report.backup { try output.line("  the old store is kept: \(backup.printable)") }
    for removal in report.prunedBackups {
      let why = removal.reason == .keep ? "--backup or `keep` keeps no more" : "it is older than `keep_for`"
      try output.line("  an older backup is removed, \(why): \(removal.generation.directory.printable)")
    }
    if let pin = report.releasedPin {
      try output.line("  released: the store was \(pin.account); it is pinned no longer")
    }
  }

  /// What became of rows that make no object of their own.
  static func lines(_ tallies: HopTallies) -> [String] {
    tallies.merged.sorted { $0.key < $1.key }.map {
      "merged \(MessageFormatter.count($0.value, "row", "rows")) by \($0.key)"
    }
      + tallies.dropped.sorted { $0.key < $1.key }.map {
        "left out \(MessageFormatter.count($0.value, "row", "rows")) by \($0.key)"
      }
      + tallies.invalidRows.map { rows in
        let what =
          switch rows.rule {
          case .fail, .skip: "skipped"
          case .default: "gave the default to"
          case .quarantine: "quarantined"
          }
        return "\(what) \(MessageFormatter.count(rows.count, "row", "rows")) of \(rows.entity), \(rows.property): "
          + "\(rows.code.rawValue)"
      }
  }

  /// The end of a run that failed; `hint` may say what to do about it.
  func fail(_ failure: MigrationFailure, store: FilePath, hint: (inout HopdError) -> Void) throws -> Never {
    var error = failure.error
    hint(&error)
    ErrorReport.tell(error)
    let isRefusal: Bool
    switch failure.stage {
    case .identify, .lock, .recover, .plan: isRefusal = true
    case .migrate, .verify, .replace, .report: isRefusal = false
    }
    try output.object(
      MigrateShape(
        store: store.string,
        result: isRefusal && error.code != .interrupted ? "refused" : "failed",
        from: OrNull(wrappedValue: failure.from), to: OrNull(wrappedValue: failure.to),
        backup: OrNull(wrappedValue: nil), seconds: 0, verified: OrNull(wrappedValue: nil),
        storeUUID: failure.storeUUID, error: ErrorShape(error)))
    throw Finished(status: error.code.exit)
  }
}
