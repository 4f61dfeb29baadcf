// A second implementation of the migration: object by object over the dumped source, by the meaning of the mapping and
// without SQL. The engine's SQL must give the same result.

import FoundationEssentials
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

/// A JSON value that can be compared.
indirect enum JSON: Decodable, Equatable, CustomStringConvertible {
  case null
  case bool(Bool)
  case number(Double)
  case integer(Int64)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSON].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSON].self))
    }
  }

  var description: String {
    switch self {
    case .null: "null"
    case .bool(let value): String(value)
    case .number(let value): String(value)
    case .integer(let value): String(value)
    case .string(let value): "\"\(value)\""
    case .array(let value): "[\(value.map(\.description).joined(separator: ", "))]"
    case .object(let value):
      "{\(value.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", "))}"
    }
  }
}

/// One object of a dump.
struct DumpedObject: Decodable, Equatable {
  var entity: String
  var id: String
  var attributes: [String: JSON]
  var relationships: [String: JSON]
}

extension DumpedObject {
  /// Returns the value of an attribute, or of an element inside its composite.
  fileprivate func value(of attribute: Attribute) -> JSON {
    guard let composite = attribute.compositeName else { return attributes[attribute.name] ?? .null }
    guard case .object(let elements)? = attributes[composite] else { return .null }
    return elements[attribute.ownName] ?? .null
  }
}

extension [String: JSON] {
  /// Sets the value of an attribute; a composite without any value is nil.
  fileprivate mutating func set(_ value: JSON, of attribute: Attribute) {
    guard let composite = attribute.compositeName else {
      self[attribute.name] = value
      return
    }
    var elements: [String: JSON] = [:]
    if case .object(let known)? = self[composite] { elements = known }
    elements[attribute.ownName] = value
    self[composite] = .object(elements)
  }

  /// Returns a copy in which composites that contain only nils are nil.
  fileprivate var withNilComposites: [String: JSON] {
    mapValues { value in
      if case .object(let elements) = value, !elements.isEmpty, elements.values.allSatisfy({ $0 == .null }) {
        .null
      } else {
        value
      }
    }
  }
}

/// Dumps the store at `location`.
func dump(_ location: StoreLocation, model: ManagedObjectModel) throws -> [DumpedObject] {
  try StoreReader.withUnchangedStore(at: location) { reader in
    let metadata = try reader.metadata()
    let naming = try reader.joinTableNaming(for: model, frameworkVersion: metadata.frameworkVersion)
    let schema = StoreSchema(model: model, frameworkVersion: metadata.frameworkVersion, naming: naming)
    let sink = Sink()
    try StoreDump(reader: reader, schema: schema, external: ExternalDataDirectory(of: location)).write {
      sink.bytes += $0
    }
    return try sink.bytes.split(separator: UInt8(ascii: "\n")).map {
      try JSONDecoder().decode(DumpedObject.self, from: Data($0))
    }
  }
}

private final class Sink {
  var bytes: [UInt8] = []
}

/// Migrates dumped objects by an inferred mapping.
struct ObjectOracle {
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  let mapping: InferredMapping

  func migrate(_ objects: [DumpedObject]) -> [DumpedObject] {
    // The objects that continue, with their new names. Keys stay the same.
    var newID: [String: String] = [:]
    for object in objects {
      if let entity = mapping.mapping(fromSource: object.entity)?.destinationEntity {
        newID[object.id] = entity + object.id.drop { $0 != "/" }
      }
    }
    let inverted = invertedPairs(objects)
    let migrated = objects.compactMap { object -> DumpedObject? in
      guard let entityMapping = mapping.mapping(fromSource: object.entity), let id = newID[object.id],
        let name = entityMapping.destinationEntity, let entity = destination.entity(named: name)
      else { return nil }
      return DumpedObject(
        entity: name, id: id, attributes: attributes(of: object, entity, entityMapping),
        relationships: relationships(of: object, entity, entityMapping, newID: newID, inverted: inverted))
    }
    return order(derived(migrated))
  }

  /// Computes counts and the values of to-ones' targets.
  private func derived(_ objects: [DumpedObject]) -> [DumpedObject] {
    let byID = Dictionary(objects.map { ($0.id, $0) }) { first, _ in first }
    return objects.map { object in
      var result = object
      let attributes = destination.entity(named: object.entity).map(destination.allAttributes) ?? [:]
      for (name, attribute) in attributes where !attribute.isTransient {
        let keys = (attribute.derivationExpression ?? "").split(separator: ".").map(String.init)
        guard keys.count == 2 else { continue }
        let targets = ids(object.relationships[keys[0]])
        if keys[1] == "@count" {
          result.attributes[name] = .integer(Int64(targets.count))
        } else {
          result.attributes[name] = targets.first.flatMap { byID[$0]?.attributes[keys[1]] } ?? .null
        }
      }
      return result
    }
  }

  private func attributes(
    of object: DumpedObject, _ entity: Entity, _ entityMapping: EntityMapping
  ) -> [String: JSON] {
    var result: [String: JSON] = [:]
    for attribute in destination.allAttributes(of: entity).values where !attribute.isTransient {
      let from = entityMapping.attributes.first { $0.destination == attribute.name }?.source
      let before = from.flatMap { name in
        source.entity(named: object.entity).flatMap { source.allAttributes(of: $0)[name] }
      }
      var value = before.map { number(object.value(of: $0), as: attribute.type) }
      if from == nil || (value == .null && !attribute.isOptional) { value = attribute.defaultValue.map(json) ?? .null }
      result.set(value ?? .null, of: attribute)
    }
    return result.withNilComposites
  }

  /// Returns a number as another number type dumps it.
  private func number(_ value: JSON, as type: AttributeType) -> JSON {
    switch (value, type) {
    case (.bool(let flag), .integer16), (.bool(let flag), .integer32), (.bool(let flag), .integer64):
      .integer(flag ? 1 : 0)
    case (.integer(let number), .decimal): .string(String(number))
    default: value
    }
  }

  private func json(_ value: AttributeDefault) -> JSON {
    switch value {
    case .integer(let number): .integer(number)
    case .boolean(let flag): .bool(flag)
    case .double(let number): number == number.rounded() ? .integer(Int64(number)) : .number(number)
    case .string(let text): .string(text)
    case .date(let seconds): .string(date(seconds))
    case .decimal(let text): .string(text)
    case .binary(let bytes): .string(Data(bytes).base64EncodedString())
    case .uuid, .archived: .null
    }
  }

  private func date(_ seconds: Double) -> String {
    // Whole seconds within the year around 2001-01-01: the random defaults are not larger.
    let date = Date(timeIntervalSinceReferenceDate: seconds)
    return date.formatted(.iso8601).dropLast() + ".0Z"
  }

  /// Returns the owners of each target through every relationship that only its inverse matches: "relationship target"
  /// → owners.
  private func invertedPairs(_ objects: [DumpedObject]) -> [String: [String]] {
    let names = Set(
      mapping.entityMappings.flatMap(\.relationships).compactMap {
        $0.source?.isInverted == true ? $0.source?.relationship : nil
      })
    var result: [String: [String]] = [:]
    for object in objects {
      for name in names {
        for target in ids(object.relationships[name]) { result["\(name) \(target)", default: []].append(object.id) }
      }
    }
    return result
  }

  private func ids(_ value: JSON?) -> [String] {
    switch value {
    case .string(let id)?: [id]
    case .array(let ids)?: ids.compactMap { if case .string(let id) = $0 { id } else { nil } }
    default: []
    }
  }

  private func relationships(
    of object: DumpedObject, _ entity: Entity, _ entityMapping: EntityMapping, newID: [String: String],
    inverted: [String: [String]]
  ) -> [String: JSON] {
    var result: [String: JSON] = [:]
    for relationship in destination.allRelationships(of: entity).values where !relationship.isTransient {
      let from = entityMapping.relationships.first { $0.destination == relationship.name }?.source
      var targets: [String] = []
      var wasOrdered = false
      if let from, !from.isInverted, let before = source.entity(named: from.entity) {
        wasOrdered = source.allRelationships(of: before)[from.relationship]?.isOrdered ?? false
        targets = ids(object.relationships[from.relationship])
      } else if let from {
        targets = inverted["\(from.relationship) \(object.id)"] ?? []
        // The inverse's own inverse kept the order of these targets, under its old name.
        if let before = source.entity(named: from.entity),
          let old = source.allRelationships(of: before)[from.relationship].flatMap({ source.inverse(of: $0) })
        {
          wasOrdered = old.relationship.isOrdered
          if wasOrdered { targets = ids(object.relationships[old.relationship.name]) }
        }
      }
      // A relationship that moved down drops targets that no longer fit it.
      let possible = Set(
        destination.entity(named: relationship.destinationEntityName).map {
          destination.subtree(of: $0).map(\.name)
        } ?? [])
      let surviving = targets.compactMap { newID[$0] }.filter { possible.contains(String($0.prefix { $0 != "/" })) }
      if relationship.isToMany {
        // Unordered ones are dumped by key; ones that become ordered are numbered by key.
        let sorted = relationship.isOrdered && wasOrdered ? surviving : surviving.sorted { key($0) < key($1) }
        result[relationship.name] = .array(sorted.map(JSON.string))
      } else {
        result[relationship.name] = surviving.first.map(JSON.string) ?? .null
      }
    }
    return result
  }

  private func key(_ id: String) -> Int64 { Int64(id.split(separator: "/").last?.dropFirst() ?? "") ?? 0 }

  /// Dumps are sorted by entity number, then by key.
  private func order(_ objects: [DumpedObject]) -> [DumpedObject] {
    let numbers = StoreSchema(model: destination, frameworkVersion: 1344).numbers
    return objects.sorted {
      let (left, right) = (numbers[$0.entity] ?? 0, numbers[$1.entity] ?? 0)
      return left == right ? key($0.id) < key($1.id) : left < right
    }
  }
}
