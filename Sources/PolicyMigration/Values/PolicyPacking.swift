// Copies attribute values between a column and a batch without making a PolicyValue, for types that are stored
// unchanged. All other types, and values that do not fit their type, go through PolicyAttributeForm, which has the
// error messages.

import ManagedObjectModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// The form in which values are copied between a column and a batch.
enum PolicyPacking: Sendable {
  case integer(ClosedRange<Int64>)
  case double
  case date
  case string
  case data
  /// By way of a PolicyValue.
  case value

  init(_ form: PolicyAttributeForm) {
    self =
      switch form.attribute.type {
      case .integer16, .integer32, .integer64: .integer(form.attribute.type.integers ?? .min ... .max)
      case .double: .double
      case .date: .date
      case .string: .string
      case .binary: form.attribute.hasExternalForm ? .value : .data
      default: .value
      }
  }

  /// Appends a column's value to a batch; returns false if that needs a PolicyValue.
  @inline(__always)
  func pack(_ row: Statement, _ column: Int32, into batch: inout PolicyBatchWriter) -> Bool {
    row.withPlace(at: column) { place in
      switch (self, place) {
      case (_, .null): batch.null()
      case (.integer, .integer(let number)): batch.integer(number)
      case (.double, .real(let number)): batch.real(number, isDate: false)
      case (.date, .real(let seconds)): batch.real(seconds, isDate: true)
      case (.string, .text(let text)):
        guard text.isUTF8 else { return false }
        batch.string(text)
      case (.data, .blob(let bytes)): batch.data(bytes)
      default: return false
      }
      return true
    }
  }

  /// Binds an item of a batch; returns false if that needs a PolicyValue, or if the value does not fit.
  @inline(__always)
  func bind(
    _ item: PackedItem, of batch: PolicyBatch, to statement: Statement, at parameter: Int32
  ) throws(SQLiteError) -> Bool {
    switch (self, item) {
    case (_, .null): try statement.bind(.null, at: parameter)
    case (.integer(let range), .integer(let number)) where range.contains(number):
      try statement.bind(.integer(number), at: parameter)
    // SQLite silently stores NaN as NULL (docs/formats/expressions.md, "Arithmetic").
    case (.double, .double(let number)) where !number.isNaN: try statement.bind(.real(number), at: parameter)
    case (.date, .date(let seconds)) where seconds.isFinite: try statement.bind(.real(seconds), at: parameter)
    case (.string, .string(let place)):
      try Self.bind(place, of: batch, isText: true, to: statement, at: parameter)
    case (.data, .data(let place)):
      try Self.bind(place, of: batch, isText: false, to: statement, at: parameter)
    default: return false
    }
    return true
  }

  private static func bind(
    _ place: Range<Int>, of batch: PolicyBatch, isText: Bool, to statement: Statement, at parameter: Int32
  ) throws(SQLiteError) {
    let result = batch.withBytes(at: place) { bytes in
      Result { () throws(SQLiteError) in try statement.bind(copying: bytes, isText: isText, at: parameter) }
    }
    try result.get()
  }
}

extension UnsafeRawBufferPointer {
  /// Whether the bytes are UTF-8. Most are ASCII, which is checked eight bytes at a time.
  fileprivate var isUTF8: Bool {
    var index = 0
    while index + 8 <= count {
      if loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 { break }
      index += 8
    }
    while index < count, self[index] < 0x80 { index += 1 }
    guard index < count else { return true }
    return String(validating: UnsafeBufferPointer(rebasing: bindMemory(to: UInt8.self)[index...]), as: UTF8.self) != nil
  }
}
