// What `model diff --json` prints, and `check --json` for each hop. Keys are a contract: they are added to, never
// renamed.

import MigrationChecking

/// The difference of two models.
struct ModelDiffShape: Encodable {
  let from: String
  let to: String
  let entities: [Entity]
  let unchangedEntities: Int
  let suspicions: [Suspicion]

  struct Entity: Encodable {
    let name: String
    @OrNull var oldName: String?
    /// "added", "removed", "renamed" or "changed".
    let kind: String
    let changes: [Change]
    let properties: [Property]
    /// "kept", "converted", "defaulted", "empty", "dropped", "rows-decide", "needs-mapping" or "none".
    let effect: String
    let outcome: String
    /// Does the difference change its version hash?
    let hashed: Bool
  }

  struct Property: Encodable {
    let name: String
    @OrNull var oldName: String?
    let kind: String
    let relationship: Bool
    let changes: [Change]
    let effect: String
    let outcome: String
    let hashed: Bool
  }

  struct Change: Encodable {
    let words: String
    let hashed: Bool
  }

  struct Suspicion: Encodable {
    @OrNull var entity: String?
    let old: String
    let new: String
    let message: String
  }

  init(_ difference: ModelDifference) {
    from = difference.from
    to = difference.to
    unchangedEntities = difference.unchanged
    entities = difference.entities.map { entity in
      Entity(
        name: entity.name, oldName: OrNull(wrappedValue: entity.oldName), kind: entity.kind.rawValue,
        changes: entity.changes.map { Change(words: $0.words, hashed: $0.isHashed) },
        properties: entity.properties.map(Property.init), effect: entity.effect.rawValue, outcome: entity.outcome,
        hashed: entity.isHashed)
    }
    suspicions = difference.suspicions.map {
      Suspicion(entity: OrNull(wrappedValue: $0.entity), old: $0.old, new: $0.new, message: $0.sentence)
    }
  }
}

extension ModelDiffShape.Property {
  init(_ property: PropertyDifference) {
    self.init(
      name: property.name, oldName: OrNull(wrappedValue: property.oldName), kind: property.kind.rawValue,
      relationship: property.isRelationship,
      changes: property.changes.map { ModelDiffShape.Change(words: $0.words, hashed: $0.isHashed) },
      effect: property.effect.rawValue, outcome: property.outcome, hashed: property.isHashed)
  }
}
