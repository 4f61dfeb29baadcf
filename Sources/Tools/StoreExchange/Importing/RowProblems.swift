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
  /// The object stays as it is, as apps save objects under older rules; a value that no column can have fails.
  case keep
}

/// Collects the problems of an import.
final class RowProblems {
  let rule: ImportRowsRule
  /// Rows with a problem.
  private(set) var rows: Int64 = 0
  /// References to objects that are not there.
  private(set) var references: Int64 = 0
  /// Values that a default replaced.
  private(set) var corrected: Int64 = 0
  /// The first problems of each kind.
  private(set) var shown: [HopdError] = []
  private(set) var corrections: [HopdError] = []
  private static let most = 20
  /// Problems that a report has.
  private static let mostKept = 1000
  /// Where reading ends: a file in a wrong form has a problem in every row.
  private static let limit: Int64 = 1000

  init(rule: ImportRowsRule) { self.rule = rule }

  /// Whether references to objects that are not there become nil.
  var clearsReferences: Bool { rule != .fail }

  /// Notes a problem of a row.
  func add(_ error: HopdError) throws(HopdError) {
    rows &+= 1
    try show(error)
  }

  /// Notes a reference to an object that is not there.
  func add(reference error: HopdError) throws(HopdError) {
    references &+= 1
    try show(error)
  }

  /// Notes a problem that a default has solved.
  func correct(_ error: HopdError) {
    corrected &+= 1
    if corrections.count < Self.mostKept { corrections.append(error) }
  }

  /// Counts problems beyond those that are listed.
  func addUnlisted(rows: Int64 = 0, references: Int64 = 0, corrected: Int64 = 0) {
    self.rows &+= rows
    self.references &+= references
    self.corrected &+= corrected
  }

  private func show(_ error: HopdError) throws(HopdError) {
    if shown.count < Self.mostKept { shown.append(error) }
    if failures >= Self.limit { throw failure("\(Self.limit) or more rows break a rule") }
  }

  /// The problems that end the import.
  private var failures: Int64 {
    switch rule {
    case .fail: rows &+ references
    case .default, .keep: rows
    case .skip: 0
    }
  }

  /// Throws if there are problems that end the import.
  func throwIfFailed() throws(HopdError) {
    let count = failures
    if count > 0 { throw failure("\(count) \(count == 1 ? "row breaks" : "rows break") a rule") }
  }

  /// The error for problems that the rule could not solve.
  func failure(_ message: String) -> HopdError {
    let rest = rows &+ references &- Int64(Self.most)
    return HopdError(
      .rowInvalid, rest > 0 ? "\(message); the first \(Self.most) are listed" : message,
      hint: rule == .skip
        ? "correct the rows; nothing was written"
        : "correct the rows, or pass --invalid-rows skip to leave them out; nothing was written",
      reasons: Array(shown.prefix(Self.most)))
  }
}
