// The planner's view of mapping models: which of them make a hop. Finding, reading and comparing them is MappingModel's
// work; this protocol lets tests give a graph mappings that are in no file.

import Diagnostics
import ManagedObjectModel
import MappingModel

extension HopdError.Code {
  /// Entities have rows and continue in the destination, but no entity mapping takes them.
  package static let unmappedEntities = HopdError.Code("unmapped-entities", exit: .dataError)
}

/// The given mapping models.
package protocol MappingSource: Sendable {
  /// Whether there are none.
  var isEmpty: Bool { get }
  /// Whether all found mapping models can be read.
  var isReadable: Bool { get }
  /// The stages that are declared among them.
  var stages: [DeclaredStage] { get }
  /// Returns the hops that they serve among the versions of one line, oldest first.
  func hops(among versions: [CatalogedVersion]) -> any HopMappings
}

extension MappingSource {
  package var stages: [DeclaredStage] { [] }
  package var isReadable: Bool { true }
}

/// The hops that mapping models serve among some versions.
package protocol HopMappings: Sendable {
  /// Returns the mapping models from one version to another, in the order of execution, with remarks; nil if none fits.
  ///
  /// Throws if several fit and no rule chooses among them, or if one that fits cannot be followed.
  func hop(
    from source: CatalogedVersion, to destination: CatalogedVersion
  ) throws(HopdError) -> (hop: MappedHop, warnings: [HopdError])?
  /// Returns the mapping models that seem to be meant for the pair but were made for others, each with the differences.
  func nearMisses(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError]
  /// Returns warnings for a hop that no mapping model serves: mapping models that seem to be meant for this pair, and
  /// why they are not used.
  func unused(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError]
  /// The pairs of versions that they serve, on any route.
  var pairs: [(source: CatalogedVersion, destination: CatalogedVersion)] { get }
}

extension HopMappings {
  package var pairs: [(source: CatalogedVersion, destination: CatalogedVersion)] { [] }

  package func unused(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError] { [] }
}

/// No mapping models.
package struct NoMappings: MappingSource, HopMappings {

  package var isEmpty: Bool { true }

  package func hops(among versions: [CatalogedVersion]) -> any HopMappings { self }

  package func hop(
    from source: CatalogedVersion, to destination: CatalogedVersion
  ) throws(HopdError) -> (hop: MappedHop, warnings: [HopdError])? { nil }

  package func nearMisses(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError] { [] }
}
