// The interface to policies in a hop with mapping models. The runner of programs depends only on this protocol; its
// implementation handles the policies' requests.

import Diagnostics
import Expressions
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// The context of a policy step.
package struct PolicyStepContext {
  /// The connection with the source and the staged store.
  package let connection: Connection
  package let hop: Hop
  /// The schema names in the connection.
  package let source: SourceTables
  package let destinationSchema: String
  /// The keys and associations of all mappings.
  package let layout: AssociationLayout
  /// The value of `now()` in the hop.
  package let moment: Double
  /// The expressions that are evaluated on objects; statements of policies add to them.
  package let fallbacks: ExpressionFallbacks
  package let options: EngineOptions
  /// Reports the rows that were written, and the objects that the pass has processed, since the last call. To be called
  /// between batches; throws `interrupted`.
  package let report: (_ rows: Int64, _ taken: Int64) throws -> Void
}

/// Runs the policy steps of one hop, in order. Made for each run of a hop and closed at its end.
package protocol PolicyStepRunner: AnyObject {
  /// Runs one step inside a transaction of its own.
  func run(_ step: HopProgram.PolicyStep, context: PolicyStepContext) throws
  /// Ends the policy programs; also after an error.
  func close()
}

/// Creates the runner of one hop's policy steps, with the directory of external files and the taker of notes.
package typealias MakePolicyStepRunner = (ExternalDataDirectory?, HopNote.Taker?) -> any PolicyStepRunner
