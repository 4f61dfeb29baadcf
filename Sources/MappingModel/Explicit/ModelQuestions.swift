// Questions about models that are asked by the names in mappings, where an entity may not be there.

import Expressions
import ManagedObjectModel

extension ManagedObjectModel {
  /// All entities in numbering order, each before its subentities.
  var orderedEntities: [Entity] { rootEntities.flatMap { subtree(of: $0) } }

  /// Own and inherited attributes that have a column, by name.
  func storedAttributes(of entity: Entity) -> [Attribute] { properties(of: entity).storedAttributes }

  /// Own and inherited relationships that are stored, by name.
  func storedRelationships(of entity: Entity) -> [Relationship] { properties(of: entity).storedRelationships }

  /// An attribute of the entity of that name, own or inherited.
  package func attribute(_ name: String, of entity: String) -> Attribute? {
    self.entity(named: entity).flatMap { allAttributes(of: $0)[name] }
  }

  /// A relationship of the entity of that name, own or inherited.
  package func relationship(_ name: String, of entity: String) -> Relationship? {
    self.entity(named: entity).flatMap { allRelationships(of: $0)[name] }
  }

  /// Name of the entity that declares what `entity` has under that name.
  package func declarer(of property: String, in entity: Entity) -> String {
    declaringEntity(of: property, in: entity)?.name ?? entity.name
  }

  /// The same for the entity of that name; the name itself where there is no such entity.
  package func declarer(of property: String, in entity: String) -> String {
    self.entity(named: entity).map { declarer(of: property, in: $0) } ?? entity
  }

  /// Is `entity` the entity `ancestor`, or one below it?
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
  /// The elements in the order of the bytes of a text of theirs.
  package func sortedByBytes(of text: (Element) -> String) -> [Element] {
    sorted { text($0).utf8.lexicographicallyPrecedes(text($1).utf8) }
  }
}
