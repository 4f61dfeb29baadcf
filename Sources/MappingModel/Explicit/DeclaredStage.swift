// Stages as an app's migration plan has them: NSCustomMigrationStage, and MigrationStage of a SwiftData
// SchemaMigrationPlan. A stage is one hop, with a program before it and one after it (docs/decisions/0068).

import Diagnostics
import SystemPackage

/// One stage of a plan: a hop, and what is to be done before and after it.
package struct DeclaredStage: Sendable, Hashable {
  /// What the name of a file of stages ends with.
  package static let fileNameEnd = ".hopstages.toml"

  /// The model that has the versions, where several do; nil for any.
  package let model: String?
  /// Names of versions.
  package let source: String
  package let destination: String
  /// The program that changes objects of the old version before the hop, by the name it is bound under.
  package let willMigrate: String?
  /// The program that changes objects of the new version after the hop.
  package let didMigrate: String?
  /// Where the stage stands; `source` and `destination` are keys below it.
  package let place: Place

  /// "Model 2 → Model 3".
  package var title: String { "\(source) → \(destination)" }

  /// The hook of one moment; nil where the stage has none.
  package func hook(_ moment: StageHook.Moment) -> StageHook? {
    let program = moment == .willMigrate ? willMigrate : didMigrate
    return program.map { StageHook(moment: moment, program: $0, stage: self) }
  }
}

/// What a program does before or after the hop of a stage.
package struct StageHook: Sendable, Hashable {
  /// When it runs.
  package enum Moment: String, Sendable, Hashable {
    /// Before the hop, on the objects of the old version.
    case willMigrate
    /// After the hop, on the objects of the new version.
    case didMigrate
  }

  /// When it runs.
  package let moment: Moment
  /// The name that a program is bound under.
  package let program: String
  /// The stage it belongs to.
  package let stage: DeclaredStage

  /// "willMigrate of Model 2 → Model 3".
  package var title: String { "\(moment.rawValue) of \(stage.title)" }
}
