// Where an expression stands decides what it may use (docs/formats/expressions.md, "Where an expression stands"): which
// entity SELF and `$source` are, which variables there are, whether bare key paths mean something, and whether a policy
// is there to be called.

import ManagedObjectModel

/// The surroundings of an expression, against which it is checked, evaluated and compiled.
package struct ExpressionScope: Sendable {
  /// What the expression is for.
  package enum Place: Sendable, Hashable {
    /// A predicate on each source object: bare key paths are its properties, no variables.
    case sourceFilter
    /// The value of an attribute.
    case attribute
    /// The objects of a relationship.
    case relationship
    /// A value by which objects are found or told apart.
    case key
  }

  /// The hop's source model.
  package let model: ManagedObjectModel
  /// The source entity of the entity mapping; nil for a mapping without source, which has no `$source`.
  package let sourceEntity: String?
  /// What it is for.
  package let place: Place
  /// Further variables that hold one object each, by name without `$`, with the entity: `each` of an expanding mapping.
  package let variables: [String: String]
  /// Names of the hop's entity mappings, which lookups may name; nil where that is checked later.
  package let entityMappings: Set<String>?
  /// Does the mapping name a policy, so that its methods may be called?
  package let hasPolicy: Bool

  /// Makes a scope.
  package init(
    model: ManagedObjectModel, sourceEntity: String?, place: Place, variables: [String: String] = [:],
    entityMappings: Set<String>? = nil, hasPolicy: Bool = false
  ) {
    self.model = model
    self.sourceEntity = sourceEntity
    self.place = place
    self.variables = variables
    self.entityMappings = entityMappings
    self.hasPolicy = hasPolicy
  }
}
