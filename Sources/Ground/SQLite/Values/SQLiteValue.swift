/// One value as SQLite stores it.
package enum SQLiteValue: Hashable, Sendable {
  /// NULL.
  case null
  /// A 64-bit integer.
  case integer(Int64)
  /// A double.
  case real(Double)
  /// Text; bytes that are not UTF-8 were replaced when it was read.
  case text(String)
  /// Bytes.
  case blob([UInt8])

  /// The value as an SQL literal.
  package var literal: String {
    switch self {
    case .null: "NULL"
    case .integer(let value): value == .min ? "(-9223372036854775807 - 1)" : String(value)
    case .real(let value):
      if value.isNaN { "NULL" } else if value.isInfinite { value < 0 ? "-9e999" : "9e999" } else { String(value) }
    case .text(let value):
      // A NUL ends SQL text, so such a value is written as its bytes.
      if value.utf8.contains(0) {
        "CAST(\(SQLiteValue.blob(Array(value.utf8)).literal) AS TEXT)"
      } else {
        SQLiteIdentifier.literal(value)
      }
    case .blob(let bytes): "X'" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
    }
  }
}
