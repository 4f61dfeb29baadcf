// How the entity mappings of a hop are carried out, for display in a plan: the engine decides this, and a plan is made
// without it.

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
    let known = try MappedHopCompiler.executions(hop: hop)
    return (hop.mapped?.entityMappings ?? []).map { mapping in
      let execution = known[mapping.name] ?? .sql
      switch execution {
      case .sql: return EntityExecution(kind: execution.word, reasons: [])
      case .instances(let reasons): return EntityExecution(kind: execution.word, reasons: reasons)
      case .policy(let policy):
        return EntityExecution(
          kind: execution.word,
          reasons: [
            hop.hook == nil ? "the policy \(policy) makes the objects" : "the program \(policy) changes the objects"
          ])
      }
    }
  }
}
