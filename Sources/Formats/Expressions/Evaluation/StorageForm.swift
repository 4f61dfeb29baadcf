// Converts values to the content of columns and back (docs/formats/store-layout.md, "Values in columns"), checked by
// the attribute's type: a value that does not fit is an error of the row, never cut or wrapped.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// The storage form of values.
package enum StorageForm {
  /// Returns the value that a column of the attribute holds.
  ///
  /// Content with external storage has the column's own form on both sides: prefix byte or reference
  /// (docs/formats/store-layout.md, "External binary data").
  package static func stored(_ value: ExpressionValue, as attribute: Attribute) throws(HopdError) -> SQLiteValue {
    if case .carried(let bytes) = value, attribute.type == .transformable || attribute.type == .binary {
      return .blob(bytes)
    }
    if case .data(let bytes) = value, attribute.type == .binary { return attribute.stored(bytes) }
    return try stored(value, as: attribute.type)
  }

  /// Returns the same for attributes without external storage.
  static func stored(_ value: ExpressionValue, as type: AttributeType) throws(HopdError) -> SQLiteValue {
    if value.isNull { return .null }
    switch type.form {
    case .integer, .boolean:
      guard value.asDouble != nil else { throw unfit(type) }
      return .integer(try ValueCast.integer(value, in: type.integers ?? .min ... .max, type.name))
    case .real, .date:
      guard let number = value.asDouble else { throw unfit(type) }
      // NaN is stored as nil, as Core Data stores the NaN that an NSExpression computes.
      if number.isNaN { return .null }
      guard let real = type.real(number) else { throw .overflow("a float") }
      return .real(real)
    case .decimal:
      if case .integer(let integer) = value { return .integer(integer) }
      guard value.asDouble != nil else { throw unfit(type) }
      guard let decimal = Arithmetic.decimal(value) else { throw .overflow("a decimal number") }
      // Whole numbers become integers, as under SQLite's NUMERIC affinity.
      let real = decimal.double
      return decimal.integer.map { .integer($0) } ?? .real(real)
    case .string, .uri:
      guard case .string(let text) = value else { throw unfit(type) }
      return .text(text)
    case .uuid:
      switch value {
      case .uuid(let bytes): return .blob(bytes)
      case .data(let bytes) where bytes.count == 16: return .blob(bytes)
      default: throw unfit(type)
      }
    case .binary, .transformable:
      guard case .data(let bytes) = value else { throw unfit(type) }
      return .blob(bytes)
    case .other: throw unfit(type)
    }
  }

  /// Returns the value in the form that SQL expressions use: Booleans 0 and 1, dates and decimals as numbers.
  package static func plain(_ value: ExpressionValue) throws(HopdError) -> SQLiteValue {
    switch value {
    case .null: return .null
    case .boolean(let value): return .integer(value ? 1 : 0)
    case .integer(let value): return .integer(value)
    case .double(let value), .date(let value): return value.isNaN ? .null : .real(value)
    case .decimal(let value): return value.integer.map { .integer($0) } ?? .real(value.double)
    case .string(let text): return .text(text)
    case .data(let bytes), .uuid(let bytes), .carried(let bytes): return .blob(bytes)
    case .object(let object): return .integer(object.key)
    case .list: throw .mismatch("a collection is used where one value is required")
    }
  }

  /// Returns the value of an attribute from its column.
  package static func value(_ stored: SQLiteValue, of attribute: Attribute) -> ExpressionValue {
    switch (stored, attribute.type.form) {
    case (.null, _): return .null
    case (.integer(let value), .boolean): return value == 0 || value == 1 ? .boolean(value == 1) : .integer(value)
    case (.integer(let value), .date): return .date(Double(value))
    case (.real(let value), .date): return .date(value)
    case (.integer(let value), .decimal): return .decimal(DecimalNumber(value))
    case (.real(let value), .decimal): return DecimalNumber(value).map { .decimal($0) } ?? .double(value)
    case (.integer(let value), .real): return .double(Double(value))
    case (.integer(let value), _): return .integer(value)
    case (.real(let value), _): return .double(value)
    case (.text(let value), _): return .string(value)
    case (.blob(let bytes), .uuid) where bytes.count == 16: return .uuid(bytes)
    case (.blob(let bytes), .transformable): return .carried(bytes)
    case (.blob(let bytes), _): return attribute.hasExternalForm ? .carried(bytes) : .data(bytes)
    }
  }

  private static func unfit(_ type: AttributeType) -> HopdError {
    .mismatch("a value of another kind is meant for an attribute of type \(type.name)")
  }
}
