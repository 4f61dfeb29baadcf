// The destination object of each source object, as arithmetic on primary keys: destination key = source key plus an
// offset per mapping. So the associations of a hop need no table, however large the store; only grouped, expanded and
// policy mappings have one (docs/formats/migration-semantics.md, "Associations").

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore

extension HopdError.Code {
  /// A mapping model needs a feature that hopd does not support, or whose effect is not known.
  package static let mappingUnsupported = HopdError.Code("mapping-unsupported", exit: .dataError)
  /// The primary keys of the destination would not fit into 64 bits.
  package static let keysExhausted = HopdError.Code("keys-exhausted", exit: .dataError)
}

/// The key ranges of all mappings of a hop.
package struct AssociationLayout: Sendable, Hashable {
  /// The least and greatest key that a source table may have.
  package struct KeySpan: Sendable, Hashable {
    package let low: Int64
    package let high: Int64
  }

  /// The rule by which a mapping's objects follow from its source objects.
  package enum Kind: Sendable, Hashable {
    /// Each source object that matches the filter has the object with its key plus the offset.
    case each
    /// `HOPD_GROUP_n` has the source object that represents each distinct value of the keys.
    case grouped
    /// As `grouped`; source objects with nil in their keys as `each`.
    case deduplicated
    /// `HOPD_EXPANDED_n` has the object of each pair of a source object and a member.
    case expanded(memberEntity: String)
    /// `HOPD_ASSOCIATION` has the policy's associations.
    case policy
  }

  /// The ranges in the order of execution; mappings without source or destination have none.
  package let ranges: [AssociationRange]
  /// The largest key that a range's offset can give, per destination table. Keys above it are free for other objects.
  package let reservedKeys: [String: Int64]

  /// Returns the range of an entity mapping.
  package func range(at index: Int) -> AssociationRange? { ranges.first { $0.index == index } }

  /// Returns the range of a named entity mapping.
  package func range(named name: String) -> AssociationRange? { ranges.first { $0.mapping.name == name } }

  /// Returns the ranges whose source is exactly that entity, in order.
  package func ranges(from entity: String) -> [AssociationRange] { ranges.filter { $0.sourceEntity == entity } }

  /// Returns the name of the table of a mapping's groups.
  package static func groupTable(_ index: Int) -> String { "HOPD_GROUP_\(index)" }
  /// Returns the name of the table of an expanding mapping's pairs.
  package static func expandedTable(_ index: Int) -> String { "HOPD_EXPANDED_\(index)" }
  /// The table of policies' associations: mapping (index), source_entity and destination_entity (Z_ENT), source and
  /// destination (Z_PK).
  package static let associationTable = "HOPD_ASSOCIATION"

  /// Lays out the keys of a hop's mappings. `spans` are the key spans of the source tables, by table name.
  package init(hop: Hop, spans: [String: KeySpan]) throws(HopdError) {
    var ranges: [AssociationRange] = []
    var groups: [Group] = []
    var reserved: [String: Int64] = [:]
    for (index, mapping) in (hop.mapped?.entityMappings ?? []).enumerated() {
      guard let source = mapping.source, let destination = mapping.destination else { continue }
      let place = Place(hop: hop.title, entity: mapping.name)
      guard let sourceTable = hop.sourceSchema.table(of: source),
        let sourceNumber = hop.sourceSchema.number(of: source),
        let table = hop.destinationSchema.table(of: destination),
        let number = hop.destinationSchema.number(of: destination),
        hop.destination.entity(named: destination)?.isAbstract == false
      else {
        throw HopdError(
          .mappingUnsupported, "the mapping's source or destination is not an entity that can have objects", at: place,
          hint: "map concrete entities of \(hop.source.name) and \(hop.destination.name)")
      }
      let kind = Self.kind(of: mapping)
      var offset: Int64 = 0
      if case .expanded = kind {
        // Its keys are assigned after all other ranges.
      } else if kind != .grouped,
        let shared = groups.firstIndex(where: {
          $0.destination == table.name && $0.source == sourceTable.name && !$0.entities.contains(source)
        })
      {
        groups[shared].entities.insert(source)
        offset = groups[shared].offset
      } else {
        let span = spans[sourceTable.name] ?? KeySpan(low: 1, high: 0)
        guard span.low > Int64.min else { throw Self.exhausted(at: place) }
        if let end = reserved[table.name] {
          // The least key of this range is one above the last range.
          let (start, overflow) = end.subtractingReportingOverflow(min(span.low, 1) - 1)
          let (last, overflowsAtEnd) = start.addingReportingOverflow(max(span.high, 0))
          guard !overflow, !overflowsAtEnd else { throw Self.exhausted(at: place) }
          offset = start
          reserved[table.name] = last
        } else {
          reserved[table.name] = max(span.high, 0)
        }
        // The objects of groups are counted from one, so no other mapping has their range.
        if kind != .grouped {
          groups.append(
            Group(destination: table.name, source: sourceTable.name, offset: offset, entities: [source]))
        }
      }
      ranges.append(
        AssociationRange(
          index: index, mapping: mapping, kind: kind, sourceEntity: source, sourceTable: sourceTable.name,
          sourceNumber: sourceNumber, destinationEntity: destination, destinationTable: table.name,
          destinationNumber: number, offset: offset))
    }
    self.ranges = ranges
    reservedKeys = reserved
  }

  /// Mappings that share an offset: they map different entities of one source table, so no two of their rows have the
  /// same key.
  private struct Group {
    let destination: String
    let source: String
    let offset: Int64
    var entities: Set<String>
  }

  private static func kind(of mapping: ExplicitEntityMapping) -> Kind {
    if mapping.policy != nil { return .policy }
    switch mapping.grouping {
    case .each: return .each
    case .distinctBy: return .grouped
    case .deduplicate: return .deduplicated
    case .expand(_, let entity): return .expanded(memberEntity: entity)
    }
  }

  private static func exhausted(at place: Place) -> HopdError {
    HopdError(
      .keysExhausted, "the primary keys of its objects would not fit into 64 bits", at: place,
      hint: "map fewer entities into one hierarchy, or renumber the objects with the app")
  }
}
