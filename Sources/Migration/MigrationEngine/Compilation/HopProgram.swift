// A hop compiled to SQL: its statements, their order, and which can be chunked. A plain value, so that a debug journal
// can show it and tests can compare it.

import Diagnostics
import MigrationPlanning
import PersistentStore
import SQLite

/// The statements of one hop.
package struct HopProgram: Sendable, Hashable {
  /// The tables that it reads.
  package let source: SourceTables
  /// The staged store's schema name in the connection.
  package let destination: String
  /// Queries that must return no row before anything is written, each with the meaning of a row.
  package let preconditions: [Precondition]
  /// Statements that create hopd's own tables in the staged store, together with the store's tables. The tables are
  /// removed before it is sealed.
  package var scratch: [String] = []
  /// The steps in order; checkpoints refer to positions in this list.
  package internal(set) var steps: [Step]
  /// Whether the steps create the tables of Core Data's bookkeeping.
  var makesBookkeeping = false
  /// Whether the file has Core Data's bookkeeping of the source, which is read and then replaced.
  var replacesBookkeeping = false
  /// Whether the steps create the tables of persistent history.
  var hasHistory = false

  /// Whether a step collects pairs of objects in the connection's temporary tables.
  var usesPairs: Bool {
    steps.contains { if case .chunks(let step) = $0 { step.usesPairs } else { false } }
  }

  /// Whether a policy takes part. Such a hop cannot be resumed in its middle: a policy program may keep state.
  package var hasPolicies: Bool { steps.contains { if case .policy = $0 { true } else { false } } }

  /// Whether the destination's indexes are built. A store between hops has none.
  var buildsIndexes: Bool { steps.contains { if case .index = $0 { true } else { false } } }

  /// A check of the source.
  package struct Precondition: Sendable, Hashable {
    /// A query that returns violations.
    package let sql: String
    /// The meaning of a violation, in a sentence.
    package let message: String
    package let entity: String
    package let property: String
  }

  /// One piece of work, each with its own checkpoints.
  package enum Step: Sendable, Hashable {
    /// Rows copied by ranges of a key of the source table.
    case copy(CopyStep)
    /// One statement over rows that are already copied.
    case update(StatementStep)
    /// Several statements per range of a key, all in the range's transaction.
    case chunks(ChunkStep)
    /// A pass of a migration policy over one entity mapping.
    case policy(PolicyStep)
    /// The destination model's rules, checked over all rows.
    case validate
    /// One table of bookkeeping or of history, which follows the rows.
    case table(StatementStep)
    /// One index.
    case index(StatementStep)
    /// One trigger of a derived attribute.
    case trigger(StatementStep)

    /// The entity, join table, index or trigger, for progress.
    package var subject: String {
      switch self {
      case .copy(let step): step.subject
      case .chunks(let step): step.subject
      case .policy(let step): step.subject
      case .validate: "validation"
      case .update(let step), .table(let step), .index(let step), .trigger(let step): step.subject
      }
    }
  }

  /// A chunked INSERT … SELECT. Parameters 1 and 2 are the bounds of the range, both inclusive.
  package struct CopyStep: Sendable, Hashable {
    /// The entity or join table, for progress.
    package let subject: String
    /// The rows to insert.
    package let rows: Insertion
    /// The INSERT for a range.
    package let insert: String

    /// Creates a step that inserts into the tables of `schema`.
    package init(subject: String, rows: Insertion, schema: String) {
      self.subject = subject
      self.rows = rows
      insert = rows.statement(into: schema)
    }
  }

  /// A single statement.
  package struct StatementStep: Sendable, Hashable {
    package let subject: String
    package let sql: String
    package let effect: Effect

    /// Creates a step.
    package init(subject: String, _ effect: Effect, _ sql: SQLExpression) {
      self.init(subject: subject, effect, text: sql.text)
    }

    /// Creates a step from a complete statement.
    package init(subject: String, _ effect: Effect, text sql: String) {
      self.subject = subject
      self.effect = effect
      self.sql = sql
    }
  }

  /// The effect of a statement on the staged store.
  package enum Effect: Sendable, Hashable {
    /// Writes rows of that destination table.
    case rows(of: String)
    /// Creates or drops a table, an index or a trigger.
    case schema
    /// Writes hopd's own tables, or only reads.
    case scratch
  }

  /// Statements that run together for each range of a key.
  package struct ChunkStep: Sendable, Hashable {
    /// The entity, relationship or mapping, for progress.
    package let subject: String
    /// The table and key by which the rows are divided into ranges.
    package let driver: SourceTables.Driver
    /// The statements in order.
    package let actions: [Action]
    /// Whether they collect pairs of objects in the connection's temporary tables.
    package var usesPairs = false
  }

  /// One statement of a chunk.
  package struct Action: Sendable, Hashable {
    /// The meaning of a row that a statement returns.
    package struct Refusal: Sendable, Hashable {
      package let message: KeyMessage
      package let entity: String
      package let property: String?
      package let hint: String
      package var code = HopdError.Code.relationshipNotUnique
    }

    /// Parameters 1 and 2 are the bounds of the range, both inclusive, if `isRanged`.
    package let sql: String
    package let effect: Effect
    package let isRanged: Bool
    /// Whether its changes count as rows written.
    package let isCounted: Bool
    /// For a query that must return no row.
    package let refusal: Refusal?
    /// The rows that the statement inserts, if it only makes rows of the destination.
    package let rows: Insertion?

    /// Creates an action.
    package init(
      _ effect: Effect, _ sql: SQLExpression, isRanged: Bool = false, isCounted: Bool = false, refusal: Refusal? = nil
    ) {
      self.sql = sql.text
      self.effect = effect
      self.isRanged = isRanged
      self.isCounted = isCounted
      self.refusal = refusal
      rows = nil
    }

    /// Creates an action that inserts rows into the tables of `schema`.
    package init(_ rows: Insertion, schema: String) {
      sql = rows.statement(into: schema)
      effect = .rows(of: rows.table)
      isRanged = true
      isCounted = true
      refusal = nil
      self.rows = rows
    }
  }

  /// A policy's work at one position of the program; `PolicyStepRunner` does it.
  package struct PolicyStep: Sendable, Hashable {
    /// The hooks that run at one position.
    package enum Pass: Sendable, Hashable {
      /// beginEntityMapping, createDestinationInstances of every source object in order, endInstanceCreation.
      /// Attributes of default objects and rows of `HOPD_ASSOCIATION` are written here.
      case createInstances
      /// createRelationships of every object that the mapping made, and endRelationshipCreation. It runs after the
      /// mapping's own relationships were set; those that call a method of the policy are set here first.
      case createRelationships
      /// performCustomValidation.
      case performCustomValidation
      /// endEntityMapping.
      case end
      /// The hook of a stage, over all objects of the staged store.
      case stage
    }

    /// The index in `MappedHop.entityMappings`.
    package let mapping: Int
    /// The mapping's name, for progress.
    package let subject: String
    package let pass: Pass
  }
}

extension HopProgram.ChunkStep {
  /// One statement over the primary keys of `source`. It writes rows of the table that is its subject.
  init(rowsOf table: String, over source: String, _ sql: SQLExpression) {
    self.init(
      subject: table, driver: SourceTables.Driver(table: source, key: "\"Z_PK\""),
      actions: [HopProgram.Action(.rows(of: table), sql, isRanged: true)])
  }
}
