import SystemPackage

/// A staged store that passed every check; only such a store may be put in place.
///
/// Its initializer is the synthesized one, internal to this target, so passing an unverified store to
/// `StoreReplacement` does not compile.
package struct VerifiedStore: Sendable {
  /// The staged database file, closed, without side files.
  package let staged: FilePath
  /// The checks in order; all passed.
  package let checks: [VerificationCheck]
  /// The rows by concrete entity, as counted for the checks.
  package internal(set) var rows: [String: Int64] = [:]
}

/// One check of a store, and its result.
package struct VerificationCheck: Sendable, Hashable {
  /// The stable name: "schema", "hashes", "entity-numbers", "primary-keys", "counts", "relationships", "integrity" …
  package let name: String
  /// Whether it passed.
  package let passed: Bool
  /// What was checked, or what is wrong, in one sentence that claims no more than was checked.
  package let detail: String
  /// Whether it passed, but found a difference from what an app would write, which `detail` describes.
  package let isNoted: Bool

  /// Records a check.
  package init(name: String, passed: Bool, detail: String, isNoted: Bool = false) {
    self.name = name
    self.passed = passed
    self.detail = detail
    self.isNoted = passed && isNoted
  }

  /// Records a check that passed if there are no problems; its detail is then `fine`.
  init(name: String, problems: [String], fine: @autoclosure () -> String, isNoted: Bool = false) {
    self.init(
      name: name, passed: problems.isEmpty, detail: problems.isEmpty ? fine() : problems.joined(separator: "; "),
      isNoted: isNoted)
  }

  /// "ok", "note" or "FAILED", as printed.
  package var word: String { passed ? isNoted ? "note" : "ok" : "FAILED" }
}
