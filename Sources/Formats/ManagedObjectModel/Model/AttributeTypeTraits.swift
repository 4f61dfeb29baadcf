/// The form of an attribute's values: what a reader, a writer or a conversion distinguishes. Types of one form differ
/// only in their traits.
package enum AttributeForm: Sendable, Hashable {
  case integer
  case boolean
  /// Double and Float.
  case real
  case decimal
  case date
  case string
  case uri
  case uuid
  case binary
  case transformable
  /// No type, an object's ID, or a composite: no store shows a column of it.
  case other

  /// Whether values are NSNumber or NSDecimalNumber, which includes Boolean.
  package var isNumber: Bool { self == .integer || self == .boolean || self == .real || self == .decimal }
}

/// All that hopd knows of a type of attribute (docs/formats/model-files.md, "Attribute types", and
/// docs/formats/store-layout.md, "Column types" and "Column order").
package struct AttributeTypeTraits: Sendable {
  /// The name that Xcode shows and `.xcdatamodel` XML has, where Undefined is omitted.
  package let name: String
  package let form: AttributeForm
  /// The size of an integer or real; 0 for other forms.
  package let bits: Int
  /// The declared type of the column, and its group in Core Data's column order; nil where no store shows a column.
  package let column: (declaredType: String, group: Int)?
  /// The class of the values in an archived model.
  let valueClass: String?

  init(
    _ name: String, _ form: AttributeForm, bits: Int = 0, column: (String, group: Int)? = nil,
    valueClass: String? = nil
  ) {
    self.name = name
    self.form = form
    self.bits = bits
    self.column = column.map { ($0, $1) }
    self.valueClass = valueClass
  }

  /// The values of an integer or Boolean; nil for other forms.
  package var integers: ClosedRange<Int64>? {
    switch form {
    case .boolean: 0...1
    case .integer: Int64.min >> (64 - bits)...Int64.max >> (64 - bits)
    default: nil
    }
  }

  /// Whether the values are floats, which are stored as doubles.
  package var isFloat: Bool { form == .real && bits == 32 }

  /// Returns a number in the precision of the type; infinite where a float cannot hold it.
  package func rounded(_ number: Double) -> Double { isFloat ? Double(Float(number)) : number }

  /// Returns the nearest real to a number's text, rounded once; nil if it is not a finite number.
  func real(_ text: String) -> Double? {
    let number = isFloat ? Float(text).map(Double.init) : Double(text)
    return number.flatMap { $0.isFinite ? $0 : nil }
  }
}
