// The parts of a shipped version that must not change: the hashes of its entities, by which stores name it, the layout
// of their tables, and the order of the versions. Each entity is one line of text, so that a review shows which one
// changed.

import ManagedObjectModel
import MappingModel
import PersistentStore

/// One entity of a version that has shipped.
package struct ShippedEntity: Sendable, Hashable {
  package let name: String
  /// Its version hash in hexadecimal digits.
  package let hash: String
  /// The first digits of the digest of its table and indexes.
  package let layout: String
  /// A short description: parent, constraints, and its own properties, each with the parts that are in the hash.
  package let parts: [String]
}

/// One version that has shipped.
package struct ShippedVersion: Sendable, Hashable {
  package let name: String
  /// By name.
  package let entities: [ShippedEntity]
}

/// The versions of a model that have shipped, oldest first.
package struct ShippedModel: Sendable, Hashable {
  package let name: String
  package let versions: [ShippedVersion]
  /// Why hops to a version may drop data: the reason, by the version and the part, as "Book.shelfMark". People
  /// write them.
  package var allowedDrops: [String: [String: String]] = [:]

  /// Creates a record of all versions of a model.
  package init(_ bundle: ModelBundle, frameworkVersion: Int64) {
    name = bundle.name
    versions = bundle.versions.map { ShippedVersion($0, frameworkVersion: frameworkVersion) }
  }

  /// A model of these versions.
  package init(name: String, versions: [ShippedVersion], allowedDrops: [String: [String: String]] = [:]) {
    self.name = name
    self.versions = versions
    self.allowedDrops = allowedDrops
  }

  /// Returns the version of that name.
  package func version(named name: String) -> ShippedVersion? { versions.first { $0.name == name } }

  /// Maps the names of renamed versions from an earlier state to their names here: the earlier name no longer exists,
  /// and a new version has exactly the same hashes.
  package func newNames(of earlier: ShippedModel) -> [String: String] {
    let known = Set(earlier.versions.map(\.name))
    var left = versions.filter { !known.contains($0.name) }
    var names: [String: String] = [:]
    for old in earlier.versions where version(named: old.name) == nil && !old.entities.isEmpty {
      guard let index = left.firstIndex(where: { $0.hashes == old.hashes }) else { continue }
      names[old.name] = left.remove(at: index).name
    }
    return names
  }
}

extension ShippedVersion {
  /// Returns the entity of that name.
  package func entity(named name: String) -> ShippedEntity? { entities.first { $0.name == name } }

  /// Hashes by entity.
  package var hashes: [String: String] {
    Dictionary(entities.map { ($0.name, $0.hash) }, uniquingKeysWith: { first, _ in first })
  }

  init(_ model: ManagedObjectModel, frameworkVersion: Int64) {
    let schema = StoreSchema(model: model, frameworkVersion: frameworkVersion)
    let hashes = model.versionHashes
    self.init(
      name: model.name,
      entities: model.entities.map { entity in
        ShippedEntity(
          name: entity.name, hash: hashes[entity.name]?.description ?? "",
          layout: ShippedEntity.layout(of: entity, in: schema), parts: ShippedEntity.parts(of: entity))
      })
  }
}

extension ShippedEntity {
  // Names of parts that are not properties.
  static let parent = "(parent)"
  static let abstract = "(abstract)"
  static let modifier = "(modifier)"
  static let unique = "(unique)"
  static let identifier = "(renaming identifier)"
  /// Precedes the renaming identifier of a property, which is the last word of its part.
  static let identifierWord = "renaming identifier "

  /// The parts of the line by name; several constraints share one name.
  var partsByName: [String: [String]] {
    parts.reduce(into: [:]) { parts, part in
      guard let colon = part.ranges(of: ": ").first else {
        parts[part, default: []].append("")
        return
      }
      parts[String(part[..<colon.lowerBound]), default: []].append(String(part[colon.upperBound...]))
    }
  }

  /// Renaming identifiers that differ from the name, by property; the entity's own has that part's name as its key.
  var identifiers: [String: String] {
    partsByName.compactMapValues { $0.first }.reduce(into: [:]) { found, part in
      if part.key == Self.identifier {
        found[part.key] = part.value
      } else if let word = part.value.ranges(of: ", " + Self.identifierWord).last {
        found[part.key] = String(part.value[word.upperBound...])
      }
    }
  }

  /// Returns the digest of the statements for the entity's own part of the layout: its columns and indexes.
  fileprivate static func layout(of entity: Entity, in schema: StoreSchema) -> String {
    guard let table = schema.table(of: entity.name) else { return "" }
    let own = table.columns.filter { column in
      switch column.role {
      case .attribute(let owner, _), .toOne(let owner, _): owner == entity.name
      // These follow from other entities, whose hashes show a change.
      case .discriminator, .orderKey, .owner, .ownerOrder, .primaryKey, .entityNumber, .saveCount: false
      }
    }
    var lines = ["\(table.name) \(table.rootEntity)"] + own.map { "\($0.name) \($0.declaredType)" }
    lines += entity.fetchIndexes.map { index in
      let elements = index.elements.map { element in
        "\(element.propertyName ?? element.expression ?? "") \(element.kind) \(element.isAscending)"
      }
      return "index \(index.name) \(elements.joined(separator: ", ")) \(index.partialPredicate ?? "")"
    }.sorted()
    lines += entity.compoundIndexes.map { "compound \($0.joined(separator: ", "))" }.sorted()
    lines += entity.attributes.filter(\.isIndexed).map { "indexed \($0.name)" }.sorted()
    return String(ContentDigest.sha256(lines.joined(separator: "\n").utf8).prefix(16))
  }

  /// Returns the parts of an entity, sorted, each with its name before the colon.
  fileprivate static func parts(of entity: Entity) -> [String] {
    var parts: [String] = []
    if let parent = entity.parentName { parts.append("\(Self.parent): \(parent)") }
    if entity.isAbstract { parts.append(Self.abstract) }
    if let modifier = entity.versionHashModifier { parts.append("\(Self.modifier): \(modifier)") }
    for constraint in entity.uniquenessConstraints {
      parts.append("\(Self.unique): \(constraint.joined(separator: " + "))")
    }
    if entity.renamingIdentifier != entity.name { parts.append("\(Self.identifier): \(entity.renamingIdentifier)") }
    parts += (entity.attributes + entity.composites).map { "\($0.name): \(words(of: $0))" }
    parts += entity.relationships.map { "\($0.name): \(words(of: $0))" }
    return parts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  private static func words(of attribute: Attribute) -> String {
    var words = [attribute.type.name]
    if attribute.isOptional { words.append("optional") }
    if attribute.isTransient { words.append("transient") }
    if attribute.allowsExternalStorage { words.append("external") }
    if attribute.preservesAfterDeletion { words.append("preserved") }
    if let derivation = attribute.derivationExpression { words.append("derived \(derivation)") }
    if let modifier = attribute.versionHashModifier { words.append("modifier \(modifier)") }
    if let composite = attribute.compositeTypeName { words.append("composite \(composite)") }
    if attribute.renamingIdentifier != attribute.name { words.append(identifierWord + attribute.renamingIdentifier) }
    return words.joined(separator: ", ")
  }

  private static func words(of relationship: Relationship) -> String {
    var words = [relationship.words]
    if let inverse = relationship.inverseName { words.append("inverse \(inverse)") }
    if relationship.isTransient { words.append("transient") }
    if relationship.minCount != 0 { words.append("min \(relationship.minCount)") }
    if relationship.isToMany ? relationship.maxCount != 0 : relationship.maxCount != 1 {
      words.append("max \(relationship.maxCount)")
    }
    if let modifier = relationship.versionHashModifier { words.append("modifier \(modifier)") }
    if relationship.renamingIdentifier != relationship.name {
      words.append(identifierWord + relationship.renamingIdentifier)
    }
    return words.joined(separator: ", ")
  }
}
