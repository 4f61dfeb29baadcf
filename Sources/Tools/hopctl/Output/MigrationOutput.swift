// The result of a migration or a rehearsal, as text and as JSON.

import Diagnostics
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreVerification
import SystemPackage

/// Prints the result of a run.
struct MigrationOutput {
  let output: OutputOptions
  /// The store as it was named, if the run read a store that was made of it.
  var named: FilePath?

  /// Runs a migration or a rehearsal with its progress, and prints the result. `verb` names the action in the past
  /// tense; `interrupted` is the hint after a stopped run.
  func run(
    _ request: MigrationRequest, _ remarks: [HopdError], _ bar: ProgressBar, verb: String, isCopy: Bool = false,
    interrupted: String,
    _ body: (@escaping (MigrationEvent) -> Void) throws(MigrationFailure) -> MigrationReport
  ) throws {
    let report: MigrationReport
    do throws(MigrationFailure) {
      defer { bar.end() }
      report = try body { bar.show($0) }
    } catch {
      try fail(error, store: named ?? request.name, interrupted: interrupted)
    }
    let warnings = OutputOptions.news(report.warnings, after: remarks)
    output.warn(warnings)
    try show(report, verb: verb, depth: request.verification, warnings: remarks + warnings, isCopy: isCopy)
  }

  private func show(
    _ report: MigrationReport, verb: String, depth: VerificationDepth, warnings: [HopdError], isCopy: Bool
  ) throws {
    let path = (named ?? report.store).printable
    switch report.result {
    case .current:
      try output.line(
        !isCopy
          ? "current \(path): \(report.to), nothing to do"
          : "current \(path): a copy of the store, which is already \(report.to)")
    case .repaired:
      try output.line(
        "repaired \(path): \(report.to), \(MessageFormatter.count(Int64(report.repaired.count), "object", "objects")) "
          + "of the schema created or corrected, \(MessageFormatter.duration(report.seconds))")
      try show(report.repaired)
      try reportBackups(report)
    case .migrated, .completedBeforeCrash:
      let rows = report.rows.values.reduce(0, &+)
      let how =
        report.result == .completedBeforeCrash
        ? "completed by the previous run" : MessageFormatter.duration(report.seconds)
      try output.line(
        "\(verb) \(path): \(report.from) → \(report.to), "
          + "\(MessageFormatter.count(rows, "object", "objects")), \(how)\(report.wasResumed ? ", resumed" : "")")
      try show(report.repaired)
      for drop in report.dropped {
        try output.line("  dropped \(drop.subject): \(drop.amount)")
      }
      for table in report.clearedHistory where table.rows > 0 {
        try output.line(
          "  cleared \(table.table) (persistent history): \(MessageFormatter.count(table.rows, "row", "rows"))")
      }
      for hop in report.hops { for line in MigrationOutput.lines(hop.tallies) { try output.line("  \(line)") } }
      if let quarantine = report.quarantine {
        try output.line("  quarantine: \(quarantine.printable)")
      }
      try reportBackups(report)
    }
    try output.object(json(of: report, depth: depth, warnings: warnings))
  }

  /// The report as JSON.
  private func json(of report: MigrationReport, depth: VerificationDepth, warnings: [HopdError]) -> JSONObject {
    // A cleared table of persistent history loses all rows, so property and column are null.
    let history = report.clearedHistory.filter { $0.rows > 0 }.map { table -> JSONObject in
      [
        "hop": table.hop + 1, "entity": table.entity, "property": nil, "column": nil, "table": table.table,
        "nonNull": table.rows,
      ]
    }
    let checks: JSONObject = ["depth": depth.rawValue, "checks": report.checks.map(\.json)]
    let object: JSONObject = [
      "store": (named ?? report.store).string, "result": report.result.word,
      "from": report.from, "to": report.to, "backup": report.backup?.string, "seconds": report.seconds,
      "verified": report.checks.isEmpty ? nil : checks, "hops": report.hops.map(\.json), "rows": report.rows,
      "dropped": report.dropped.map(\.json) + history,
      "stages": Dictionary(uniqueKeysWithValues: report.stages.map { ($0.key.rawValue, $0.value) }),
      "peakMemory": report.peakMemory, "resumed": report.wasResumed, "storeUUID": report.storeUUID,
      "prunedBackups": report.prunedBackups.map { $0.generation.directory.string }, "warnings": warnings.map(\.json),
    ]
    let known: JSONObject = [
      "repaired": report.repaired.isEmpty ? nil : report.repaired.map(\.json),
      "quarantine": report.quarantine?.string, "releasedPin": report.releasedPin.map { PinShape($0) },
    ]
    return object + known.withoutNulls
  }

  private func show(_ repaired: [RepairedObject]) throws {
    for object in repaired {
      try output.line("  \(object.gap.isWrong ? "corrected" : "created") \(object.sentence)")
    }
  }

  /// Prints the path of the backup, the removed older backups, and whether a restored store is released.
  private func reportBackups(_ report: MigrationReport) throws {
    if let backup = report.backup { try output.line("  backup: \(backup.printable)") }
    for removal in report.prunedBackups {
      let why = removal.reason == .keep ? "exceeds --backup or `keep`" : "older than `keep_for`"
      try output.line("  deleted backup (\(why)): \(removal.generation.directory.printable)")
    }
    if let pin = report.releasedPin {
      try output.line("  unpinned: the store was \(pin.account)")
    }
  }

  /// The lines about source rows without a destination object of their own.
  static func lines(_ tallies: HopTallies) -> [String] {
    tallies.merged.sorted { $0.key < $1.key }.map {
      "merged \(MessageFormatter.count($0.value, "row", "rows")) by \($0.key)"
    }
      + tallies.dropped.sorted { $0.key < $1.key }.map {
        "skipped \(MessageFormatter.count($0.value, "row", "rows")) by \($0.key)"
      }
      + tallies.invalidRows.flatMap { rows in
        let what =
          switch rows.rule {
          case .fail, .skip: "skipped"
          case .default: "set the default in"
          case .quarantine: "quarantined"
          }
        return [
          "\(what) \(MessageFormatter.count(rows.count, "row", "rows")) of \(rows.entity), \(rows.property): "
            + "\(rows.code.rawValue)"
        ]
          + rows.clearedReferences.sorted { $0.key < $1.key }.map {
            "\(MessageFormatter.count($0.value, "reference", "references")) of \($0.key) cleared"
          }
      }
  }

  /// Reports a failed run.
  private func fail(_ failure: MigrationFailure, store: FilePath, interrupted: String) throws -> Never {
    var error = failure.error
    if let named { error.place.store = named }
    if error.code == .interrupted { error.hint = interrupted }
    ErrorReport.report(error)
    let isRefusal: Bool
    switch failure.stage {
    case .identify, .lock, .recover, .plan: isRefusal = true
    case .migrate, .verify, .replace, .report: isRefusal = false
    }
    let object: JSONObject = [
      "store": store.string, "result": isRefusal && error.code != .interrupted ? "refused" : "failed",
      "from": failure.from, "to": failure.to, "backup": nil, "seconds": 0.0, "verified": nil, "hops": [JSONObject](),
      "rows": [String: Int64](), "dropped": [JSONObject](), "prunedBackups": [String](), "warnings": [JSONObject](),
      "error": error.json,
    ]
    let uuid: JSONObject = ["storeUUID": failure.storeUUID]
    try output.object(object + uuid.withoutNulls)
    throw Finished(status: error.code.exit)
  }
}

extension MigrationResult {
  /// The word of JSON outputs: a run that a crash cut off after the swap has migrated the store.
  fileprivate var word: String { self == .completedBeforeCrash ? MigrationResult.migrated.rawValue : rawValue }
}

extension RepairedObject {
  /// "the column ZBOOK.ZPAGES (Book.pages), with the default in 3 rows".
  var sentence: String {
    gap.sentence + (rows == 0 ? "" : ", with the default in \(MessageFormatter.count(rows, "row", "rows"))")
  }

  /// `rows` got the default of the attribute.
  var json: JSONObject { gap.json + ["rows": rows] }
}

extension SchemaGap {
  /// "the column ZBOOK.ZPAGES (Book.pages)".
  var sentence: String {
    guard kind != .entityNumber, kind != .highestKey, let entity else { return text.printableLine }
    return "\(text) (\(([entity, property].compactMap(\.self)).joined(separator: ".")))".printableLine
  }

  /// An object that a store lacks.
  var json: JSONObject {
    ["kind": kind.rawValue, "name": name, "table": table, "entity": entity, "property": property]
  }
}

extension HopReport {
  /// `merged` and `leftOut` count, by entity mapping, the source rows that share another row's object or have none.
  fileprivate var json: JSONObject {
    [
      "source": source, "destination": destination, "kind": kind, "mappings": mappings, "rowsRead": rowsRead,
      "rowsWritten": rowsWritten, "chunks": chunks, "seconds": seconds, "merged": tallies.merged,
      "leftOut": tallies.dropped, "invalidRows": tallies.invalidRows.map(\.json),
    ]
  }
}

extension InvalidRows {
  /// Rows that break one rule of the destination, and how they were treated; `keys` are their first primary keys.
  fileprivate var json: JSONObject {
    [
      "entity": entity, "property": property, "code": Int(code.rawValue), "rule": rule.rawValue, "rows": count,
      "keys": keys, "clearedReferences": clearedReferences,
    ]
  }
}

extension DroppedColumn {
  /// "Book.title", or "Book" if the entity goes.
  var subject: String { property.map { "\(entity).\($0)" } ?? entity }

  /// "2 values", or "2 objects" if the entity goes.
  var amount: String {
    property == nil
      ? MessageFormatter.count(nonNull, "object", "objects") : MessageFormatter.count(nonNull, "value", "values")
  }

  fileprivate var json: JSONObject {
    ["hop": hop + 1, "entity": entity, "property": property, "column": column, "table": table, "nonNull": nonNull]
  }
}

extension VerificationCheck {
  /// One check of a store; `noted`: the check passed, and `detail` is a note.
  var json: JSONObject { ["name": name, "passed": passed, "noted": isNoted, "detail": detail] }
}
