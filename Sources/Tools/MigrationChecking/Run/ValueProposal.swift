// Proposes an expression for an attribute without an inferred value, as a start for a mapping model, with a remark
// about its effect on existing values.

import ManagedObjectModel

/// An expression of a text mapping for one attribute.
struct ValueProposal {
  let expression: String
  /// Its effect on values, as a phrase.
  let remark: String

  /// Proposes a value; `earlier` is the attribute that continues as this one, `suspected` the name of a removed one
  /// that looks like it.
  init(of attribute: Attribute, from earlier: Attribute?, suspected: String?, isUnique: Bool) {
    let constant = attribute.type.form.constant
    if let earlier {
      let value = "$source.\(earlier.name)"
      guard earlier.type != attribute.type else {
        // It became required: only rows without a value need one.
        if attribute.isOptional {
          self.init(value, "values copied")
        } else if let constant, !isUnique {
          self.init("TERNARY(\(value) == nil, \(constant), \(value))", "rows without a value get \(constant)")
        } else {
          self.init(value, "rows without a value need a unique expression")
        }
        return
      }
      if let (expression, remark) = Self.conversion(of: value, from: earlier.type, to: attribute.type) {
        self.init(expression, remark)
      } else if attribute.isOptional {
        self.init("nil", "the values of \(earlier.name) are dropped: nothing converts them")
      } else {
        self.init(
          constant ?? "nil",
          "the values of \(earlier.name) are dropped: nothing converts them, and \(constant ?? "nil") is in all rows")
      }
    } else if let suspected {
      self.init("$source.\(suspected)", "if \(attribute.name) has the values of \(suspected)")
    } else if isUnique {
      self.init(
        constant ?? "nil",
        "an example: \(attribute.name) is unique, so use a unique value, such as that of another property")
    } else {
      self.init(
        constant ?? "nil", constant == nil ? "an example; an expression on $source" : "the same value in all rows")
    }
  }

  private init(_ expression: String, _ remark: String) {
    self.expression = expression
    self.remark = remark
  }

  /// Returns an expression that converts values of one type to another, with a remark; nil if there is none.
  private static func conversion(
    of value: String, from old: AttributeType, to new: AttributeType
  ) -> (String, String)? {
    let converted = "values converted"
    switch (old.form, new.form) {
    case (.string, .integer):
      return (
        bounded("\(value).longLongValue", new),
        "each string is read as a number, or as 0 if it is not one; a plain 0 would drop all values"
      )
    case (.string, .real):
      return ("\(value).doubleValue", "each string is read as a number, or as 0 if it is not one")
    case (.string, .boolean):
      return ("\(value).boolValue", "YES if the string starts with y, t or a digit from 1 to 9")
    case (.string, .decimal):
      return (
        "CAST(\(value), 'NSDecimalNumber')", "each string is read as a number; other strings are refused"
      )
    case (.uuid, .string): return ("\(value).UUIDString", converted)
    case (.uri, .string): return ("\(value).absoluteString", converted)
    case (.date, .real): return ("\(value).timeIntervalSinceReferenceDate", "in seconds since 2001")
    case (.date, .integer) where new.traits.bits == 64:
      return (
        "trunc:(\(value).timeIntervalSinceReferenceDate)",
        "in seconds since 2001, without fractions"
      )
    case (let old, .string) where old.isNumber: return ("\(value).stringValue", converted)
    case (.boolean, _): return nil
    case (let old, .date) where old.isNumber:
      return ("CAST(\(value), 'NSDate')", "the numbers are read as seconds since 2001")
    case (.real, .integer), (.decimal, .integer):
      return (bounded("trunc:(\(value))", new), "fractions are dropped, and larger numbers clamped")
    case (let old, .boolean) where old.isNumber: return ("TERNARY(\(value) == 0, NO, YES)", "YES for all but 0")
    case (let old, let form) where old.isNumber && form.isNumber:
      return (bounded(value, new), "numbers outside the range of the type are clamped")
    default: return nil
    }
  }

  /// Returns the value limited to the range of an integer type.
  private static func bounded(_ value: String, _ type: AttributeType) -> String {
    guard type.traits.bits < 64, let range = type.integers else { return value }
    let (least, most) = (range.lowerBound, range.upperBound)
    return "TERNARY(\(value) > \(most), \(most), TERNARY(\(value) < \(least), \(least), \(value)))"
  }
}

extension AttributeForm {
  /// A constant of the type, in the syntax of expressions; nil if there is none.
  fileprivate var constant: String? {
    switch self {
    case .integer, .real, .decimal: "0"
    case .boolean: "NO"
    case .string: "''"
    case .date: "now()"
    case .uuid: "CAST('00000000-0000-0000-0000-000000000000', 'NSUUID')"
    case .binary: "CAST('', 'NSData')"
    case .uri, .transformable, .other: nil
    }
  }
}
