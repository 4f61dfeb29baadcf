// Unique names for the entity mappings of a hop. Two mapping models may use the same name: then the later one's entity
// mapping gets a number, and that mapping model's look-ups by the name follow.

import Diagnostics
import Expressions

/// Creates the names of a hop's entity mappings unique.
enum EntityMappingNames {
  /// Returns the mapping models with unique names, and a warning for each change.
  ///
  /// If one mapping model uses a name twice and looks it up, the look-up stays unchanged and is refused later.
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
        // A name that is looked up and used several times is a mistake, reported under the name that was written.
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
        var copy = entityMapping
        copy.name = name
        return copy
      }
      return mapping.replacing(renamed.isEmpty ? entities : entities.map { following(renamed, $0) })
    }
    return (result, warnings)
  }

  /// Returns the names that a mapping model looks up and that several others use. Parts of one entity do not count:
  /// they are looked up together.
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

  /// Returns the names that a mapping model looks up.
  private static func lookedFor(_ mapping: ExplicitMapping) -> Set<String> {
    Set(mapping.entityMappings.flatMap(\.relationships).compactMap { $0.value?.mappingLookedFor })
  }

  private static func following(_ names: [String: String], _ mapping: ExplicitEntityMapping) -> ExplicitEntityMapping {
    var copy = mapping
    for index in mapping.relationships.indices {
      switch mapping.relationships[index].value {
      case .expression(.destinationInstances(.entityMapping(let name), let objects))?:
        copy.relationships[index].value = .expression(
          .destinationInstances(.entityMapping(names[name] ?? name), objects))
      case .grouped(let name, let keys)?:
        copy.relationships[index].value = .grouped(mapping: names[name] ?? name, keys: keys)
      default: continue
      }
    }
    return copy
  }
}
