// Some rules of the version hash are known, but were never compared with a hash made by Apple's software
// (docs/formats/version-hashes.md, "Unproven rules"). If a model uses one, plans report it: the app would refuse a
// store with a wrong hash.

/// A place in a model whose hash depends on an unproven rule.
package struct HashUncertainty: Sendable, Hashable, CustomStringConvertible {
  /// The unproven rules, numbered as in docs/formats/version-hashes.md, "Unproven rules".
  package enum Corner: Int, Sendable, Hashable, CaseIterable {
    /// A composite attribute with composites inside.
    case composite = 4
    /// A derivation expression other than a count, `canonical:` or `now()`.
    case derivation = 5
    /// An attribute of type Undefined or Object ID.
    case untyped = 7
    /// A relationship whose inverse names another inverse.
    case bentInverse = 13
  }

  /// The unproven rule.
  package let corner: Corner
  /// Entity that uses it.
  package let entity: String
  /// Property that uses it.
  package let property: String

  package var description: String {
    let rule =
      switch corner {
      case .composite: "is a composite attribute with composites inside"
      case .derivation: "is derived by an expression other than a count, a path of two keys, canonical: or now()"
      case .untyped: "is a stored attribute without a plain type"
      case .bentInverse: "names an inverse that names another inverse"
      }
    return "\(entity).\(property) \(rule); how this enters the version hash has not been compared with Apple's software"
  }
}

extension ManagedObjectModel {
  /// Every place whose hash depends on an unproven rule, in order of entity and property; empty for most models, and
  /// for entities whose hash the app's compiled model states.
  ///
  /// Subentities of such an entity depend on its hash too and are not listed again.
  package var uncertainHashes: [HashUncertainty] {
    entities.filter { declaredVersionHashes[$0.name] == nil }.flatMap { entity in
      var found: [HashUncertainty] = []
      func note(_ corner: HashUncertainty.Corner?, _ property: String) {
        guard let corner else { return }
        found.append(HashUncertainty(corner: corner, entity: entity.name, property: property))
      }
      for attribute in entity.attributes where !attribute.isTransient { note(corner(of: attribute), attribute.name) }
      for relationship in entity.relationships where !relationship.isTransient {
        if relationship.inverseName != nil, inverse(of: relationship) == nil {
          note(.bentInverse, relationship.name)
        }
      }
      return found
    }
  }

  private func corner(of attribute: Attribute) -> HashUncertainty.Corner? {
    if let expression = attribute.derivationExpression {
      return DerivationText(expression).isProven ? nil : .derivation
    }
    return switch attribute.type {
    case .composite: .composite
    case .undefined, .objectID: .untyped
    default: nil
    }
  }

  /// Names of the entities whose hash depends on an unproven rule, their own or an ancestor's.
  var entitiesOfUncertainHash: Set<String> {
    let origins = Set(uncertainHashes.map(\.entity))
    return Set(
      entities.filter { entity in
        declaredVersionHashes[entity.name] == nil && lineage(of: entity).contains { origins.contains($0.name) }
      }
      .map(\.name))
  }
}
