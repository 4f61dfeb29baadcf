// The errors of expressions: syntax errors, features that are not supported, expressions that do not fit the model; and
// errors in the values of one row. The rules for invalid rows (fail, skip, default, quarantine) apply to the latter,
// which name entity, property and row, never a value. Branch on the codes.

import Diagnostics

extension HopdError.Code {
  /// The text of an expression or predicate breaks the grammar.
  package static let expressionSyntax = HopdError.Code("expression-syntax", exit: .dataError)
  /// An expression uses a feature of Core Data that hopd does not have, or one that only the app could supply.
  package static let expressionUnsupported = HopdError.Code("expression-unsupported", exit: .dataError)
  /// An expression can be parsed but is not valid in its place: unknown key, wrong kind, clash of types.
  package static let expressionInvalid = HopdError.Code("expression-invalid", exit: .dataError)
}

/// Limits on the size of an expression, from text and from archives (docs/formats/expressions.md, "Where an expression
/// stands").
package enum ExpressionLimits {
  /// The bytes of one text.
  package static let textBytes = 64 << 10
  /// The depth of nested parentheses, calls, lists and negations.
  package static let nesting = 100
  /// The height of the tree in nodes: a sum of n terms has n of them.
  package static let height = 200
  /// The members of one list in braces.
  package static let members = 10_000
  /// The objects of one archived expression: a list that contains itself many times would expand without end.
  package static let archivedNodes = 2_000
}

extension HopdError.Code {
  /// A number is divided by zero.
  package static let divisionByZero = HopdError.Code("division-by-zero", exit: .dataError)
  /// A number is too large for its type.
  package static let numberOverflow = HopdError.Code("number-overflow", exit: .dataError)
  /// The value cannot be converted to the target of a CAST.
  package static let castFailed = HopdError.Code("cast-failed", exit: .dataError)
  /// The value has another kind than the operation or the attribute needs.
  package static let valueMismatch = HopdError.Code("value-mismatch", exit: .dataError)
  /// A pattern took more steps than it may.
  package static let matchTooLong = HopdError.Code("match-too-long", exit: .dataError)
}

extension HopdError {
  static func divisionByZero() -> HopdError {
    HopdError(
      .divisionByZero, "a number is divided by zero",
      hint: "guard it: TERNARY(divisor == 0, another value, dividend / divisor)")
  }

  static func overflow(_ target: String) -> HopdError {
    HopdError(
      .numberOverflow, "a number does not fit \(target)",
      hint: "guard it with TERNARY, change the expression, or create the object in a policy")
  }

  static func cast(to target: String) -> HopdError {
    HopdError(
      .castFailed, "a value cannot be turned into \(target)",
      hint: "guard it with TERNARY, change the expression, or create the object in a policy")
  }

  static func mismatch(_ message: String) -> HopdError {
    HopdError(.valueMismatch, message, hint: "write a CAST to the type of the other values")
  }

  static func invalid(_ message: String) -> HopdError {
    HopdError(.expressionInvalid, message, hint: "correct the mapping; `hopctl mapping show` prints its expressions")
  }
}
