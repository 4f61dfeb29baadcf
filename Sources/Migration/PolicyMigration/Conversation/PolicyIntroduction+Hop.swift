// The first message to a policy: its entity mapping, and the stored parts of both models.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import MigrationPolicy
import PersistentStore
import PropertyLists
import SystemPackage

extension PolicyIntroduction {
  /// The introduction for an entity mapping of a hop.
  init(
    _ mapping: ExplicitEntityMapping, policy: String, hop: Hop, source: PolicySide, destination: PolicySide,
    store: PolicyStore? = nil
  ) {
    var expressions: [String: String?] = [:]
    for property in mapping.attributes + mapping.relationships {
      expressions.updateValue(property.value.map(Self.text), forKey: property.name)
    }
    self.init(
      policy: policy, mapping: mapping.name, mappingType: hop.hook == nil ? mapping.type.word : "stage",
      source: mapping.source,
      destination: mapping.destination, userInfo: mapping.userInfo.mapValues { PolicyValue(userInfo: $0) },
      expressions: expressions, sourceVersion: hop.hook?.stage.source ?? hop.source.name,
      destinationVersion: hop.hook?.stage.destination ?? hop.destination.name,
      sourceEntities: hop.hook == nil ? Self.entities(of: source) : [],
      destinationEntities: Self.entities(of: destination), store: store,
      stage: hop.hook.map { $0.moment == .willMigrate ? .willMigrate : .didMigrate })
  }

  private static func text(_ value: PropertyValue) -> String {
    switch value {
    case .expression(let node): node.description
    case .grouped(let mapping, let keys):
      "the object of \(mapping) for \(keys.map(\.description).joined(separator: ", "))"
    case .matching(let entity, let attribute, let key): "\(entity) whose \(attribute) is \(key.description)"
    }
  }

  private static func entities(of side: PolicySide) -> [PolicyEntity] {
    side.model.entities.compactMap { entity in
      guard let shape = side.shape(of: entity.name) else { return nil }
      var properties: [String: PolicyProperty] = [:]
      // hopd computes counts, so policies do not write them.
      for slot in shape.attributes where !slot.isComputed {
        properties[slot.name] = PolicyProperty(kind: slot.form.attribute.type.name)
      }
      for slot in shape.toOnes {
        properties[slot.name] = PolicyProperty(kind: "to-one", destination: slot.link.target)
      }
      for slot in shape.toManys {
        properties[slot.name] = PolicyProperty(
          kind: slot.link.isOrdered ? "ordered to-many" : "to-many", destination: slot.link.target)
      }
      return PolicyEntity(
        name: entity.name, root: shape.root, isAbstract: entity.isAbstract, properties: properties)
    }
  }
}

extension PolicyStore {
  /// Describes a store to policies: its path and the metadata that are plain values. Dictionaries are Core Data's own.
  init(_ store: IdentifiedStore) {
    var metadata: [String: PolicyValue] = ["NSStoreUUID": .string(store.metadata.uuid)]
    for (key, value) in store.metadata.entries where value.isPlain { metadata[key] = PolicyValue(userInfo: value) }
    self.init(path: store.location.database.string, metadata: metadata)
  }
}

extension PropertyListValue {
  /// Whether it is a value that an attribute could have, or a list of such values.
  fileprivate var isPlain: Bool {
    switch self {
    case .string, .integer, .real, .boolean, .date, .data: true
    case .array(let values): values.allSatisfy(\.isPlain)
    case .dictionary, .uid: false
    }
  }
}

extension PolicyValue {
  /// A value of an entity mapping's user info. Dictionaries become lists of pairs: policies read texts and numbers.
  init(userInfo value: PropertyListValue) {
    switch value {
    case .string(let text): self = .string(text)
    case .integer(let number): self = .integer(number)
    case .real(let number): self = .double(number)
    case .boolean(let flag): self = .boolean(flag)
    case .date(let seconds): self = .date(seconds)
    case .data(let bytes): self = .data(bytes)
    case .array(let values): self = .list(values.map { PolicyValue(userInfo: $0) })
    case .dictionary(let entries):
      self = .list(
        entries.sorted { $0.key < $1.key }.map { .list([.string($0.key), PolicyValue(userInfo: $0.value)]) })
    case .uid: self = .null
    }
  }
}
