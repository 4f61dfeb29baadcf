// The mapping models of one hop, in order: often one, sometimes several, each for a part of the entities (objc.io's
// "chunks"; docs/formats/mapping-models.md, "What a mapping covers"). They run as one hop into one destination, with
// one table of associations.

/// A hop that follows mapping models.
package struct MappedHop: Sendable, Hashable {
  /// In the order of execution.
  package let mappings: [ExplicitMapping]
  /// The hook of a stage; nil for a hop between two versions. With a hook, the hop leads from a version to itself so
  /// that a program may change its objects, and the hook's entity mapping is the last.
  package let hook: StageHook?

  /// Creates a hop of one or more mappings.
  package init(mappings: [ExplicitMapping], hook: StageHook? = nil) {
    self.mappings = mappings
    self.hook = hook
  }

  /// All entity mappings in the order of execution; the association table identifies a mapping by its index here.
  package var entityMappings: [ExplicitEntityMapping] { mappings.flatMap(\.entityMappings) }

  /// Returns the entity mappings that take the other parts of the named one's objects. If the mapping models of a hop
  /// divide an entity by filters, a look-up of one part's objects covers all parts.
  package func parts(beside name: String) -> [ExplicitEntityMapping] {
    guard
      let home = mappings.firstIndex(where: { $0.entityMappings.contains { $0.name == name } }),
      let named = mappings[home].entityMappings.first(where: { $0.name == name }), named.filter != nil
    else { return [] }
    return mappings.enumerated().filter { $0.offset != home }.flatMap(\.element.entityMappings).filter {
      $0.source == named.source && $0.source != nil && $0.filter != nil
    }
  }

  /// Pairs of entity mappings that take objects of one entity by filters, from different mapping models: no object may
  /// fulfil both filters.
  package var partsToDistinguish: [(first: Int, second: Int)] {
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

  /// Class names of the policies, without duplicates, in order.
  package var policies: [String] {
    var seen: Set<String> = []
    return entityMappings.compactMap(\.policy).filter { seen.insert($0).inserted }
  }
}
