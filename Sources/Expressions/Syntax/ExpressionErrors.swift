// How expressions fail: not read, read but not supported here, or meaning nothing against the model; and what can go
// wrong with the values of one row. Errors of rows are what the policies for rows (fail, skip, default, quarantine) are
// about; they name entity, property and row, never a value. Branch on the codes.

import Diagnostics

extension HopdError.Code {
  /// The text of an expression or predicate breaks the grammar.
  package static let expressionSyntax = HopdError.Code("expression-syntax", exit: .dataError)
  /// An expression asks for something that Core Data knows and hopd does not do, or that only the app could do.
  package static let expressionUnsupported = HopdError.Code("expression-unsupported", exit: .dataError)
  /// An expression can be read but has no meaning where it stands: unknown key, wrong kind, clash of types.
  package static let expressionInvalid = HopdError.Code("expression-invalid", exit: .dataError)
}

/// Limits on the size of an expression, from text and from archives (docs/formats/expressions.md, "Where an expression
/// stands").
package enum ExpressionLimits {
  /// Bytes of one text.
  package static let textBytes = 64 << 10
  /// Parentheses, calls, lists and negations inside one another.
  package static let nesting = 100
  /// Nodes above one another in the tree: a sum of n terms has n of them.
  package static let height = 200
  /// Members of one list in braces.
  package static let members = 10_000
  /// Objects of one archived expression: a list that holds itself many times would unfold without end.
  package static let archivedNodes = 2_000
}

extension HopdError.Code {
  /// A number is divided by zero.
  package static let divisionByZero = HopdError.Code("division-by-zero", exit: .dataError)
  /// A number is too large for its type.
  package static let numberOverflow = HopdError.Code("number-overflow", exit: .dataError)
  /// A CAST of a value that does not read as the wanted type.
  package static let castFailed = HopdError.Code("cast-failed", exit: .dataError)
  /// A value of another kind than the operation or the attribute takes.
  package static let valueMismatch = HopdError.Code("value-mismatch", exit: .dataError)
  /// A pattern took more steps than it may.
  package static let matchTooLong = HopdError.Code("match-too-long", exit: .dataError)

  /// Is it about the values of one row, so that another row may do?
  package var isRowError: Bool {
    [.divisionByZero, .numberOverflow, .castFailed, .valueMismatch, .matchTooLong].contains(self)
  }
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
      hint: "guard it with TERNARY, change the expression, or let a policy make the object")
  }

  static func cast(to target: String) -> HopdError {
    HopdError(
      .castFailed, "a value cannot be turned into \(target)",
      hint: "guard it with TERNARY, change the expression, or let a policy make the object")
  }

  static func mismatch(_ message: String) -> HopdError {
    HopdError(.valueMismatch, message, hint: "a CAST to the wanted type makes the kinds agree")
  }

  static func invalid(_ message: String) -> HopdError {
    HopdError(.expressionInvalid, message, hint: "correct the mapping; `hopctl mapping show` prints its expressions")
  }
}
