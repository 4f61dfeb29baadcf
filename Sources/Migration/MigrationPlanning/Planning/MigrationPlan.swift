// The plan of one store's migration path, complete before any byte is written: the chain with all models and mappings
// loaded, its costs, its drops, and the expected result.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore

/// The chain of hops from a store's version to the target.
package struct MigrationPlan: Sendable {
  /// The store and its version.
  package let store: IdentifiedStore
  /// The target version.
  package let target: CatalogedVersion
  /// In order; empty if the store is at the target.
  package let hops: [Hop]
  /// Columns and entities that the migration path drops, each with the number of rows that have a value in the store
  /// now.
  package let drops: [DroppedColumn]
  /// Tables of persistent history that the last store has without their rows; empty for a store without history.
  package let clearedHistory: [ClearedTable]
  /// Warnings for the operator; none of them stops the migration.
  package let warnings: [HopdError]
  /// Estimated costs.
  package let estimate: MigrationEstimate
  /// The expected content of the finished store, counted in the source.
  package let expectation: StoreExpectation
  /// Identifies the hops with everything that determines them except the rows: equal for stores with the same hops.
  /// Lower-case hex.
  package let migrationPath: String
  /// Cached results that follow from the hops alone; stores with the same hops share them.
  package let cache: Cache
  /// Changes if models, mappings, chain or layout decisions change: a checkpoint of another plan is not resumed.
  /// Lower-case hex.
  package let fingerprint: String
  /// The store's file when the plan was made.
  package let found: FoundFile

  /// Whether a hop follows mapping models.
  ///
  /// Then the rows of the hops after the first such hop are inspected during the migration, and
  /// `MigrationPlanner.expectation(of:input:)` returns the expectation.
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
  /// How entities and properties are carried; for a mapped hop, how names continue (`MappedHop.nameTrail`), which
  /// decides only about layouts.
  package let mapping: InferredMapping
  /// The mapping models to follow; nil for an inferred hop.
  package internal(set) var mapped: MappedHop?
  /// For each entity mapping, the rows it will read, as far as they can be counted in advance.
  package internal(set) var entities: [EntityCost]
  /// Derived counts of the destination that are computed once its rows are written.
  package internal(set) var computed: [SchemaDerivation] = []
  /// How the rows of persistent history are carried into the destination, from the store at the beginning of the chain;
  /// only the last hop has it, and it is nil if none are carried.
  package var history: HistoryCarry?

  /// Returns the hop with the known numbers of rows that its entity mappings read.
  func reading(_ rows: [Int64?]) -> Hop {
    var copy = self
    copy.entities = zip(entities, rows).map { EntityCost(mapping: $0.mapping, rows: $1 ?? $0.rows) }
    return copy
  }

  /// Whether it follows mapping models.
  package var isMapped: Bool { mapped != nil }

  /// The hook of a stage for which it was made; nil for a hop between two versions.
  package var hook: StageHook? { mapped?.hook }

  /// "Model 2 → Model 3", or "willMigrate of Model 2 → Model 3".
  package var title: String { hook?.title ?? "\(source.name) → \(destination.name)" }
}

/// The rows that one entity mapping of a hop will read.
package struct EntityCost: Sendable, Hashable {
  /// Name of the entity mapping.
  package let mapping: String
  /// Rows of the source entity.
  package let rows: Int64
}

/// A column or an entity that some hop drops, with its values or objects counted in the existing store.
package struct DroppedColumn: Sendable, Hashable {
  /// Index of the hop that drops it.
  package internal(set) var hop: Int
  /// Entity and property by their names in that hop's source version; no property if the entity goes with its objects.
  package let entity: String
  package let property: String?
  /// Table and column of the existing store that hold the values; no column if the entity goes.
  package let table: String
  package let column: String?
  /// Rows with a value that is not NULL, or rows of the entity.
  package let nonNull: Int64
}

/// The estimated costs of a migration.
package struct MigrationEstimate: Sendable, Hashable {
  /// Rows to be read over all hops.
  package let rows: Int64
  /// Size of the store (database and log) in bytes.
  package let bytes: Int64
  /// Free bytes needed in the store's directory: one staged store, or two if there are several hops, plus a tenth.
  package let diskNeeded: Int64
  /// Expected peak memory, in bytes.
  package let memory: Int64
  /// Expected seconds, from a rough rate; a report has the measured time.
  package let seconds: Double

  /// Creates an estimate.
  package init(rows: Int64, bytes: Int64, diskNeeded: Int64, memory: Int64, seconds: Double) {
    self.rows = rows
    self.bytes = bytes
    self.diskNeeded = diskNeeded
    self.memory = memory
    self.seconds = seconds
  }
}

/// The expected content of the finished store, counted in the source under its lock; the verifier compares.
package struct StoreExpectation: Sendable, Hashable {
  /// Rows per destination entity (concrete entity, without its subentities), including entities without rows; absent if
  /// a mapping model makes objects and no exact number is known in advance.
  package let rowsByEntity: [String: Int64]
  /// Rows in the source of entities that the migration path drops, by source entity name.
  package let droppedRowsByEntity: [String: Int64]
  /// Rows per destination join table name, if every pair of one source storage is carried; absent if a hop filters or
  /// regroups pairs, so that no exact number is known in advance.
  package let rowsByJoinTable: [String: Int64]
  /// The minimum Z_MAX of each destination root entity: the source's high-water mark.
  package let highWaterMarks: [String: Int64]
  /// Dangling references in the source, over all relationships: the maximum for the result.
  package let danglingReferences: Int64
  /// Values that are not NULL per destination table and column, in rows of the entities that have the property; absent
  /// if no exact number is known in advance.
  package internal(set) var valuesByColumn: [String: [String: Int64]] = [:]
  /// References and pairs of ordered relationships without an order key in the source: the maximum for the result.
  package internal(set) var nullOrderKeys: Int64 = 0
  /// The expected content of binary columns with external storage, before or after, per destination table and column;
  /// nil if a mapping model decides it.
  package internal(set) var externalData: [String: [String: ExternalDataExpectation]]? = [:]
  /// Store UUID, which does not change.
  package let storeUUID: String

  /// Returns an expectation with only those facts that hold for every store: for a plan whose numbers become known
  /// during the migration.
  static func unknown(droppedRows: [String: Int64], storeUUID: String) -> StoreExpectation {
    StoreExpectation(
      rowsByEntity: [:], droppedRowsByEntity: droppedRows, rowsByJoinTable: [:], highWaterMarks: [:],
      danglingReferences: 0, externalData: nil, storeUUID: storeUUID)
  }
}
