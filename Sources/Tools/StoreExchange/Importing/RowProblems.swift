// Rows of data that cannot become objects, or whose objects break a rule of the model, each by its file and line.

import Diagnostics

/// How an import handles rows that break a rule.
package enum ImportRowsRule: String, Sendable, Hashable, CaseIterable {
  /// The import fails, and the rows are listed.
  case fail
  /// The row is left out; references to its object become nil.
  case skip
  /// The attribute takes the model's default; a row that no default corrects fails.
  case `default`
}

/// Collects the problems of an import.
final class RowProblems {
  let rule: ImportRowsRule
  /// Rows with a problem.
  private(set) var count: Int64 = 0
  /// The first of them.
  private(set) var shown: [HopdError] = []
  /// Values that a default replaced.
  private(set) var corrected: Int64 = 0
  /// The first of them.
  private(set) var corrections: [HopdError] = []
  private static let most = 20
  /// Where `fail` stops reading: a file in a wrong form has a problem in every row.
  private static let limit: Int64 = 1000

  init(rule: ImportRowsRule) { self.rule = rule }

  /// Notes a problem of `rows` rows.
  func add(_ error: HopdError, rows: Int64 = 1) throws(HopdError) {
    count &+= rows
    if shown.count < Self.most { shown.append(error) }
    if rule == .fail, count >= Self.limit { try throwIfFailed() }
  }

  /// Notes a problem that a default has solved.
  func correct(_ error: HopdError) {
    corrected &+= 1
    if corrections.count < Self.most { corrections.append(error) }
  }

  /// Throws if there are problems and the rule is to fail.
  func throwIfFailed() throws(HopdError) {
    guard rule == .fail, count > 0 else { return }
    throw failure("\(count) \(count == 1 ? "row breaks" : "rows break") a rule")
  }

  /// The error for problems that the rule could not solve.
  func failure(_ message: String) -> HopdError {
    let rest = count &- Int64(shown.count)
    return HopdError(
      .rowInvalid, rest > 0 ? "\(message); the first \(shown.count) are listed" : message,
      hint: "correct the rows, or pass --invalid-rows skip to leave them out; nothing was written", reasons: shown)
  }
}
