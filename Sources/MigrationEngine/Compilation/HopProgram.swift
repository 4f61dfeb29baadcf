// A hop compiled to SQL: what runs, in which order, and what can be chunked. A plain value, so that it can be shown in
// a debug journal and compared in tests.

import Diagnostics
import MigrationPlanning
import PersistentStore
import SQLite

/// The statements of one hop.
package struct HopProgram: Sendable, Hashable {
  /// Where the tables that it reads are.
  package let source: SourceTables
  /// Schema name of the staged store in the connection.
  package let destination: String
  /// Statements that must answer no row before anything is written; each with what a row would mean.
  package let preconditions: [Precondition]
  /// Statements that make hopd's own tables in the staged store, with the store's tables; all are gone when it is
  /// sealed.
  package var scratch: [String] = []
  /// In order; checkpoints refer to positions in this list.
  package internal(set) var steps: [Step]
  /// Do the steps make the tables of Core Data's bookkeeping?
  var makesBookkeeping = false
  /// Are the tables of persistent history there when the steps are done?
  var hasHistory = false

  /// Does a policy take part? Then the hop cannot continue in its middle: a policy program may keep what it saw.
  package var hasPolicies: Bool { steps.contains { if case .policy = $0 { true } else { false } } }

  /// Are the destination's indexes built? A store in between has none.
  var buildsIndexes: Bool { steps.contains { if case .index = $0 { true } else { false } } }

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
    /// Several statements per range of a key, all in the range's transaction.
    case chunks(ChunkStep)
    /// A pass of a migration policy over one entity mapping.
    case policy(PolicyStep)
    /// The destination model's rules over all rows.
    case validate
    /// One index.
    case index(StatementStep)
    /// One trigger of a derived attribute.
    case trigger(StatementStep)

    /// What it works on, for progress: an entity, a join table, an index, a trigger.
    package var subject: String {
      switch self {
      case .copy(let step): step.subject
      case .chunks(let step): step.subject
      case .policy(let step): step.subject
      case .validate: "validation"
      case .update(let step), .index(let step), .trigger(let step): step.subject
      }
    }
  }

  /// A chunked INSERT … SELECT. Parameters 1 and 2 are the bounds of the range, both inclusive.
  package struct CopyStep: Sendable, Hashable {
    /// Entity or join table, for progress.
    package let subject: String
    /// What is inserted.
    package let rows: Insertion
    /// `SELECT min(key) … WHERE key >= ?1`: where the next chunk begins.
    package var nextKey: String { rows.driver.nextKey }
    /// The insert for a range.
    package let insert: String

    /// Makes a step that inserts into the tables of `schema`.
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

    /// Makes a step.
    package init(subject: String, _ effect: Effect, _ sql: SQLExpression) {
      self.init(subject: subject, effect, text: sql.text)
    }

    /// Makes a step of a whole statement.
    package init(subject: String, _ effect: Effect, text sql: String) {
      self.subject = subject
      self.effect = effect
      self.sql = sql
    }
  }

  /// What a statement does to the staged store.
  package enum Effect: Sendable, Hashable {
    /// Writes rows of that table of the destination.
    case rows(of: String)
    /// Makes or removes a table, an index or a trigger.
    case schema
    /// Writes hopd's own tables, or only reads.
    case scratch
  }

  /// Statements that run together for one range of a key after the other.
  package struct ChunkStep: Sendable, Hashable {
    /// Entity, relationship or mapping, for progress.
    package let subject: String
    /// `SELECT min(key) … WHERE key >= ?1`: where the next chunk begins.
    package let nextKey: String
    /// In order.
    package let actions: [Action]
  }

  /// One statement of a chunk.
  package struct Action: Sendable, Hashable {
    /// What a row of the statement's answer means.
    package struct Refusal: Sendable, Hashable {
      /// A sentence; `%1`, `%2` and `%3` stand for the columns of the row, which are keys and never users' values.
      package let message: String
      package let entity: String
      package let property: String?
      package let hint: String
      package var code = HopdError.Code.relationshipNotUnique
    }

    /// Parameters 1 and 2 are the bounds of the range, both inclusive, where `isRanged`.
    package let sql: String
    package let effect: Effect
    package let isRanged: Bool
    /// Do its changes count as rows written?
    package let isCounted: Bool
    /// For a query that must answer no row.
    package let refusal: Refusal?
    /// What the statement inserts, where it is one that only makes rows of the destination.
    package let rows: Insertion?

    /// Makes an action.
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

    /// Makes an action that inserts rows into the tables of `schema`.
    package init(_ rows: Insertion, schema: String) {
      sql = rows.statement(into: schema)
      effect = .rows(of: rows.table)
      isRanged = true
      isCounted = true
      refusal = nil
      self.rows = rows
    }
  }

  /// What a policy does at one place of the program; `PolicyStepRunner` knows how.
  package struct PolicyStep: Sendable, Hashable {
    /// The hooks of one place.
    package enum Pass: Sendable, Hashable {
      /// beginEntityMapping, createDestinationInstances of every source object in order, endInstanceCreation.
      /// Attributes of default objects and rows of `HOPD_ASSOCIATION` are written here.
      case createInstances
      /// createRelationships of every object that the mapping made, after the mapping's own relationships were set (but
      /// for those that call a method of the policy, which are set here first), and endRelationshipCreation.
      case createRelationships
      /// performCustomValidation.
      case performCustomValidation
      /// endEntityMapping.
      case end
      /// The hook of a stage, over all objects of the staged store.
      case stage
    }

    /// Index in `MappedHop.entityMappings`.
    package let mapping: Int
    /// Its name, for progress.
    package let subject: String
    package let pass: Pass
  }
}

extension HopProgram.ChunkStep {
  /// One statement over the primary keys of `source`, which writes rows of the table that is the subject.
  init(rowsOf table: String, over source: String, _ sql: SQLExpression) {
    self.init(
      subject: table, nextKey: "SELECT min(\"Z_PK\") FROM \(source) WHERE \"Z_PK\" >= ?1",
      actions: [HopProgram.Action(.rows(of: table), sql, isRanged: true)])
  }
}
