// How the entity mappings of a hop are carried out, as a plan tells it: only the engine knows, and a plan is made without it.

import Diagnostics
import MappingModel
import MigrationEngine
import MigrationPlanning

/// How one entity mapping is carried out.
package struct EntityExecution: Sendable, Hashable {
  /// "sql", "instances" or "policy".
  package let kind: String
  /// Why not all of it is SQL.
  package let reasons: [String]
}

extension MigrationPipeline {
  /// The executions of a hop with mapping models, by entity mapping.
  package static func executions(of hop: Hop) throws(HopdError) -> [EntityExecution] {
    (hop.mapped?.entityMappings ?? []).map { mapping in
      EntityExecution(kind: mapping.policy == nil ? "sql" : "policy", reasons: [])
    }
  }
}
