// The place of an expression decides what it may use (docs/formats/expressions.md, "Where an expression stands"): the
// entities of SELF and `$source`, the variables, whether bare key paths are valid, and whether it may call a policy.

import ManagedObjectModel

/// The context of an expression, in which it is checked, evaluated and compiled.
package struct ExpressionScope: Sendable {
  /// The purpose of the expression.
  package enum Place: Sendable, Hashable {
    /// A predicate on each source object: bare key paths are its properties, no variables.
    case sourceFilter
    /// The value of an attribute.
    case attribute
    /// The objects of a relationship.
    case relationship
    /// A value that identifies objects or distinguishes them.
    case key
  }

  /// The hop's source model.
  package let model: ManagedObjectModel
  /// The source entity of the entity mapping; nil for a mapping without source, which has no `$source`.
  package let sourceEntity: String?
  /// The purpose of the expression.
  package let place: Place
  /// Further variables of one object each, by name without `$`, with the entity: `each` of an expanding mapping.
  package let variables: [String: String]
  /// The hop's entity mappings, which lookups may name; nil if lookups are checked later.
  package let entityMappings: Set<String>?
  /// Whether the mapping names a policy, so that its methods may be called.
  package let hasPolicy: Bool

  /// Creates a scope.
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
