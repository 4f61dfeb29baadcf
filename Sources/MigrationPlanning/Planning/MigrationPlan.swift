// The plan of one store's migration path, complete before a byte is touched: the chain with all models and mappings
// loaded, what it will cost, what it will drop, and what must hold at the end.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore

/// The chain of hops from a store's version to the wanted one.
package struct MigrationPlan: Sendable {
  /// The store and its version.
  package let store: IdentifiedStore
  /// The version to reach.
  package let target: CatalogedVersion
  /// In order; empty when the store is at the target already.
  package let hops: [Hop]
  /// Columns whose values the migration path drops, with the count of rows that hold one in the store today.
  package let drops: [DroppedColumn]
  /// Tables of persistent history that the last store has without their rows; empty for a store without history.
  package let clearedHistory: [ClearedTable]
  /// What the operator should know; nothing here stops the migration.
  package let warnings: [HopdError]
  /// Rows and bytes it will take.
  package let estimate: MigrationEstimate
  /// What the finished store must hold, counted in the source.
  package let expectation: StoreExpectation
  /// Names the hops with all that decides about them but the rows: equal for stores that go the same way. Lower-case
  /// hex.
  package let migrationPath: String
  /// What was worked out of the hops alone, whatever the rows: stores that go the same way share it.
  package let memo: Memo
  /// Changes when models, mappings, chain or layout decisions do: a checkpoint of another plan is not resumed.
  /// Lower-case hex.
  package let fingerprint: String
  /// The store's file as it was when the plan was made.
  package let found: FoundFile

  /// Does a hop follow mapping models?
  ///
  /// Then the rows of the hops behind the first such hop are inspected on the way, and `expectation` is that of
  /// `MigrationPlanner.expectation(of:input:)`.
  package var isMixed: Bool { hops.contains(where: \.isMapped) }
}

/// One step from a source version to a destination version.
package struct Hop: Sendable {
  /// Position in the chain, from 0.
  package let index: Int
  /// Models and layouts of both sides. The source schema of the first hop is that of the real store, with the join
  /// table names found there; the destination schema keeps the source store's framework version.
  package let source: ManagedObjectModel
  package let destination: ManagedObjectModel
  package let sourceSchema: StoreSchema
  package let destinationSchema: StoreSchema
  /// How entities and properties are carried; for a hop with mapping models, how names continue
  /// (`MappedHop.nameTrail`), which decides about layouts only.
  package let mapping: InferredMapping
  /// The mapping models to follow; nil for an inferred hop.
  package internal(set) var mapped: MappedHop?
  /// Per entity mapping: the rows it will read, as far as they can be counted ahead.
  package internal(set) var entities: [EntityCost]
  /// Derived counts of the destination that are computed when its rows are there.
  package internal(set) var computed: [SchemaDerivation] = []
  /// How the rows of persistent history come into the destination: of the last hop only, from the store that the chain
  /// begins with; nil where none does.
  package var history: HistoryCarry?

  /// The same hop with the rows that its entity mappings read, where they are known.
  func reading(_ rows: [Int64?]) -> Hop {
    var copy = self
    copy.entities = zip(entities, rows).map { EntityCost(mapping: $0.mapping, rows: $1 ?? $0.rows) }
    return copy
  }

  /// Does it follow mapping models?
  package var isMapped: Bool { mapped != nil }

  /// The hook of a stage that it is made for; nil for a hop between two versions.
  package var hook: StageHook? { mapped?.hook }

  /// "Model 2 → Model 3", or "willMigrate of Model 2 → Model 3".
  package var title: String { hook?.title ?? "\(source.name) → \(destination.name)" }
}

/// What one entity mapping of a hop will read.
package struct EntityCost: Sendable, Hashable {
  /// Name of the entity mapping.
  package let mapping: String
  /// Rows of the source entity.
  package let rows: Int64
}

/// A column that some hop drops, counted in the store as it is now.
package struct DroppedColumn: Sendable, Hashable {
  /// Index of the hop that drops it.
  package internal(set) var hop: Int
  /// Entity and property as named in that hop's source version.
  package let entity: String
  package let property: String
  /// Table and column of the store today that hold the values.
  package let table: String
  package let column: String
  /// Rows with a value that is not NULL.
  package let nonNull: Int64
}

/// What a migration will take.
package struct MigrationEstimate: Sendable, Hashable {
  /// Rows to be read over all hops.
  package let rows: Int64
  /// Size of the store (database and log) in bytes.
  package let bytes: Int64
  /// Free bytes needed in the store's directory: staged stores of two hops at once, plus a tenth.
  package let diskNeeded: Int64
  /// Peak memory expected, in bytes.
  package let memory: Int64
  /// Seconds expected, from a rough rate; a report has the truth.
  package let seconds: Double

  /// Makes an estimate.
  package init(rows: Int64, bytes: Int64, diskNeeded: Int64, memory: Int64, seconds: Double) {
    self.rows = rows
    self.bytes = bytes
    self.diskNeeded = diskNeeded
    self.memory = memory
    self.seconds = seconds
  }
}

/// What the finished store must hold, counted in the source under its lock; the verifier compares.
package struct StoreExpectation: Sendable, Hashable {
  /// Rows per destination entity (concrete entity, not its subentities), entities without rows included; absent where a
  /// mapping model makes objects of which no exact number is known ahead.
  package let rowsByEntity: [String: Int64]
  /// Rows in the source of entities that the migration path drops, by source entity name.
  package let droppedRowsByEntity: [String: Int64]
  /// Rows per destination join table name, where every pair of one source storage is carried; absent where a hop
  /// filters or regroups pairs, so that no exact number is known ahead.
  package let rowsByJoinTable: [String: Int64]
  /// Z_MAX of each destination root entity must be at least this: the source's high-water mark.
  package let highWaterMarks: [String: Int64]
  /// Dangling references in the source, over all relationships: the result may have no more.
  package let danglingReferences: Int64
  /// Values that are not NULL per destination table and column, in rows of the entities that have the property; absent
  /// where no exact number is known ahead.
  package internal(set) var valuesByColumn: [String: [String: Int64]] = [:]
  /// References and pairs of ordered relationships without an order key in the source: the result may have no more.
  package internal(set) var nullOrderKeys: Int64 = 0
  /// What binary columns with external storage, before or after, must hold per destination table and column; nil where
  /// a mapping model decides what they hold.
  package internal(set) var externalData: [String: [String: ExternalDataExpectation]]? = [:]
  /// Store UUID, which stays.
  package let storeUUID: String

  /// Nothing but what the store keeps whatever happens: for a plan whose numbers are only known on the way.
  static func unknown(droppedRows: [String: Int64], storeUUID: String) -> StoreExpectation {
    StoreExpectation(
      rowsByEntity: [:], droppedRowsByEntity: droppedRows, rowsByJoinTable: [:], highWaterMarks: [:],
      danglingReferences: 0, externalData: nil, storeUUID: storeUUID)
  }
}
