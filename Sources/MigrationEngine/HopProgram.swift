// A hop compiled to SQL: what runs, in which order, and what can be chunked. A plain value, so that it can be shown in
// a debug journal and compared in tests.

/// The statements of one hop.
package struct HopProgram: Sendable, Hashable {
  /// Schema names in the connection.
  package let source: String
  package let destination: String
  /// Statements that must answer no row before anything is written; each with what a row would mean.
  package let preconditions: [Precondition]
  /// In order; checkpoints speak of positions in this list.
  package let steps: [Step]

  /// A check of the source.
  package struct Precondition: Sendable, Hashable {
    /// A query whose rows are violations.
    package let sql: String
    /// What a violation means, in a sentence.
    package let message: String
    package let entity: String
    package let property: String
  }

  /// One piece of work, each with its own checkpoints.
  package enum Step: Sendable, Hashable {
    /// Rows copied by ranges of a key of the source table.
    case copy(CopyStep)
    /// One statement over rows already copied.
    case update(StatementStep)
    /// One index.
    case index(StatementStep)
    /// One trigger of a derived attribute.
    case trigger(StatementStep)

    /// What it works on, for progress: an entity, a join table, an index, a trigger.
    package var subject: String {
      switch self {
      case .copy(let step): step.subject
      case .update(let step), .index(let step), .trigger(let step): step.subject
      }
    }
  }

  /// A chunked INSERT … SELECT. Parameters 1 and 2 are the bounds of the range, both inclusive.
  package struct CopyStep: Sendable, Hashable {
    /// Entity or join table, for progress.
    package let subject: String
    /// `SELECT min(key) … WHERE key >= ?1`: where the next chunk begins.
    package let nextKey: String
    /// The insert for a range.
    package let insert: String
  }

  /// A single statement.
  package struct StatementStep: Sendable, Hashable {
    package let subject: String
    package let sql: String
  }
}
