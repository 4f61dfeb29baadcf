// Where a policy comes into a hop with mapping models. The runner of programs knows only this protocol: what a policy
// asks and how it is answered is the business of anyone who implements it.

import Diagnostics
import Expressions
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// What a policy step works with.
package struct PolicyStepContext {
  /// The connection that holds source and staged store.
  package let connection: Connection
  package let hop: Hop
  /// Schema names in the connection.
  package let source: SourceTables
  package let destinationSchema: String
  /// Keys and associations of all mappings.
  package let layout: AssociationLayout
  /// `now()` of the hop.
  package let moment: Double
  /// What is evaluated on objects; statements of policies add to it.
  package let fallbacks: ExpressionFallbacks
  package let options: EngineOptions
  /// To be called between batches with the rows that were written, and the objects that the pass has dealt with, since
  /// the last call; throws `interrupted`.
  package let report: (_ rows: Int64, _ taken: Int64) throws -> Void
}

/// Runs the policy steps of one hop, in order. One is made per run of a hop and closed at its end.
package protocol PolicyStepRunner: AnyObject {
  /// Runs one step inside a transaction of its own.
  func run(_ step: HopProgram.PolicyStep, context: PolicyStepContext) throws
  /// Ends the policy programs; also after an error.
  func close()
}

/// Makes the runner of one hop's policy steps. Values that leave external storage are read from the directory; notes go
/// to the taker.
package typealias MakePolicyStepRunner = (ExternalDataDirectory?, HopNote.Taker?) -> any PolicyStepRunner
