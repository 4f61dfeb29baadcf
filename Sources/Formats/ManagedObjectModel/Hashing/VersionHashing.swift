// Computes the hashes by which Core Data identifies the versions of entities, and the two store-level values built on
// them (docs/formats/version-hashes.md). Nothing else identifies the version of a store, so every rule here cites its
// section. The rules give the right hash for 694 different pairs of entity and hash that Apple's software made.

import PropertyLists

extension ManagedObjectModel {
  private struct HashesKey: Hashable {}
  private enum TextKey: Hashable { case digest, checksum }

  /// The hash of every entity, by name.
  package var versionHashes: [String: VersionHash] {
    cache.value(for: HashesKey()) {
      var hashing = VersionHashing(model: self)
      return entities.reduce(into: [:]) { $0[$1.name] = hashing.hash(of: $1) }
    }
  }

  /// Returns the hashes of the entities of a named configuration, which are all hashes of a store made for it; nil for
  /// an unknown name.
  package func versionHashes(ofConfiguration name: String) -> [String: VersionHash]? {
    guard let members = configurations[name] else { return nil }
    let names = Set(members)
    return versionHashes.filter { names.contains($0.key) }
  }

  /// NSStoreModelVersionHashesDigest of a store with all entities.
  package var versionHashesDigest: String {
    cache.value(for: TextKey.digest) { VersionHash.digest(of: versionHashes) }
  }

  /// NSStoreModelVersionChecksumKey of a store with all entities, `NSManagedObjectModel.versionChecksum`.
  package var versionChecksum: String {
    cache.value(for: TextKey.checksum) { VersionHash.checksum(of: versionHashes) }
  }
}

extension VersionHash {
  /// SHA-512 over names and hashes in case-sensitive name order, base64 (docs/formats/version-hashes.md, "Digest and
  /// checksum").
  package static func digest(of hashes: [String: VersionHash]) -> String {
    var hasher = MessageDigest(.sha512)
    for (name, hash) in inOrder(hashes) {
      hasher.add(name)
      hasher.add(hash.bytes)
    }
    return Base64.encode(hasher.finish())
  }

  /// SHA-256 over the hashes alone in case-sensitive name order, base64 (docs/formats/version-hashes.md, "Digest and
  /// checksum").
  package static func checksum(of hashes: [String: VersionHash]) -> String {
    var hasher = MessageDigest(.sha256)
    for (_, hash) in inOrder(hashes) { hasher.add(hash.bytes) }
    return Base64.encode(hasher.finish())
  }

  private static func inOrder(_ hashes: [String: VersionHash]) -> [(String, VersionHash)] {
    hashes.map { ($0.key, $0.value) }.sorted { $0.0.utf16.lexicographicallyPrecedes($1.0.utf16) }
  }
}

/// One pass over a model; an entity's hash is computed once, because the hashes of its subentities include it.
struct VersionHashing {
  private let model: ManagedObjectModel
  private var known: [String: VersionHash] = [:]

  init(model: ManagedObjectModel) { self.model = model }

  /// The entity hash E (docs/formats/version-hashes.md, "Entity hash").
  mutating func hash(of entity: Entity) -> VersionHash? {
    // Root first, so that no recursion is needed; `lineage` is bounded even if parents form a cycle.
    var parent: VersionHash?
    var properties: [String: [UInt8]] = [:]
    for ancestor in model.lineage(of: entity) {
      for attribute in ancestor.attributes + ancestor.composites where !attribute.isElement {
        properties[attribute.name] = attribute.isTransient ? nil : digest(of: attribute)
      }
      for relationship in ancestor.relationships {
        properties[relationship.name] = relationship.isTransient ? nil : digest(of: relationship, in: ancestor)
      }
      // Fetched properties are not part of the hash; one that hides an inherited property removes it.
      for fetched in ancestor.fetchedProperties { properties[fetched.name] = nil }
      // The hash that the app states has precedence, and the hashes of subentities include it.
      parent =
        known[ancestor.name] ?? model.declaredVersionHashes[ancestor.name]
        ?? combine(ancestor, parent: parent, properties: properties)
      known[ancestor.name] = parent
    }
    return known[entity.name]
  }

  private func combine(_ entity: Entity, parent: VersionHash?, properties: [String: [UInt8]]) -> VersionHash? {
    var hasher = MessageDigest(.sha256)
    hasher.add(entity.name)
    hasher.add([entity.isAbstract ? 1 : 0])
    if let parent { hasher.add(parent.bytes) }
    for (_, digest) in properties.sorted(by: { $0.key.utf16.lexicographicallyPrecedes($1.key.utf16) }) {
      hasher.add(digest)
    }
    if let modifier = entity.versionHashModifier { hasher.add(modifier) }
    // The order inside a constraint is as declared, the constraints are sorted; parents' constraints do not count.
    let constraints = entity.uniquenessConstraints.map { $0.joined(separator: ".") }
    for constraint in constraints.sorted(by: { $0.utf16.lexicographicallyPrecedes($1.utf16) }) {
      hasher.add(constraint)
    }
    return VersionHash(bytes: hasher.finish())
  }

  /// The property digest P (docs/formats/version-hashes.md, "Property digest"). It is never called for transient
  /// properties, so the flags are 0 or 1.
  private static func property(name: String, isOptional: Bool, modifier: String?) -> [UInt8] {
    var hasher = MessageDigest(.sha256)
    hasher.add(name)
    hasher.add([isOptional ? 1 : 0, 0])
    if let modifier { hasher.add(modifier) }
    return hasher.finish()
  }

  /// The attribute digest A (docs/formats/version-hashes.md, "Attribute digest").
  private func digest(of attribute: Attribute) -> [UInt8] {
    var hasher = MessageDigest(.sha256)
    if let expression = attribute.derivationExpression {
      // Only the text, without name and type (docs/formats/version-hashes.md, "Derived attributes").
      hasher.add(DerivationText(expression).text)
    } else if attribute.type == .composite {
      // Only the elements, nested ones opened, sorted by name (docs/formats/version-hashes.md, "Composite attributes").
      let elements = elements(of: attribute, depth: 0)
      for element in elements.sorted(by: { $0.name.utf16.lexicographicallyPrecedes($1.name.utf16) }) {
        hasher.add(digest(of: element))
      }
    } else {
      hasher.add(
        Self.property(name: attribute.name, isOptional: attribute.isOptional, modifier: attribute.versionHashModifier))
      hasher.add(littleEndian: UInt32(truncatingIfNeeded: attribute.type.rawValue))
      if attribute.allowsExternalStorage { hasher.add([1]) }
      if attribute.preservesAfterDeletion { hasher.add([1]) }
    }
    return hasher.finish()
  }

  /// The elements of a composite attribute with nested composites opened; validation bounds the nesting.
  private func elements(of attribute: Attribute, depth: Int) -> [Attribute] {
    guard depth <= ModelValidation.maximumCompositeDepth else { return [] }
    let elements =
      attribute.elements.isEmpty
      ? attribute.compositeTypeName.flatMap { model.composites[$0] } ?? [] : attribute.elements
    return elements.filter { !$0.isTransient }.flatMap {
      $0.type == .composite ? self.elements(of: $0, depth: depth + 1) : [$0]
    }
  }

  /// The relationship digest R (docs/formats/version-hashes.md, "Relationship digest").
  private func digest(of relationship: Relationship, in entity: Entity) -> [UInt8] {
    var hasher = MessageDigest(.sha256)
    hasher.add(
      Self.property(
        name: relationship.name, isOptional: relationship.isOptional, modifier: relationship.versionHashModifier))
    hasher.add(relationship.destinationEntityName)
    if let inverse = relationship.inverseName, !relationship.isOwnInverse(in: entity) { hasher.add(inverse) }
    // 64-bit counts are truncated to 32 bits; the maximum comes before the minimum.
    hasher.add(littleEndian: UInt32(truncatingIfNeeded: relationship.maxCount))
    hasher.add(littleEndian: UInt32(truncatingIfNeeded: relationship.minCount))
    if relationship.isOrdered { hasher.add([1, 0]) }
    return hasher.finish()
  }
}

extension Relationship {
  /// Whether the relationship, declared by `entity`, is its own inverse.
  func isOwnInverse(in entity: Entity) -> Bool { destinationEntityName == entity.name && inverseName == name }
}

extension MessageDigest {
  fileprivate mutating func add(_ text: String) { add(text.utf8) }
  fileprivate mutating func add(littleEndian number: UInt32) {
    withUnsafeBytes(of: number.littleEndian) { add($0) }
  }
}
