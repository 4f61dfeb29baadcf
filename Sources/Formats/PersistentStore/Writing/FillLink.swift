// Chooses the target of a row's to-one in a filled store. Both ends of a one-to-one must agree although they are
// written separately, so those pairs are computed; all others are random.

import ManagedObjectModel

/// The rule that gives the rows of an entity their target in one relationship.
struct Link {
  private enum Rule {
    /// Any object; `isSpread` takes them in turn, for an inverse with a limit or one that must not stay empty.
    case any(isSpread: Bool)
    /// Object k has object k: one-to-one between two entities.
    case same
    /// Object k has object k + 1 (or k - 1): one-to-one within an entity; a ring if every object needs a target.
    case neighbour(Int64, isRing: Bool)
    /// 0 and 1, 2 and 3 …: a one-to-one that is its own inverse.
    case couple
  }

  private let rule: Rule
  private let isOptional: Bool
  private let sources: FillPlan.Population
  private let targets: FillPlan.Population

  /// Finds the rule of a to-one; nil if there are no targets.
  init?(relationship name: String, of entity: String, schema: StoreSchema, plan: FillPlan) {
    guard let relationship = schema.model.ownRelationship(name, of: entity) else { return nil }
    sources = plan.population(of: entity)
    targets = plan.population(of: relationship.destinationEntityName)
    guard targets.count > 0 else { return nil }
    isOptional = relationship.isOptional
    guard let inverse = schema.model.inverse(of: relationship) else {
      rule = .any(isSpread: false)
      return
    }
    if inverse.relationship.isToMany {
      rule = .any(isSpread: Link.isBounded(inverse.relationship))
    } else if inverse.entity.name != relationship.destinationEntityName
      || inverse.relationship.destinationEntityName != entity
    {
      // The ends reach different entities, so no rule gives both of them the same pairs.
      return nil
    } else if inverse.entity.name != entity || relationship.destinationEntityName != entity {
      rule = .same
    } else if inverse.relationship.name == name {
      rule = .couple
    } else {
      let isFirst = Entity.caseInsensitiveOrder(name, inverse.relationship.name)
      rule = .neighbour(isFirst ? 1 : -1, isRing: !relationship.isOptional || !inverse.relationship.isOptional)
    }
  }

  /// Whether an owner of this to-many must have some objects, or has a limit.
  static func isBounded(_ relationship: Relationship) -> Bool {
    !relationship.isOptional || relationship.minCount > 0 || (1...1000).contains(relationship.maxCount)
  }

  /// Creates the rule of the owner column of a to-many without inverse; nil if there are no owners.
  init?(ownersOf entity: String, plan: FillPlan) {
    targets = plan.population(of: entity)
    guard targets.count > 0 else { return nil }
    sources = targets
    isOptional = true
    rule = .any(isSpread: false)
  }

  /// Returns the target of a row, by the position of its entity in the table and its number among that entity's rows.
  func target(
    position: Int, ordinal: Int64, kind: SampleRows = .everyKind, random: inout SplitMix64
  ) -> (key: Int64, number: Int64)? {
    switch rule {
    case .any where kind == .ordinary:
      guard let index = sources.index(position: position, ordinal: ordinal) else { return nil }
      // After the last target, only rows that need one share it.
      return index < targets.count || !isOptional ? targets.object(index % targets.count) : nil
    case .any(let isSpread):
      if isOptional, random.below(10) == 0 { return nil }
      guard isSpread, let index = sources.index(position: position, ordinal: ordinal) else {
        return targets.object(random.below(targets.count))
      }
      return targets.object(index % targets.count)
    case .same: return sources.index(position: position, ordinal: ordinal).flatMap { targets.object($0) }
    case .neighbour(let step, let isRing):
      guard let index = sources.index(position: position, ordinal: ordinal) else { return nil }
      let other = index + step
      return targets.object(isRing ? (other + targets.count) % targets.count : other)
    case .couple: return sources.index(position: position, ordinal: ordinal).flatMap { targets.object($0 ^ 1) }
    }
  }
}
