// An attribute's values in its column (docs/formats/store-layout.md, "Values in columns", "Column types" and "External
// binary data"): the one place for what all readers and writers of columns have in common. What an expression, a policy
// or a dump makes of such a value is theirs.

import ManagedObjectModel
import SQLite

extension AttributeType {
  /// The values of an integer or Boolean column; nil for other types.
  package var integers: ClosedRange<Int64>? {
    switch self {
    case .boolean: 0...1
    case .integer16: Int64(Int16.min)...Int64(Int16.max)
    case .integer32: Int64(Int32.min)...Int64(Int32.max)
    case .integer64: .min ... .max
    default: nil
    }
  }

  /// The declared type of the column, and the group of columns in which Core Data puts it; nil for types without a
  /// column that any store shows.
  package var column: (declaredType: String, group: Int)? {
    switch self {
    case .integer16, .integer32, .integer64, .boolean: ("INTEGER", 0)
    case .date: ("TIMESTAMP", 2)
    case .double, .float: ("FLOAT", 2)
    case .decimal: ("DECIMAL", 3)
    case .string, .uri: ("VARCHAR", 4)
    case .uuid: ("BLOB", 5)
    case .transformable: ("BLOB", 6)
    case .binary: ("BLOB", 7)
    case .undefined, .objectID, .composite: nil
    }
  }

  /// A number as a Double or Float column holds it; nil for a number that the column cannot hold: NaN, which SQLite
  /// would store as NULL, and a finite number beyond the floats.
  package func real(_ number: Double) -> Double? {
    if number.isNaN { return nil }
    guard self == .float else { return number }
    let float = Float(number)
    return float.isFinite || !number.isFinite ? Double(float) : nil
  }
}

extension Attribute {
  /// Do its values have one of the forms of `ExternalDataForm`?
  ///
  /// Binary alone: what the flag does to values of other types was never seen (docs/formats/store-layout.md, "External
  /// binary data"), so those are carried as they are.
  package var hasExternalForm: Bool { allowsExternalStorage && type == .binary }

  /// Bytes as the column holds them: behind the byte of an inline value, where the attribute has external storage.
  package func stored(_ content: [UInt8]) -> SQLiteValue {
    .blob(hasExternalForm ? [ExternalDataForm.inlinePrefix] + content : content)
  }

  /// A default as the column holds it; nil where it is an object that only the app can turn into a stored value.
  package func stored(default value: AttributeDefault) -> SQLiteValue? {
    switch value {
    case .integer(let number): .integer(number)
    case .boolean(let flag): .integer(flag ? 1 : 0)
    case .double(let number), .date(let number): .real(number)
    // Decimal columns have NUMERIC affinity, which turns the text into a number as far as it is one exactly.
    case .decimal(let text), .string(let text): .text(text)
    case .uuid(let bytes): .blob(bytes)
    case .binary(let bytes): stored(bytes)
    case .archived: nil
    }
  }

  /// What a new object has before anything is set; nil where that is an object that only the app can turn into a stored
  /// value.
  package var storedDefault: SQLiteValue? { defaultValue.map { stored(default: $0) } ?? .null }
}

extension SQLExpression {
  /// The default of an attribute; nil where it has none, or one that only the app can turn into a stored value.
  package static func defaultValue(of attribute: Attribute) -> SQLExpression? {
    attribute.defaultValue.flatMap { attribute.stored(default: $0) }.map { .value($0) }
  }
}
