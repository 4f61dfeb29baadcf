// Limits on the text of a model's names. Names are hashed, sorted and compared repeatedly, again for every heir, and
// for text beyond ASCII that takes a hundred times as long as counting it: without a limit a model with some megabytes
// of names would take minutes. This check comes before all others, and only counts bytes.

import Diagnostics

extension ModelLimits {
  /// Bytes of one name, type, number or key path. Ten thousand letters are still accepted.
  package static let nameBytes = 16 << 10
  /// Bytes of all names of one version: enough for 50,000 properties of forty bytes.
  package static let textBytes = 2 << 20
  /// The same with inherited properties counted for every heir, as hashing processes them.
  package static let inheritedTextBytes = 4 << 20
}

extension ModelSource {
  /// The error for too much text; nil if the amount is acceptable.
  var tooMuchText: HopdError? {
    var total = 0
    var longest = 0
    func add(_ texts: String?...) {
      // Both stay far below the size of the file.
      for case let text? in texts {
        total += text.utf8.count
        longest = max(longest, text.utf8.count)
      }
    }
    func add(_ attribute: Attribute) {
      add(
        attribute.name, attribute.renamingIdentifier, attribute.versionHashModifier, attribute.derivationExpression,
        attribute.compositeTypeName, attribute.valueTransformerName, attribute.customClassName)
    }
    for entity in entities {
      add(entity.name, entity.className, entity.parentName, entity.renamingIdentifier, entity.versionHashModifier)
      for attribute in entity.attributes { add(attribute) }
      for relationship in entity.relationships {
        add(
          relationship.name, relationship.destinationEntityName, relationship.inverseName,
          relationship.renamingIdentifier, relationship.versionHashModifier)
      }
      for fetched in entity.fetchedProperties { add(fetched.name, fetched.fetchEntityName, fetched.renamingIdentifier) }
      for index in entity.fetchIndexes {
        add(index.name)
        for element in index.elements { add(element.propertyName) }
      }
      for name in (entity.compoundIndexes + entity.uniquenessConstraints).joined() { add(name) }
    }
    for composite in composites {
      add(composite.name)
      for element in composite.elements { add(element) }
    }
    for configuration in configurations {
      add(configuration.name)
      for member in configuration.members { add(member) }
    }
    if longest > ModelLimits.nameBytes {
      return HopdError(.modelTooLarge, "a name in the model has more than \(ModelLimits.nameBytes) bytes")
    }
    if total > ModelLimits.textBytes {
      return HopdError(.modelTooLarge, "the names in the model have more than \(ModelLimits.textBytes) bytes")
    }
    return nil
  }
}

extension Attribute {
  /// Bytes that hashing the attribute reads, without a composite's elements; a derivation is also parsed.
  var hashedBytes: Int {
    name.utf8.count + (versionHashModifier?.utf8.count ?? 0) + 8 * (derivationExpression?.utf8.count ?? 0)
  }
}

extension Relationship {
  /// Bytes that hashing the relationship reads.
  var hashedBytes: Int {
    name.utf8.count + destinationEntityName.utf8.count + (inverseName?.utf8.count ?? 0)
      + (versionHashModifier?.utf8.count ?? 0)
  }
}
