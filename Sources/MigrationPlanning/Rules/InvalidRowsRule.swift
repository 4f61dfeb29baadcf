// What becomes of objects that break the rules of the version they are migrated to. Core Data fails the whole migration
// at the first save; an operator of many stores needs a choice, per entity (docs/formats/migration-semantics.md,
// "Validation").

/// What a hop with mapping models does with destination objects that its destination model calls invalid.
package enum InvalidRowsRule: String, Sendable, Hashable, CaseIterable {
  /// The migration fails, and every violation is listed.
  case fail
  /// The object is left out; references to it become nil.
  case skip
  /// The attribute takes the model's default; what no default mends fails.
  case `default`
  /// As `skip`, and the object is kept in a side file.
  case quarantine
}

/// The rule for every entity.
package struct InvalidRowsRules: Sendable, Hashable {
  /// For entities that are not named.
  package var standard: InvalidRowsRule
  /// By name of the destination entity.
  package var byEntity: [String: InvalidRowsRule]

  /// Makes rules; the default is Core Data's own.
  package init(standard: InvalidRowsRule = .fail, byEntity: [String: InvalidRowsRule] = [:]) {
    self.standard = standard
    self.byEntity = byEntity
  }

  /// Does every invalid object end the migration?
  package var isFail: Bool { standard == .fail && byEntity.values.allSatisfy { $0 == .fail } }

  /// The rule of an entity.
  package func rule(for entity: String) -> InvalidRowsRule { byEntity[entity] ?? standard }
}
