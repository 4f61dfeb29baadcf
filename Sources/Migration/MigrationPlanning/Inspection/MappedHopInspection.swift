// The entities that a mapped hop drops. Core Data migrates only what an entity mapping names, and does not report the
// rest; real files leave out 28 entities that both versions have (docs/formats/mapping-models.md, "What a mapping
// covers"), so they are searched for here.

import Diagnostics
import ManagedObjectModel
import MappingModel

struct MappedHopInspection {
  private(set) var findings = Findings()

  /// `rows` are the rows of the hop's source version by entity. Rows of entities that the destination does not have are
  /// a drop, as in an inferred hop, and counted with those (`DropCounting`).
  init(hop: Hop, rows: [String: Int64], rule: UnmappedEntitiesRule) {
    // Entities that may be dropped are counted with all other drops.
    guard let mapped = hop.mapped, rule == .fail else { return }
    let sources = Set(mapped.entityMappings.compactMap(\.source))
    let names = mapped.mappings.map(\.name).joined(separator: ", ")
    for entity in hop.source.entities.sorted(by: { $0.name < $1.name })
    where !entity.isAbstract && !sources.contains(entity.name) {
      let count = rows[entity.name] ?? 0
      guard count > 0, let next = MappedHopInspection.survivor(of: entity, in: hop.destination) else { continue }
      let kept =
        next == entity.name ? "which \(hop.destination.name) has too" : "which \(hop.destination.name) calls \(next)"
      let dead = mapped.entityMappings.compactMap { mapping in
        mapping.deadness?.source == entity.name
          ? "; “\(mapping.name)”, which names it, has no effect: \(mapping.deadness?.reason ?? "")" : nil
      }
      findings.add(
        .unmappedEntities,
        "\(count.counted("row")) of this entity, \(kept), \(count == 1 ? "is" : "are") taken by no entity "
          + "mapping of \(names) and would be lost\(dead.joined())", at: Place(hop: hop.title, entity: entity.name),
        hint: "add an entity mapping, or drop them: --unmapped-entities drop (for the daemon, "
          + "unmapped_entities = \"drop\" in [watch.migration])")
    }
  }

  /// Returns the destination entity of the same name or the same renaming identifier.
  private static func survivor(of entity: Entity, in model: ManagedObjectModel) -> String? {
    if model.entity(named: entity.name) != nil { return entity.name }
    return model.entities.first { $0.renamingIdentifier == entity.renamingIdentifier }?.name
  }
}

extension MigrationPath {
  /// Returns the rows per entity of a version, from the store's: inferred hops keep every row of a continued entity.
  func rows(_ stored: [String: Int64], at version: Int) -> [String: Int64] {
    guard models.indices.contains(version) else { return [:] }
    return Dictionary(
      models[version].entities.map { entity in
        (entity.name, sourceEntity(of: entity.name, at: version).flatMap { stored[$0] } ?? 0)
      }, uniquingKeysWith: { first, _ in first })
  }
}
