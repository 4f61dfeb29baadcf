import ManagedObjectModel
import SystemPackage

/// A staged store that passed every check; only such a one may be put in place.
///
/// Its initializer is the synthesized one, internal to this target, so `StoreReplacement` cannot be given an unverified
/// store: that would not compile.
package struct VerifiedStore: Sendable {
  /// The staged database file, closed, without side files.
  package let staged: FilePath
  /// Name of the model version it holds.
  package let version: String
  /// Entity name to version hash, as stamped in the store.
  package let versionHashes: [String: VersionHash]
  /// What was checked, in order; all passed.
  package let checks: [VerificationCheck]
  /// Its rows by concrete entity, as they were counted for the checks.
  package internal(set) var rows: [String: Int64] = [:]
}

/// One check of a store and what came of it.
package struct VerificationCheck: Sendable, Hashable {
  /// Stable name: "schema", "hashes", "entity-numbers", "primary-keys", "counts", "relationships", "integrity" …
  package let name: String
  /// Did it pass?
  package let passed: Bool
  /// What was inspected, or what is wrong, in one sentence that says no more than was inspected.
  package let detail: String
  /// It passed, and found something that is not as an app would write it; `detail` says what.
  package let isNoted: Bool

  /// Notes a check.
  package init(name: String, passed: Bool, detail: String, isNoted: Bool = false) {
    self.name = name
    self.passed = passed
    self.detail = detail
    self.isNoted = passed && isNoted
  }

  /// Notes a check that passed where there are no problems; `fine` is its detail then.
  init(name: String, problems: [String], fine: @autoclosure () -> String, isNoted: Bool = false) {
    self.init(
      name: name, passed: problems.isEmpty, detail: problems.isEmpty ? fine() : problems.joined(separator: "; "),
      isNoted: isNoted)
  }

  /// "ok", "note" or "FAILED", as it is printed.
  package var word: String { passed ? isNoted ? "note" : "ok" : "FAILED" }
}
