// The change of an attribute to another number type. The value stays the same; the rows decide whether it fits
// (docs/formats/migration-semantics.md, "Numbers into numbers").

import ManagedObjectModel

extension AttributeType {
  /// Whether it is a type of NSNumber or NSDecimalNumber, including Boolean.
  package var isNumber: Bool {
    switch self {
    case .integer16, .integer32, .integer64, .decimal, .double, .float, .boolean: true
    default: false
    }
  }
}

/// A change of an attribute from one number type to another.
package struct NumberConversion: Sendable, Hashable {
  /// The type that the attribute gets.
  package let type: AttributeType

  /// The change; nil if the type stays the same, or if one of the two is not a number.
  package init?(from: AttributeType, to: AttributeType) {
    guard from != to, from.isNumber, to.isNumber else { return nil }
    type = to
  }

  /// Whether a default that an earlier hop wrote into every row fits the type.
  package func fits(_ value: AttributeDefault) -> Bool {
    switch value {
    case .integer(let number): fits(integer: number)
    case .boolean: true
    case .double(let number): fits(real: number)
    case .decimal(let text):
      if let number = Int64(text) { fits(integer: number) } else { Double(text).map(fits(real:)) ?? false }
    case .string, .date, .uuid, .binary, .archived: false
    }
  }

  private func fits(integer value: Int64) -> Bool {
    switch type {
    case .boolean: value == 0 || value == 1
    case .integer16: Int16(exactly: value) != nil
    case .integer32: Int32(exactly: value) != nil
    case .float, .double: Double(exactly: value) != nil
    default: true
    }
  }

  private func fits(real value: Double) -> Bool {
    switch type {
    case .boolean, .integer16, .integer32, .integer64: Int64(exactly: value).map(fits(integer:)) ?? false
    case .float: value.isInfinite || value.magnitude <= Double(Float.greatestFiniteMagnitude)
    case .decimal: value.magnitude < 1e127
    default: !value.isNaN
    }
  }
}
