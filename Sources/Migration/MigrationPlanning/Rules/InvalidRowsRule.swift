// The rules for objects that break the rules of their destination version. Core Data fails the whole migration at the
// first save; an operator of many stores needs a choice, per entity (docs/formats/migration-semantics.md,
// "Validation").

/// How a mapped hop handles destination objects that are invalid in its destination model.
package enum InvalidRowsRule: String, Sendable, Hashable, CaseIterable {
  /// The migration fails, and every violation is listed.
  case fail
  /// The object is left out; references to it become nil.
  case skip
  /// The attribute takes the model's default; a violation that no default corrects fails.
  case `default`
  /// As `skip`, and the object is kept in a side file.
  case quarantine
}

/// The rules for all entities.
package struct InvalidRowsRules: Sendable, Hashable {
  /// For entities without a rule of their own.
  package var standard: InvalidRowsRule
  /// By name of the destination entity.
  package var byEntity: [String: InvalidRowsRule]

  /// Makes rules; the default is Core Data's own.
  package init(standard: InvalidRowsRule = .fail, byEntity: [String: InvalidRowsRule] = [:]) {
    self.standard = standard
    self.byEntity = byEntity
  }

  /// Whether every invalid object ends the migration.
  package var isFail: Bool { standard == .fail && byEntity.values.allSatisfy { $0 == .fail } }

  /// Returns the rule of an entity.
  package func rule(for entity: String) -> InvalidRowsRule { byEntity[entity] ?? standard }
}
