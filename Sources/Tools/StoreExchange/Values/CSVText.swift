// Cells of CSV as RFC 4180 has them: CRLF, and quotes around cells with a comma, a quote or the end of a line. An empty
// text is quoted and nil is not, so that a reader that looks at the quotes can tell them apart.

import Diagnostics
import PropertyLists
import SQLite

/// Writes cells of CSV.
struct CSVText {
  let formulas: FormulaForm

  /// Whether a spreadsheet would compute a text that stays a text here.
  func isEscaped(_ text: String) -> Bool {
    formulas == .escape && text.utf8.first.map { "=+-@\t\r".utf8.contains($0) } == true
  }

  /// Returns a cell with a text.
  func cell(_ text: String, mayBeFormula: Bool = true) -> String {
    var text = text
    if mayBeFormula, isEscaped(text) { text = "'" + text }
    let needsQuotes = text.isEmpty || text.utf8.contains { [0x22, 0x2c, 0x0a, 0x0d].contains($0) }
    guard needsQuotes else { return text }
    var bytes: [UInt8] = [0x22]
    for byte in text.utf8 {
      bytes.append(byte)
      if byte == 0x22 { bytes.append(byte) }
    }
    bytes.append(0x22)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns the cell of a value: bytes as base64, nothing for nil.
  func cell(_ value: SQLiteValue) -> String {
    switch value {
    case .null: ""
    case .integer(let number): String(number)
    case .real(let number):
      if number.isInfinite { number < 0 ? "-Infinity" : "Infinity" } else { String(number) }
    case .text(let text): cell(text)
    case .blob(let bytes): cell(Base64.encode(bytes), mayBeFormula: false)
    }
  }
}
