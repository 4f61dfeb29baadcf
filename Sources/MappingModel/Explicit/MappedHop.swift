// The mapping models of one hop, in order: often one, sometimes several, each for a part of the entities (objc.io's
// "chunks"; docs/formats/mapping-models.md, "What a mapping covers"). They run as one hop into one destination, with
// one table of associations.

/// A hop that follows mapping models.
package struct MappedHop: Sendable, Hashable {
  /// In the order of execution.
  package let mappings: [ExplicitMapping]

  /// Makes a hop of at least one mapping.
  package init(mappings: [ExplicitMapping]) { self.mappings = mappings }

  /// All entity mappings in the order of execution; their index is what the association table calls the mapping.
  package var entityMappings: [ExplicitEntityMapping] { mappings.flatMap(\.entityMappings) }

  /// Class names of the policies, each once, in order.
  package var policies: [String] {
    var seen: Set<String> = []
    return entityMappings.compactMap(\.policy).filter { seen.insert($0).inserted }
  }
}
