// Which destination object belongs to which source object, as arithmetic on primary keys: destination key = source key
// plus an offset per mapping. So the associations of a hop need no table, however large the store; only grouped,
// expanded and policy mappings keep one (docs/formats/migration-semantics.md, "Associations").

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore

extension HopdError.Code {
  /// A mapping model asks for something that cannot be done, or that is not known.
  package static let mappingUnsupported = HopdError.Code("mapping-unsupported", exit: .dataError)
  /// The primary keys of the destination would not fit into 64 bits.
  package static let keysExhausted = HopdError.Code("keys-exhausted", exit: .dataError)
}

/// The keys of all mappings of a hop.
package struct AssociationLayout: Sendable, Hashable {
  /// Least and greatest key that a source table may have.
  package struct KeySpan: Sendable, Hashable {
    package let low: Int64
    package let high: Int64
  }

  /// How a mapping's objects follow from its source objects.
  package enum Kind: Sendable, Hashable {
    /// Each source object that fulfils the filter has the object with its key plus the offset.
    case each
    /// `HOPD_GROUP_n` knows the source object that speaks for each value of the keys.
    case grouped
    /// As `grouped`, and source objects whose keys hold a nil as `each`.
    case deduplicated
    /// `HOPD_EXPANDED_n` gives each pair of a source object and a member its object.
    case expanded(memberEntity: String)
    /// `HOPD_ASSOCIATION` has what the policy associated.
    case policy
  }

  /// One entity mapping that makes objects from objects.
  package struct Lane: Sendable, Hashable {
    /// Index in `MappedHop.entityMappings`.
    package let index: Int
    package let mapping: ExplicitEntityMapping
    package let kind: Kind
    package let sourceEntity: String
    package let sourceTable: String
    package let sourceNumber: Int64
    package let destinationEntity: String
    package let destinationTable: String
    package let destinationNumber: Int64
    /// Added to the source key, but for expanded objects and what policies make beside the standard objects.
    package let offset: Int64

    /// Are keys enough to tell the associated objects?
    package var isArithmetic: Bool { kind == .each }
  }

  /// In the order of execution; mappings without source or destination have none.
  package let lanes: [Lane]
  /// Per destination table: the largest key that a lane's offset can lead to. Keys above are free for others.
  package let reservedKeys: [String: Int64]

  /// The lane of an entity mapping.
  package func lane(at index: Int) -> Lane? { lanes.first { $0.index == index } }

  /// The lane of a named entity mapping.
  package func lane(named name: String) -> Lane? { lanes.first { $0.mapping.name == name } }

  /// Lanes whose source is exactly that entity, in order.
  package func lanes(from entity: String) -> [Lane] { lanes.filter { $0.sourceEntity == entity } }

  /// Table of the groups of a mapping.
  package static func groupTable(_ index: Int) -> String { "HOPD_GROUP_\(index)" }
  /// Table of the pairs of an expanding mapping.
  package static func expandedTable(_ index: Int) -> String { "HOPD_EXPANDED_\(index)" }
  /// Table of what policies associated: mapping (index), source_entity and destination_entity (Z_ENT), source and
  /// destination (Z_PK).
  package static let associationTable = "HOPD_ASSOCIATION"

  /// Lays out the keys of a hop's mappings; `spans` are those of the source tables by name.
  package init(hop: Hop, spans: [String: KeySpan]) throws(HopdError) {
    var lanes: [Lane] = []
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
          .mappingUnsupported, "the mapping's source or destination is no entity that can have objects", at: place,
          hint: "map concrete entities of \(hop.source.name) and \(hop.destination.name)")
      }
      let kind = Self.kind(of: mapping)
      var offset: Int64 = 0
      if case .expanded = kind {
        // Its keys are counted when all other ranges are known.
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
        // The objects of groups are counted from one, so their range is nobody else's.
        if kind != .grouped {
          groups.append(
            Group(destination: table.name, source: sourceTable.name, offset: offset, entities: [source]))
        }
      }
      lanes.append(
        Lane(
          index: index, mapping: mapping, kind: kind, sourceEntity: source, sourceTable: sourceTable.name,
          sourceNumber: sourceNumber, destinationEntity: destination, destinationTable: table.name,
          destinationNumber: number, offset: offset))
    }
    self.lanes = lanes
    reservedKeys = reserved
  }

  /// Mappings that share an offset: from different entities of one source table, so that no two of their rows have one
  /// key.
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
      hint: "map fewer entities into one hierarchy, or let the app renumber the objects")
  }
}
