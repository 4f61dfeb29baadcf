import MigrationPlanning
import PersistentStore

/// An object that a repair has made.
package struct RepairedObject: Sendable, Hashable {
  package let gap: SchemaGap
  /// The rows that got the default of the attribute in a column.
  package let rows: Int64
}

extension RepairPlan {
  /// The objects that it makes.
  package var objects: [RepairedObject] { gaps.map { RepairedObject(gap: $0, rows: rows(with: $0)) } }
}
