// How a column converts the values written to it, by its declared type. A view has no columns that convert, so a view
// that shows the content of a future table calls a function for it.

/// The affinity of a column (sqlite.org/datatype3.html, section 3.1).
package enum ColumnAffinity: Sendable, Hashable, CaseIterable {
  case integer, text, blob, real, numeric

  /// The affinity of a declared type, by SQLite's rules in their order. Called for every column of every plan, so it
  /// reads the bytes only once.
  package init(declaredType: String) {
    var last: UInt32 = 0
    var (isText, isBlob, isReal) = (false, declaredType.isEmpty, false)
    for byte in declaredType.utf8 {
      let upper = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") ? byte - 0x20 : byte
      last = last << 8 | UInt32(upper)
      switch last {
      case Self.word("CHAR"), Self.word("CLOB"), Self.word("TEXT"): isText = true
      case Self.word("BLOB"): isBlob = true
      case Self.word("REAL"), Self.word("FLOA"), Self.word("DOUB"): isReal = true
      default: break
      }
      if last & 0xff_ffff == Self.word("INT") {
        self = .integer
        return
      }
    }
    self = isText ? .text : isBlob ? .blob : isReal ? .real : .numeric
  }

  /// The last bytes of a word as a number.
  private static func word(_ text: StaticString) -> UInt32 {
    text.withUTF8Buffer { $0.reduce(0) { $0 << 8 | UInt32($1) } }
  }

  /// An expression for the column's content after `value` is written to it; it calls a function of
  /// `Connection.registerAffinityFunctions`.
  package func stored(_ value: SQLExpression) -> SQLExpression {
    switch self {
    // They store alike; only CAST distinguishes them.
    case .integer, .numeric: "hopd_column_integer(\(value))"
    case .real: "hopd_column_real(\(value))"
    case .text: "hopd_column_text(\(value))"
    case .blob: value
    }
  }

  /// Whether a column of this affinity stores every value as a column of `other` does.
  package func keeps(valuesOf other: ColumnAffinity) -> Bool {
    func number(_ affinity: ColumnAffinity) -> Bool { affinity == .integer || affinity == .numeric }
    return self == .blob || self == other || (number(self) && number(other))
  }
}
