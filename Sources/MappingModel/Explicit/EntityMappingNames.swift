// Names of entity mappings in a hop. Each mapping model gives its own, so two may give the same one: then the later has
// it with a number, and what the same mapping model looks for under that name goes along.

import Diagnostics
import Expressions

/// Makes the names of a hop's entity mappings unique.
enum EntityMappingNames {
  /// The mapping models with unique names, and what changed.
  ///
  /// Inside one mapping model, a look-up by a name that it gives twice stays as it is, and is refused.
  static func resolved(_ mappings: [ExplicitMapping]) -> (mappings: [ExplicitMapping], warnings: [HopdError]) {
    var taken: Set<String> = []
    var warnings: [HopdError] = []
    let looked = mappings.map(lookedFor)
    let doubtful = doubtful(mappings, looked)
    let result = mappings.enumerated().map { index, mapping in
      var own: Set<String> = []
      var renamed: [String: String] = [:]
      let entities = mapping.entityMappings.map { entityMapping in
        let isFirst = own.insert(entityMapping.name).inserted
        // Several of a name that somebody looks for are a mistake, which is reported under the name that was written.
        if doubtful.contains(entityMapping.name) || !isFirst && looked[index].contains(entityMapping.name) {
          taken.insert(entityMapping.name)
          return entityMapping
        }
        var name = entityMapping.name
        var number = 2
        while !taken.insert(name).inserted {
          name = "\(entityMapping.name) (\(number))"
          number += 1
        }
        guard name != entityMapping.name else { return entityMapping }
        if isFirst { renamed[entityMapping.name] = name }
        warnings.append(
          HopdError(
            .mappingRemark, "several entity mappings are named “\(entityMapping.name)”; this one is called “\(name)”",
            at: Place(file: mapping.path, entity: entityMapping.destination)))
        return entityMapping.replacing(name: name)
      }
      return ExplicitMapping(
        name: mapping.name, path: mapping.path, sourceVersion: mapping.sourceVersion,
        destinationVersion: mapping.destinationVersion,
        entityMappings: renamed.isEmpty ? entities : entities.map { following(renamed, $0) })
    }
    return (result, warnings)
  }

  /// Names that several other mapping models give and one looks for, but for parts of one entity, which are looked for
  /// together.
  private static func doubtful(_ mappings: [ExplicitMapping], _ looked: [Set<String>]) -> Set<String> {
    let owned = mappings.map { Set($0.entityMappings.map(\.name)) }
    let foreign = zip(looked, owned).reduce(into: Set<String>()) { $0.formUnion($1.0.subtracting($1.1)) }
    let named = Dictionary(grouping: mappings.flatMap(\.entityMappings), by: \.name)
    return foreign.filter { name in
      let owners = named[name] ?? []
      return owners.count > 1
        && !owners.allSatisfy { $0.filter != nil && $0.source != nil && $0.source == owners.first?.source }
    }
  }

  /// The names that a mapping model looks for.
  private static func lookedFor(_ mapping: ExplicitMapping) -> Set<String> {
    mapping.entityMappings.flatMap(\.relationships).reduce(into: []) { names, property in
      switch property.value {
      case .expression(.destinationInstances(.entityMapping(let name), _))?, .grouped(let name, _)?: names.insert(name)
      default: break
      }
    }
  }

  private static func following(_ names: [String: String], _ mapping: ExplicitEntityMapping) -> ExplicitEntityMapping {
    mapping.replacing(
      relationships: mapping.relationships.map { property in
        switch property.value {
        case .expression(.destinationInstances(.entityMapping(let name), let objects))?:
          guard let new = names[name] else { return property }
          return ExplicitPropertyMapping(
            name: property.name, value: .expression(.destinationInstances(.entityMapping(new), objects)))
        case .grouped(let name, let keys)?:
          guard let new = names[name] else { return property }
          return ExplicitPropertyMapping(name: property.name, value: .grouped(mapping: new, keys: keys))
        default: return property
        }
      })
  }
}
