// The change of an attribute to another number type. The value stays the same; the rows decide whether it fits
// (docs/formats/migration-semantics.md, "Numbers into numbers").

import ManagedObjectModel

/// A change of an attribute from one number type to another.
package struct NumberConversion: Sendable, Hashable {
  /// The type that the attribute gets.
  package let type: AttributeType

  /// The change; nil if the type stays the same, or if one of the two is not a number.
  package init?(from: AttributeType, to: AttributeType) {
    guard from != to, from.form.isNumber, to.form.isNumber else { return nil }
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
    type.integers?.contains(value) ?? (type.form != .real || Double(exactly: value) != nil)
  }

  private func fits(real value: Double) -> Bool {
    switch type.form {
    case .boolean, .integer: Int64(exactly: value).map(fits(integer:)) ?? false
    case .real where type.traits.isFloat: value.isInfinite || value.magnitude <= Double(Float.greatestFiniteMagnitude)
    case .decimal: value.magnitude < 1e127
    default: !value.isNaN
    }
  }
}
