// The notes of a hop apart from progress: lines for a debug journal, and counts of rows that make no object of their
// own. Notes contain no value of a user's attribute: SQL has literals of models and mappings only, and the database
// reads the values.

import MigrationPlanning
import PersistentStore

/// A note of a running hop.
package enum HopNote: Sendable, Hashable {
  /// SQL that ran, its time, and the rows it wrote if known. For level debug.
  case statement(sql: String, seconds: Double, rows: Int64?)
  /// A part that the new store lacks without any effect on apps. For level debug.
  case remark(String)
  /// A decision, in a sentence. For level trace.
  case decision(String)
  /// A line that a policy wrote, by class name and entity mapping.
  case policyOutput(policy: String, mapping: String, line: String)

  /// Takes notes on the thread of the hop.
  package typealias Taker = (HopNote) -> Void
}

/// The counts of rows that make no object of their own.
package struct HopTallies: Sendable, Hashable {
  /// Source objects that share another's destination object, by entity mapping.
  package var merged: [String: Int64] = [:]
  /// Source objects that an entity mapping leaves without any destination object, by entity mapping.
  package var dropped: [String: Int64] = [:]
  /// Objects that broke the rules of the destination.
  package var invalidRows: [InvalidRows] = []

  /// No counts.
  package init() {}
}

/// The objects that broke one rule, and what the operator's rule did with them.
package struct InvalidRows: Sendable, Hashable {
  /// The destination entity and property.
  package let entity: String
  package let property: String
  /// Core Data's error code.
  package let code: ValidationErrorCode
  /// The operator's rule that was applied: any except `fail`.
  package let rule: InvalidRowsRule
  package let count: Int64
  /// The first of the objects' primary keys in the hop's result.
  package let keys: [Int64]
  /// References that other objects had to objects that were taken out, and have no longer, by "Entity.relationship".
  /// Those of several rules that took objects out together are at the first.
  package var clearedReferences: [String: Int64] = [:]
}
