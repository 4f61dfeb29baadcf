// Converts values of one attribute between the form of its column (docs/formats/store-layout.md, "Values in columns")
// and the form that policies see.

import Diagnostics
import ManagedObjectModel
import MigrationEngine
import MigrationPolicy
import PersistentStore
import SQLite

/// The two forms of one attribute's values.
struct PolicyAttributeForm: Sendable {
  let attribute: Attribute

  /// Returns the value of a column; nil if it does not have the attribute's type.
  ///
  /// A value with external storage is passed as its content, wherever that is stored.
  func value(
    _ stored: SQLiteValue, external: (ExternalFileName) throws -> [UInt8]
  ) throws -> PolicyValue? {
    switch (attribute.type.form, stored) {
    case (_, .null): .null
    case (.integer, .integer(let number)): .integer(number)
    case (.boolean, .integer(let number)): .boolean(number != 0)
    case (.real, .real(let number)): .double(number)
    case (.real, .integer(let number)): .double(Double(number))
    // Whole seconds may be stored as integers (docs/formats/store-layout.md, "Values in columns").
    case (.date, .real(let seconds)): .date(seconds)
    case (.date, .integer(let seconds)): .date(Double(seconds))
    case (.decimal, .integer(let number)): .decimal(String(number))
    case (.decimal, .real(let number)): DecimalText.normalized(String(number)).map { .decimal(Self.short($0)) }
    case (.decimal, .text(let text)): DecimalText.normalized(text).map { .decimal($0) }
    case (.string, .text(let text)): .string(text)
    case (.uri, .text(let text)): .uri(text)
    case (.uuid, .blob(let bytes)) where bytes.count == 16: .uuid(bytes)
    case (.transformable, .blob(let bytes)): .transformable(bytes)
    case (.binary, .blob(let bytes)):
      if attribute.hasExternalForm {
        switch ExternalDataForm(bytes) {
        case .inline: .data(Array(bytes.dropFirst()))
        case .reference(let name): .data(try external(name))
        case .malformed: nil
        }
      } else {
        .data(bytes)
      }
    default: nil
    }
  }

  /// Returns the column's content for a value of a policy; nil if it has another type or does not fit.
  func stored(_ value: PolicyValue) -> SQLiteValue? {
    switch (attribute.type.form, value) {
    case (_, .null): .null
    case (.integer, .integer(let number)), (.boolean, .integer(let number)):
      attribute.type.integers?.contains(number) == true ? .integer(number) : nil
    case (.integer, .boolean(let flag)), (.boolean, .boolean(let flag)): .integer(flag ? 1 : 0)
    case (.real, .double(let number)): attribute.type.real(number).map { .real($0) }
    case (.real, .integer(let number)):
      Double(exactly: number).flatMap(attribute.type.real).map { .real($0) }
    case (.date, .date(let seconds)): seconds.isFinite ? .real(seconds) : nil
    // Decimal columns have NUMERIC affinity, which converts the text to a number.
    case (.decimal, .decimal(let text)): text.utf8.count > 500 ? nil : DecimalText.normalized(text).map { .text($0) }
    case (.decimal, .integer(let number)): .integer(number)
    case (.decimal, .double(let number)): number.isFinite ? .real(number) : nil
    case (.string, .string(let text)): .text(text)
    case (.uri, .uri(let text)): .text(text)
    case (.uuid, .uuid(let bytes)): bytes.count == 16 ? .blob(bytes) : nil
    case (.transformable, .transformable(let bytes)): .blob(bytes)
    case (.binary, .data(let bytes)): attribute.stored(bytes)
    default: nil
    }
  }

  /// Removes the fraction that a double's shortest text has and a whole decimal has not: "10.0" is 10.
  private static func short(_ text: String) -> String { text.hasSuffix(".0") ? String(text.dropLast(2)) : text }
}
