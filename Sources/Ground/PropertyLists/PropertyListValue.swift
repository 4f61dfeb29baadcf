/// One value of a property list, binary or XML.
package indirect enum PropertyListValue: Sendable, Hashable {
  case string(String)
  case integer(Int64)
  case real(Double)
  case boolean(Bool)
  /// Seconds since 2001-01-01 00:00 UTC.
  case date(Double)
  case data([UInt8])
  case array([PropertyListValue])
  case dictionary([String: PropertyListValue])
  /// A reference of a keyed archive into its `$objects` (binary: UID; XML: a dictionary `CF$UID`).
  case uid(UInt64)
}

extension PropertyListValue {
  /// The text of a string, or nil.
  package var string: String? { if case .string(let value) = self { value } else { nil } }
  /// The value of an integer, or nil.
  package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  /// The bytes of a data value, or nil.
  package var data: [UInt8]? { if case .data(let value) = self { value } else { nil } }
  /// The elements of an array, or nil.
  package var array: [PropertyListValue]? { if case .array(let value) = self { value } else { nil } }
  /// The entries of a dictionary, or nil.
  package var dictionary: [String: PropertyListValue]? { if case .dictionary(let value) = self { value } else { nil } }
}

/// The identity of scalars in a list: texts are compared by their bytes, because Swift treats "é" and "e´" as equal,
/// and reals by their bits.
enum ScalarIdentity: Hashable {
  case text([UInt8])
  case real(UInt64)
  case date(UInt64)
  case other(PropertyListValue)

  init(_ value: PropertyListValue) {
    switch value {
    case .string(let text): self = .text(Array(text.utf8))
    case .real(let number): self = .real(number.bitPattern)
    case .date(let seconds): self = .date(seconds.bitPattern)
    default: self = .other(value)
    }
  }
}
