// Reads a `.cdm`, the keyed archive that Xcode's compiler makes of a mapping model: order, names, types and expressions
// unchanged, with the version hashes of the entities it was compiled for (docs/formats/mapping-models.md, "Compiled
// files").

import Diagnostics
import Expressions
import ManagedObjectModel
import PropertyLists

/// The content of a `.cdm`.
struct CompiledMapping: Sendable {
  /// An entity on one side of an entity mapping, with the hash it was compiled for.
  struct End: Sendable, Hashable {
    let entity: String
    let hash: VersionHash
  }

  var entityMappings: [ExplicitEntityMapping] = []
  /// The two entities of each entity mapping, in the same order.
  var ends: [(source: End?, destination: End?)] = []
  var warnings: [HopdError] = []
  /// Parts that cannot be followed.
  var problems: [MappingProblem] = []

  var sources: [End] { ends.compactMap(\.source) }
  var destinations: [End] { ends.compactMap(\.destination) }
}

/// Builds a mapping model from its archive.
struct CompiledMappingReader {
  private let place: Place
  private var mapping = CompiledMapping()
  private var propertyCount = 0

  /// Reads the mapping model in `bytes`; throws if they are not one. Parts that cannot be followed become `problems`.
  static func read(_ bytes: [UInt8], at place: Place) throws(HopdError) -> CompiledMapping {
    let root = try KeyedArchive.decode(bytes, at: place).root()
    guard root.isKind(of: "NSMappingModel") else { throw root.unknownClass(for: "a mapping model") }
    var reader = CompiledMappingReader(place: place)
    let entities = try root.elements("NSEntityMappings")
    guard entities.count <= MappingLimits.entityMappings else {
      throw HopdError(
        .mappingTooLarge, "the mapping model has more than \(MappingLimits.entityMappings) entity mappings", at: place)
    }
    for value in entities {
      guard let object = value.object, object.isKind(of: "NSEntityMapping") else {
        throw root.damaged("one of its entity mappings is \(value.kind)")
      }
      try reader.readEntity(object)
    }
    return reader.mapping
  }

  private mutating func readEntity(_ object: ArchivedObject) throws(HopdError) {
    let source = try name("NSSourceEntityName", object)
    let destination = try name("NSDestinationEntityName", object)
    let here = place.filled(from: Place(entity: destination ?? source))
    guard let title = try name("NSMappingName", object) ?? destination ?? source else {
      warn("an entity mapping has neither name nor source nor destination; it is ignored", here)
      return
    }
    guard source != nil || destination != nil else {
      warn("the entity mapping “\(title)” has neither source nor destination; it is ignored", here)
      return
    }
    do throws(HopdError) {
      let ends = (
        source: try source.map { name throws(HopdError) in try end(name, "NSSourceEntityVersionHash", object) },
        destination: try destination.map { name throws(HopdError) in
          try end(name, "NSDestinationEntityVersionHash", object)
        }
      )
      let number = try object.integer("NSMappingType") ?? 0
      guard let type = Int(exactly: number).flatMap(EntityMappingType.init(rawValue:)) else {
        throw HopdError(.invalidMapping, "the entity mapping “\(title)” has the unknown type \(number)")
      }
      let info = try userInfo(object, title, here)
      mapping.entityMappings.append(
        ExplicitEntityMapping(
          name: title, type: type, source: source, destination: destination,
          policy: try name("NSEntityMigrationPolicyClassName", object), userInfo: info,
          filter: filter(object, source: source, here),
          attributes: try properties("NSAttributeMappings", object, here),
          relationships: try properties("NSRelationshipMappings", object, here)))
      mapping.ends.append(ends)
    } catch {
      throw error.located(here)
    }
  }

  private func end(_ entity: String, _ field: String, _ object: ArchivedObject) throws(HopdError) -> CompiledMapping.End
  {
    guard case .data(let bytes) = try object.value(field), let hash = VersionHash(bytes: bytes) else {
      throw object.damaged("\(field) is not 32 bytes")
    }
    return CompiledMapping.End(entity: entity, hash: hash)
  }

  private mutating func filter(_ object: ArchivedObject, source: String?, _ place: Place) -> SourceFilter? {
    do throws(HopdError) {
      guard let expression = try object.object("NSSourceExpression") else {
        guard source == nil else {
          throw HopdError(
            .invalidMapping, "the entity mapping has a source entity but no source expression",
            hint: "compile the mapping model again from its source form")
        }
        return nil
      }
      let fetch = try SourceFetch(expression)
      guard fetch.entity == source else {
        throw HopdError(
          .invalidMapping, "the source expression fetches the entity \(fetch.entity), not \(source ?? "none")",
          hint: "compile the mapping model again from its source form")
      }
      guard let text = fetch.predicate else { return nil }
      return try SourceFilter(text: text, at: place)
    } catch {
      problem(error, place)
      return nil
    }
  }

  private mutating func userInfo(
    _ object: ArchivedObject, _ title: String, _ place: Place
  ) throws(HopdError) -> [String: PropertyListValue] {
    guard let dictionary = try object.object("NSUserInfo") else { return [:] }
    let info = try ArchivedUserInfo(dictionary)
    for name in info.unknownClasses {
      warn("a value of class \(name) in the user info of “\(title)” is ignored", place)
    }
    return info.values
  }

  private mutating func properties(
    _ field: String, _ object: ArchivedObject, _ place: Place
  ) throws(HopdError) -> [ExplicitPropertyMapping] {
    var result: [ExplicitPropertyMapping] = []
    var seen: Set<String> = []
    for value in try object.elements(field) {
      propertyCount += 1
      guard propertyCount <= MappingLimits.propertyMappings else {
        throw HopdError(
          .mappingTooLarge, "the mapping model has more than \(MappingLimits.propertyMappings) property mappings")
      }
      guard let property = value.object, property.isKind(of: "NSPropertyMapping") else {
        throw object.damaged("one of its property mappings is \(value.kind)")
      }
      guard let name = try name("NSDestinationPropertyName", property) else {
        warn("a property mapping has no name; it is ignored", place)
        continue
      }
      guard seen.insert(name).inserted else {
        warn("“\(name)” is mapped twice; the first mapping of it counts", place)
        continue
      }
      var expression: ExpressionNode?
      do throws(HopdError) {
        expression = try property.object("NSValueExpression").map { archived throws(HopdError) in
          try ArchivedExpressionReader.expression(archived)
        }
        guard try property.elements("NSPropertyTransforms").isEmpty else {
          throw HopdError(.invalidMapping, "it has property transforms, whose meaning is unknown")
        }
      } catch {
        problem(error, Place(file: place.file, entity: place.entity, property: name))
      }
      result.append(ExplicitPropertyMapping(name: name, value: expression.map { .expression($0) }))
    }
    return result.sortedByBytes(of: \.name)
  }

  /// Returns the text of a field; nil if it is absent or empty.
  private func name(_ field: String, _ object: ArchivedObject) throws(HopdError) -> String? {
    guard let text = try object.string(field), !text.isEmpty else { return nil }
    guard text.utf8.count <= MappingLimits.textBytes else {
      throw HopdError(.mappingTooLarge, "\(field) has more than \(MappingLimits.textBytes) bytes", at: place)
    }
    return text
  }

  private mutating func warn(_ message: String, _ place: Place) {
    guard mapping.warnings.count < MappingLimits.findings else { return }
    mapping.warnings.append(HopdError(.mappingRemark, message, at: place))
  }

  private mutating func problem(_ error: HopdError, _ place: Place) {
    guard mapping.problems.count < MappingLimits.findings else { return }
    mapping.problems.append(MappingProblem(entityMapping: mapping.entityMappings.count, error: error.located(place)))
  }
}
