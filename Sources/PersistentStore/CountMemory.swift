// What was counted in tables that do not change while they are asked: a chain looks at the rows between its hops more than once, as
// what one hop must have made, as what the next one reads, and as what its result is verified against.

/// Answers to counting questions by table, shared by all who read the same store over one connection.
package final class CountMemory {
  private var totals: [String: Int64] = [:]
  private var counts: [String: [String: Int64]] = [:]

  /// Remembers nothing yet.
  package init() {}

  /// Forgets everything: the tables may be others now.
  package func forget() {
    totals = [:]
    counts = [:]
  }

  /// All rows of a table, whose name has its schema before it.
  func total(of table: String) -> Int64? { totals[table] }

  /// Keeps a total.
  func keep(total: Int64, of table: String) { totals[table] = total }

  /// The rows of a table for which a condition holds.
  package func count(_ condition: String, in table: String) -> Int64? { counts[table]?[condition] }

  /// Keeps a count.
  package func keep(_ count: Int64, for condition: String, in table: String) {
    counts[table, default: [:]][condition] = count
  }
}
