// What a column makes of the values that are written into it, by the words of its declared type. A view has no columns that
// could do it, so whoever shows in a view what a table would hold says it with a function.

/// The affinity of a column (sqlite.org/datatype3.html §3.1).
package enum ColumnAffinity: Sendable, Hashable, CaseIterable {
  case integer, text, blob, real, numeric

  /// The affinity of a declared type, by SQLite's rules in their order.
  package init(declaredType: String) {
    let type = declaredType.uppercased()
    func has(_ words: String...) -> Bool { words.contains { type.contains($0) } }
    if has("INT") {
      self = .integer
    } else if has("CHAR", "CLOB", "TEXT") {
      self = .text
    } else if type.isEmpty || has("BLOB") {
      self = .blob
    } else if has("REAL", "FLOA", "DOUB") {
      self = .real
    } else {
      self = .numeric
    }
  }

  /// An expression for what the column holds after `value` was written into it, by a function of
  /// `Connection.registerAffinityFunctions`.
  package func stored(_ value: String) -> String {
    switch self {
    // They store alike; only CAST tells them apart.
    case .integer, .numeric: "hopd_column_integer(\(value))"
    case .real: "hopd_column_real(\(value))"
    case .text: "hopd_column_text(\(value))"
    case .blob: value
    }
  }

  /// Does a column of this affinity store every value as one of `other` did?
  package func keeps(valuesOf other: ColumnAffinity) -> Bool {
    func number(_ affinity: ColumnAffinity) -> Bool { affinity == .integer || affinity == .numeric }
    return self == .blob || self == other || (number(self) && number(other))
  }
}
