// Numbers, sizes and tables for people. Programs use --json instead.

import Diagnostics
import MigrationPlanning

/// Text for people.
enum MessageFormatter {
  /// The origin of the model of a store's version, in the words of `--json`.
  static func modelSource(_ version: CatalogedVersion) -> String { version.isFromStoreItself ? "store" : "models" }

  /// 1234567 as "1,234,567".
  static func count(_ number: some BinaryInteger) -> String { number.grouped }

  /// "1 row", "2 rows".
  static func count(_ number: some BinaryInteger, _ one: String, _ many: String) -> String {
    "\(count(number)) \(number == 1 ? one : many)"
  }

  /// "a, b, c", or "a, b, c and 4 more".
  static func list(_ names: [String], most: Int = 3) -> String {
    guard names.count > most + 1 else { return names.joined(separator: ", ") }
    return names.prefix(most).joined(separator: ", ") + " and \(count(names.count - most)) more"
  }

  /// Bytes in binary units: "12.3 MiB".
  static func bytes(_ number: Int64) -> String { ByteCount.text(number) }

  /// Seconds as "0.4 s", "42 s", "3 min 20 s", "2 h 5 min".
  static func duration(_ seconds: Double) -> String {
    guard seconds.isFinite, seconds >= 0, seconds < 1e9 else { return "?" }
    if seconds < 10 { return "\(oneDecimal(seconds)) s" }
    let whole = Int64(seconds.rounded())
    if whole < 120 { return "\(whole) s" }
    if whole < 7200 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3600) h \(whole % 3600 / 60) min"
  }

  private static func oneDecimal(_ value: Double) -> String {
    guard value.isFinite, abs(value) < 1e15 else { return "?" }
    let tenths = Int64((value * 10).rounded())
    return "\(tenths / 10).\(abs(tenths % 10))"
  }

  /// Returns lines with aligned columns; columns in `right` are aligned to the right.
  static func table(_ rows: [[String]], right: Set<Int> = [], indent: String = "  ") -> [String] {
    table(rows.map { $0.map { TerminalText($0) } }, right: right, indent: indent).map(\.description)
  }

  /// The same for cells that may have a mood.
  static func table(_ rows: [[TerminalText]], right: Set<Int> = [], indent: String = "  ") -> [TerminalText] {
    // Without the empty cells at a row's end, which would be blanks.
    let rows = rows.map { row in row.prefix((row.lastIndex { $0.columns > 0 } ?? -1) + 1).map(\.escaped) }
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in rows.map { column < $0.count ? $0[column].columns : 0 }.max() ?? 0 }
    return rows.map { row in
      row.enumerated().reduce(TerminalText(indent)) { line, cell in
        let (column, text) = cell
        let space = TerminalText(String(repeating: " ", count: max(0, widths[column] - text.columns)))
        let filled = right.contains(column) ? space + text : column == row.count - 1 ? text : text + space
        return column == 0 ? line + filled : line + "  " + filled
      }
    }
  }
}
