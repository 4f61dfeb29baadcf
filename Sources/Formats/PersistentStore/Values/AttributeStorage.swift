// The form of an attribute's values in its column (docs/formats/store-layout.md, "Values in columns", "Column types"
// and "External binary data"): the part that all readers and writers of columns share. Expressions, policies and dumps
// convert such a value themselves.

import ManagedObjectModel
import SQLite

extension AttributeType {
  /// Returns a number as a Double or Float column stores it; nil if the column cannot store it: NaN, which SQLite would
  /// store as NULL, and a finite number beyond the range of floats.
  package func real(_ number: Double) -> Double? {
    if number.isNaN { return nil }
    let real = traits.rounded(number)
    return real.isFinite || !number.isFinite ? real : nil
  }
}

extension Attribute {
  /// Whether its values have one of the forms of `ExternalDataForm`.
  ///
  /// Only Binary: the flag's effect on values of other types was never seen (docs/formats/store-layout.md, "External
  /// binary data"), so those are carried unchanged.
  package var hasExternalForm: Bool { allowsExternalStorage && type == .binary }

  /// Returns bytes as the column stores them: after the prefix byte of an inline value, if the attribute has external
  /// storage.
  package func stored(_ content: [UInt8]) -> SQLiteValue {
    .blob(hasExternalForm ? [ExternalDataForm.inlinePrefix] + content : content)
  }

  /// Returns a default as the column stores it; nil for an object that only the app can turn into a stored value.
  package func stored(default value: AttributeDefault) -> SQLiteValue? {
    switch value {
    case .integer(let number): .integer(number)
    case .boolean(let flag): .integer(flag ? 1 : 0)
    case .double(let number), .date(let number): .real(number)
    // Decimal columns have NUMERIC affinity, which converts the text to a number if that is exact.
    case .decimal(let text), .string(let text): .text(text)
    case .uuid(let bytes): .blob(bytes)
    case .binary(let bytes): stored(bytes)
    case .archived: nil
    }
  }

  /// The value of a new object before anything is set; nil if it is an object that only the app can turn into a stored
  /// value.
  package var storedDefault: SQLiteValue? { defaultValue.map { stored(default: $0) } ?? .null }
}

extension SQLExpression {
  /// Returns the default of an attribute; nil if it has none, or one that only the app can turn into a stored value.
  package static func defaultValue(of attribute: Attribute) -> SQLExpression? {
    attribute.defaultValue.flatMap { attribute.stored(default: $0) }.map { .value($0) }
  }
}
