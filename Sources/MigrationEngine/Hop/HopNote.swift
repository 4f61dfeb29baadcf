// What a hop tells beside its progress: lines for a debug journal, and what became of rows that make no object of their
// own. Notes hold no value of a user's attribute: SQL has literals of models and mappings only, values are read by the
// database.

import MigrationPlanning
import PersistentStore

/// A note of a running hop.
package enum HopNote: Sendable, Hashable {
  /// SQL that ran, how long it took, and the rows it wrote where that is known. For level debug.
  case statement(sql: String, seconds: Double, rows: Int64?)
  /// What the new store lacks and no app misses. For level debug.
  case remark(String)
  /// What was decided, in a sentence. For level trace.
  case decision(String)
  /// A line that a policy wrote, by class name and entity mapping.
  case policyOutput(policy: String, mapping: String, line: String)

  /// Takes notes on the thread of the hop.
  package typealias Taker = (HopNote) -> Void
}

/// What became of rows that make no object of their own.
package struct HopTallies: Sendable, Hashable {
  /// Source objects that share another's destination object, by entity mapping.
  package var merged: [String: Int64] = [:]
  /// Source objects that an entity mapping leaves without any destination object, by entity mapping.
  package var dropped: [String: Int64] = [:]
  /// Objects that broke the rules of the destination.
  package var invalidRows: [InvalidRows] = []

  /// None yet.
  package init() {}
}

/// Objects that broke one rule, and what became of them.
package struct InvalidRows: Sendable, Hashable {
  /// Destination entity and property.
  package let entity: String
  package let property: String
  /// Core Data's error.
  package let code: ValidationErrorCode
  /// The rule that was followed: anything but `fail`.
  package let rule: InvalidRowsRule
  package let count: Int64
  /// The first of their primary keys in the hop's result.
  package let keys: [Int64]
}
