// SQL statements and decisions on standard error, for debugging: `--verbose` or HOPD_LOG=debug shows the SQL as it runs
// (like -com.apple.CoreData.SQLDebug), HOPD_LOG=trace also each decision (like MigrationDebug). Values of users'
// attributes are never shown.

import ArgumentParser
import Diagnostics
import Glibc
import MigrationEngine
import MigrationPipeline

/// `--verbose`.
struct VerboseOptions: ParsableArguments {
  @Flag(
    name: [.customShort("v"), .long],
    help: "Print statements and timings to standard error (HOPD_LOG=trace: also decisions)")
  var verbose = false

  /// The level of detail.
  var level: NoteWriter.Level {
    let name = getenv("HOPD_LOG").map { String(cString: $0) }
    return max(verbose ? .debug : .none, NoteWriter.Level.allCases.first { "\($0)" == name } ?? .none)
  }
}

/// Writes notes of the engine.
struct NoteWriter {
  /// Levels of detail; each includes those before it.
  enum Level: Comparable, CaseIterable {
    case none, debug, trace
  }

  let level: Level
  let isQuiet: Bool

  /// The line of a note; nil if its level is not shown.
  func line(_ note: HopNote) -> String? {
    switch note {
    case .statement(let sql, let seconds, let rows):
      guard level >= .debug else { return nil }
      let milliseconds = (seconds * 10_000).rounded() / 10
      return "debug: \(milliseconds) ms\(rows.map { ", \(MessageFormatter.count($0)) rows" } ?? ""): \(sql)"
    case .remark(let remark): return level >= .debug ? "debug: \(remark)" : nil
    case .decision(let sentence): return level >= .trace ? "trace: \(sentence)" : nil
    case .policyOutput(let policy, let mapping, let line):
      if isQuiet { return nil }
      ToldLines.note(line)
      return "policy \(policy), \(mapping): \(line)".escapingControls(keepingNewlines: false)
    }
  }
}
