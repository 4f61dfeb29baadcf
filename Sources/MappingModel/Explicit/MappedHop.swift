// The mapping models of one hop, in order: often one, sometimes several, each for a part of the entities (objc.io's
// "chunks"; docs/formats/mapping-models.md, "What a mapping covers"). They run as one hop into one destination, with
// one table of associations.

/// A hop that follows mapping models.
package struct MappedHop: Sendable, Hashable {
  /// In the order of execution.
  package let mappings: [ExplicitMapping]
  /// The hook of a stage, where the hop leads from a version to itself so that a program may change its objects; its
  /// entity mapping is the last. nil for a hop between two versions.
  package let hook: StageHook?

  /// Makes a hop of at least one mapping.
  package init(mappings: [ExplicitMapping], hook: StageHook? = nil) {
    self.mappings = mappings
    self.hook = hook
  }

  /// All entity mappings in the order of execution; their index is what the association table calls the mapping.
  package var entityMappings: [ExplicitEntityMapping] { mappings.flatMap(\.entityMappings) }

  /// The entity mappings that take the other parts of the objects of a named one: where mapping models of one hop share
  /// out an entity by filters, a look-up of objects of one part means those of all.
  package func parts(beside name: String) -> [ExplicitEntityMapping] {
    guard
      let home = mappings.firstIndex(where: { $0.entityMappings.contains { $0.name == name } }),
      let named = mappings[home].entityMappings.first(where: { $0.name == name }), named.filter != nil
    else { return [] }
    return mappings.enumerated().filter { $0.offset != home }.flatMap(\.element.entityMappings).filter {
      $0.source == named.source && $0.source != nil && $0.filter != nil
    }
  }

  /// Pairs of entity mappings of different mapping models that take objects of one entity by filters: no object may
  /// fulfil both.
  package var partsToTellApart: [(first: Int, second: Int)] {
    let parts = mappings.enumerated().flatMap { file, mapping in mapping.entityMappings.map { (file, $0) } }
    var result: [(first: Int, second: Int)] = []
    for (index, part) in parts.enumerated() where part.1.source != nil && part.1.filter != nil {
      for (other, second) in parts.enumerated().dropFirst(index + 1)
      where second.0 != part.0 && second.1.source == part.1.source && second.1.filter != nil {
        result.append((index, other))
      }
    }
    return result
  }

  /// Class names of the policies, each once, in order.
  package var policies: [String] {
    var seen: Set<String> = []
    return entityMappings.compactMap(\.policy).filter { seen.insert($0).inserted }
  }
}
