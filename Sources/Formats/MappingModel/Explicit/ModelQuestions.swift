// Look-ups in models by the names in mappings, whose entities may not exist.

import Expressions
import ManagedObjectModel

extension ManagedObjectModel {
  /// All entities in numbering order, each before its subentities.
  var orderedEntities: [Entity] { rootEntities.flatMap { subtree(of: $0) } }

  /// Own and inherited attributes that have a column, by name.
  func storedAttributes(of entity: Entity) -> [Attribute] { properties(of: entity).storedAttributes }

  /// Own and inherited relationships that are stored, by name.
  func storedRelationships(of entity: Entity) -> [Relationship] { properties(of: entity).storedRelationships }

  /// Returns an attribute of the named entity, own or inherited.
  package func attribute(_ name: String, of entity: String) -> Attribute? {
    self.entity(named: entity).flatMap { allAttributes(of: $0)[name] }
  }

  /// Returns a relationship of the named entity, own or inherited.
  package func relationship(_ name: String, of entity: String) -> Relationship? {
    self.entity(named: entity).flatMap { allRelationships(of: $0)[name] }
  }

  /// Returns the name of the entity that declares `property` of `entity`.
  package func declarer(of property: String, in entity: Entity) -> String {
    declaringEntity(of: property, in: entity)?.name ?? entity.name
  }

  /// Returns the name of the entity that declares `property` of the named entity; `entity` if the model does not have
  /// it.
  package func declarer(of property: String, in entity: String) -> String {
    self.entity(named: entity).map { declarer(of: property, in: $0) } ?? entity
  }

  /// Whether `entity` is the entity `ancestor`, or one below it.
  package func isEntity(_ entity: String, within ancestor: String) -> Bool {
    self.entity(named: entity).map { lineage(of: $0).contains { $0.name == ancestor } } ?? false
  }
}

extension ExpressionNode {
  /// `$source.NAME`.
  static func ofSource(_ name: String) -> ExpressionNode { .keyPath(.variable("source"), [.key(name)]) }

  /// The name in `$source.NAME`; nil for every other expression.
  var sourceProperty: String? {
    guard case .keyPath(.variable("source"), let steps) = self, steps.count == 1, case .key(let name)? = steps.first
    else { return nil }
    return name
  }
}

extension Sequence {
  /// Returns the elements sorted by the UTF-8 bytes of the text.
  package func sortedByBytes(of text: (Element) -> String) -> [Element] {
    sorted { text($0).utf8.lexicographicallyPrecedes(text($1).utf8) }
  }
}
