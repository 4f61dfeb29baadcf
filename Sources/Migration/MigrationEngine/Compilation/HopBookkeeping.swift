// The metadata of a hop's result and the highest primary keys ever given out. Both follow from the hop's source.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// The bookkeeping of one hop's result.
struct HopBookkeeping {
  let hop: Hop
  let source: StoreReader
  /// Reads the rows of the result.
  let destination: StoreReader
  /// The keys of a hop with mapping models.
  let layout: AssociationLayout?

  /// Returns the metadata, for a file with that auto_vacuum.
  func metadata(autoVacuum: Int64?) throws -> StoreMetadata {
    try source.metadata().migrated(to: hop.destination, autoVacuum: autoVacuum)
  }

  /// Returns Z_MAX per destination root: the source's mark, or the largest key if that is greater. A mark never
  /// decreases (docs/formats/store-layout.md, "Primary keys").
  func highWaterMarks() throws -> [String: Int64] {
    let entries = Dictionary(try source.primaryKeys().map { ($0.number, $0.highWaterMark) }) { first, _ in first }
    var marks: [String: Int64] = [:]
    for table in hop.destinationSchema.tables {
      var mark = try destination.keyEnds(of: table.name).high ?? 0
      for name in sourceEntities(of: table) {
        guard let root = hop.source.entity(named: name).map({ hop.source.root(of: $0).name }),
          let number = hop.sourceSchema.number(of: root)
        else { continue }
        mark = max(mark, entries[number] ?? 0)
      }
      marks[table.rootEntity] = mark
    }
    return marks
  }

  /// The source entities whose objects are migrated to a table.
  private func sourceEntities(of table: EntityTable) -> [String] {
    if let layout { return layout.ranges.filter { $0.destinationTable == table.name }.map(\.sourceEntity) }
    return table.entities.compactMap { hop.mapping.mapping(toDestination: $0)?.sourceEntity }
  }
}

extension AssociationLayout {
  /// The keys of a hop's mappings over its current source. The span of a table includes keys that it may have held: a
  /// deleted object's key is not used again.
  init(hop: Hop, source: StoreReader) throws {
    let marks = Dictionary(try source.primaryKeys().map { ($0.number, $0.highWaterMark) }) { first, _ in first }
    var spans: [String: KeySpan] = [:]
    for table in hop.sourceSchema.tables {
      let ends = try source.keyEnds(of: table.name)
      let mark = hop.sourceSchema.number(of: table.rootEntity).flatMap { marks[$0] } ?? 0
      spans[table.name] = KeySpan(low: ends.low ?? 0, high: max(ends.high ?? 0, mark))
    }
    try self.init(hop: hop, spans: spans)
  }
}

extension HopProgram.Precondition {
  /// Throws the precondition's error if the query returns a row.
  func check(_ connection: Connection, hop: Hop) throws {
    guard try connection.value(sql) != nil else { return }
    throw HopdError(
      .relationshipNotUnique, message, at: Place(hop: hop.title, entity: entity, property: property),
      hint: "make the references unique with the old app, or migrate with a mapping model")
  }
}
