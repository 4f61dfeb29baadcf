// What can go wrong with the values of one row. These errors are what the policies for rows (fail, skip, default,
// quarantine) are about; they name entity, property and row, never a value.

import Diagnostics

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
