// A model as written, before validation: entities may be duplicated and names may not exist. Readers fill it,
// ModelValidation checks it, and only then does it become a ManagedObjectModel.

import Diagnostics

/// One version of a model, unchecked, with the lines of its parts if the format has lines.
package struct ModelSource: Sendable {
  /// The version's name.
  package var name: String
  /// userDefinedModelVersionIdentifier.
  package var versionIdentifiers: [String] = [""]
  /// Entities in the order of the file, duplicates included.
  package var entities: [Entity] = []
  /// Configurations in the order of the file.
  package var configurations: [Configuration] = []
  /// Composite types in the order of the file.
  package var composites: [Composite] = []
  /// Line of each entity, parallel to `entities`; empty if the format has none.
  package var entityLines: [Int] = []
  /// Lines of each entity's properties by name, in the order of the file, parallel to `entities`.
  package var propertyLines: [[String: [Int]]] = []
  /// Faults that the reader itself found.
  package var errors: [HopdError] = []
  /// Warnings.
  package var warnings: [ModelWarning] = []

  /// A named configuration.
  package struct Configuration: Sendable, Hashable {
    /// Name.
    package var name: String
    /// Entity names.
    package var members: [String] = []
    /// Line, if known.
    package var line: Int?

    /// Creates a configuration.
    package init(name: String, members: [String] = [], line: Int? = nil) {
      self.name = name
      self.members = members
      self.line = line
    }
  }

  /// A composite type.
  package struct Composite: Sendable, Hashable {
    /// Name.
    package var name: String
    /// Elements in the order of the file.
    package var elements: [Attribute] = []
    /// Line, if known.
    package var line: Int?
  }

  /// Creates an empty source.
  package init(name: String, entities: [Entity] = []) {
    self.name = name
    self.entities = entities
  }

  /// Line of an entity.
  func line(ofEntity index: Int) -> Int? { index < entityLines.count ? entityLines[index] : nil }

  /// Line of the n-th property of that name.
  func line(ofProperty name: String, occurrence: Int = 0, entity index: Int) -> Int? {
    guard index < propertyLines.count, let lines = propertyLines[index][name], occurrence < lines.count else {
      return line(ofEntity: index)
    }
    return lines[occurrence]
  }

  /// The model; only meaningful after a validation without faults.
  package var model: ManagedObjectModel {
    ManagedObjectModel(
      name: name, versionIdentifiers: versionIdentifiers, entities: entities.map { $0.withSortedProperties() },
      configurations: configurations.reduce(into: [String: Set<String>]()) {
        $0[$1.name, default: []].formUnion($1.members)
      }
      .mapValues { $0.sorted() },
      composites: Dictionary(composites.map { ($0.name, $0.elements) }, uniquingKeysWith: { first, _ in first }))
  }
}
