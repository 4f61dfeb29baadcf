// The parts of an archived attribute: its default value, the predicates that check it and the expression that derives
// it, as objects of Foundation's classes.

import Diagnostics
import PropertyLists

extension ModelArchive {
  /// A predicate with the number of its error.
  struct ValidationRule {
    let predicate: Writer.Object
    let errorCode: Int64
  }

  /// The class of the values; Undefined has none. The custom class of a transformable attribute is for generated code,
  /// and the compiler omits it (docs/formats/model-files.md, "Model cache archives").
  mutating func valueClass(of attribute: Attribute, in entity: Entity) -> String? {
    switch attribute.type {
    case .composite where !attribute.elements.isEmpty && !attribute.isNestedComposite: return "NSDictionary"
    case .objectID, .composite:
      refuse(
        "the archived form of an attribute of type \(attribute.type.name) is unknown", entity.name, attribute.name)
      return nil
    default: return attribute.type.traits.valueClass
    }
  }

  // MARK: Defaults

  mutating func defaultValue(of attribute: Attribute, in entity: Entity) -> Writer.Reference {
    switch attribute.defaultValue {
    case nil: return .null
    case .integer(let number)?: return .scalar(.integer(number))
    case .boolean(let flag)?: return .scalar(.boolean(flag))
    case .double(let number)?: return .scalar(.real(number))
    case .string(let text)? where attribute.type == .uri:
      return .object(writer.makeObject(Writer.ClassName("NSURL"), [("NS.base", .null), ("NS.relative", .text(text))]))
    case .string(let text)?: return .text(text)
    case .date(let seconds)?:
      return .object(writer.makeObject(Writer.ClassName("NSDate"), [("NS.time", .value(.real(seconds)))]))
    case .uuid(let bytes)?:
      return .object(writer.makeObject(Writer.ClassName("NSUUID"), [("NS.uuidbytes", .value(.data(bytes)))]))
    case .binary?, .archived?:
      refuse("the archived form of this default is unknown", entity.name, attribute.name)
      return .null
    case .decimal(let text)?:
      guard let decimal = ArchivedDecimal(text) else {
        refuse("the default has more digits than a decimal number holds", entity.name, attribute.name)
        return .null
      }
      return .object(makeDecimal(decimal))
    }
  }

  private mutating func makeDecimal(_ decimal: ArchivedDecimal) -> Writer.Object {
    writer.makeObject(
      Writer.ClassName("NSDecimalNumberPlaceholder", "NSDecimalNumber", "NSNumber", "NSValue"),
      [
        ("NS.exponent", .integer(decimal.exponent)),
        ("NS.length", .integer(decimal.length)), ("NS.negative", .boolean(decimal.isNegative)),
        // Means only that trailing zeros were not removed; the number may have some.
        ("NS.compact", .boolean(false)),
        ("NS.mantissa.bo", .integer(1)), ("NS.mantissa", .value(.data(decimal.mantissa))),
      ])
  }

  // MARK: Validation

  /// Writes the minimum first, then the maximum; the two checks are independent.
  mutating func validation(of attribute: Attribute, in entity: Entity) -> [ValidationRule] {
    if !attribute.otherValidations.isEmpty {
      refuse("the archived form of this check is unknown", entity.name, attribute.name)
    }
    if attribute.regularExpression != nil {
      refuse("the archived form of a check by regular expression is unknown", entity.name, attribute.name)
    }
    var rules: [ValidationRule] = []
    for (text, isMinimum) in [(attribute.minimum, true), (attribute.maximum, false)] {
      guard let text else { continue }
      let limit: PropertyListValue? =
        switch attribute.type.form {
        case .integer, .string: Int64(text).map { .integer($0) }
        case .real: Double(text).flatMap { $0.isFinite ? .real($0) : nil }
        default: nil
        }
      guard let limit else {
        refuse(
          "the archived form of this \(isMinimum ? "minimum" : "maximum") is unknown", entity.name, attribute.name)
        continue
      }
      // `SELF >= 0.0` and `length >= 1` with the codes of NSValidationNumberTooSmallError and similar errors
      // (docs/formats/model-files.md, "Compiled models").
      let isLength = attribute.type == .string
      rules.append(
        ValidationRule(
          predicate: makeComparison(
            isLength ? makePath(["length"]) : makeSelf(), makeOrderOperation(isMinimum ? 3 : 1), makeConstant(limit)),
          errorCode: (isLength ? 1660 : 1610) + (isMinimum ? 10 : 0)))
    }
    return rules
  }

  // MARK: Expressions

  /// A path of two keys, or a function of NSExpression over one key or none.
  mutating func derivation(_ expression: String, of attribute: Attribute, in entity: Entity) -> Writer.Reference {
    let text = DerivationText(expression)
    let arguments: [Writer.Reference]
    let selector: String
    if let keys = DerivationText.keys(of: text.text), text.isProven { return .object(makePath(keys)) }
    if text.isProven, text.text == "now()" {
      (selector, arguments) = ("now", [])
    } else if text.isProven, let open = text.text.firstIndex(of: "("), text.text.hasSuffix(")") {
      selector = String(text.text[..<open])
      let key = text.text[text.text.index(after: open)...].dropLast()
      arguments = [.object(makePath([String(key)]))]
    } else {
      refuse("the archived form of this derivation expression is unknown", entity.name, attribute.name)
      return .null
    }
    let owner = writer.makeObject(
      .constant, [("NSConstantValueClassName", .text("_NSPredicateUtilities")), ("NSExpressionType", .integer(0))])
    return .object(
      writer.makeObject(
        Writer.ClassName("NSFunctionExpression", "NSExpression"),
        [
          ("NSSelectorName", .text(selector)), ("NSOperand", .object(owner)),
          ("NSArguments", .object(writer.makeList(arguments))), ("NSExpressionType", .integer(4)),
        ]))
  }
}

/// A decimal number in NSDecimal's form: up to eight 16-bit words, and a power of ten. The scale of the text is kept:
/// "0.0" is 0 with the exponent −1 (docs/formats/model-files.md, "Default values").
struct ArchivedDecimal: Hashable {
  let isNegative: Bool
  let exponent: Int
  /// The words, little-endian, 16 bytes.
  let mantissa: [UInt8]

  /// Number of significant words.
  var length: Int { ((mantissa.lastIndex { $0 != 0 }).map { $0 / 2 + 1 }) ?? 0 }

  /// Reads sign, digits, point and exponent; nil for a number that does not fit (38 digits always do).
  init?(_ text: String) {
    guard let parts = DecimalParts(text) else { return nil }
    var words = [UInt32](repeating: 0, count: 8)
    for digit in parts.digits {
      var carry = UInt32(digit)
      for index in words.indices {
        let value = words[index] * 10 + carry
        words[index] = value & 0xffff
        carry = value >> 16
      }
      guard carry == 0 else { return nil }
    }
    var exponent = -parts.places
    if let shift = parts.exponent {
      guard let power = Int16(shift) else { return nil }
      exponent += Int(power)
    }
    // The exponent has eight bits.
    guard (-128...127).contains(exponent) else { return nil }
    isNegative = parts.isNegative && !parts.digits.isEmpty
    self.exponent = exponent
    mantissa = words.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
  }
}
