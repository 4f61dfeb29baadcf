// What the planner asks of mapping models: which of them make a hop. Finding, reading and comparing them is
// MappingModel's work; behind this protocol a graph can be tested with mappings that no file holds.

import Diagnostics
import ManagedObjectModel
import MappingModel

extension HopdError.Code {
  /// Entities have rows, continue in the destination, and no entity mapping takes them.
  package static let unmappedEntities = HopdError.Code("unmapped-entities", exit: .dataError)
}

/// The mapping models at hand.
package protocol MappingSource: Sendable {
  /// Are there none at all?
  var isEmpty: Bool { get }
  /// Can all that were found be read?
  var isReadable: Bool { get }
  /// The stages that are declared beside them.
  var stages: [DeclaredStage] { get }
  /// What they serve among the versions of one line, oldest first.
  func hops(among versions: [CatalogedVersion]) -> any HopMappings
}

extension MappingSource {
  package var stages: [DeclaredStage] { [] }
  package var isReadable: Bool { true }
}

/// What mapping models serve among some versions.
package protocol HopMappings: Sendable {
  /// The mapping models that lead from one version to another, in the order of execution, with remarks on them; nil
  /// where none fits.
  ///
  /// Throws where several fit and nothing says which is meant, or where one that fits cannot be followed.
  func hop(
    from source: CatalogedVersion, to destination: CatalogedVersion
  ) throws(HopdError) -> (hop: MappedHop, warnings: [HopdError])?
  /// Mapping models that seem to be meant for the pair and were made for others, each with what differs.
  func nearMisses(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError]
  /// Warnings for a hop that no mapping model serves: those that seem to be meant for this very pair, and why they are
  /// not used.
  func unused(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError]
  /// The pairs of versions that they serve, whatever way is taken.
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
