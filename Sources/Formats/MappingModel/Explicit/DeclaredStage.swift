// Stages as an app's migration plan declares them: NSCustomMigrationStage, and MigrationStage of a SwiftData
// SchemaMigrationPlan. A stage is one hop, with a program before it and one after it (docs/decisions/0068).

import Diagnostics
import SystemPackage

/// One stage of a plan: a hop with its hooks.
package struct DeclaredStage: Sendable, Hashable {
  /// The end of the name of a file of stages.
  package static let fileNameEnd = ".hopstages.toml"

  /// The model that has these versions, needed if several models do; nil for any.
  package let model: String?
  /// Names of versions.
  package let source: String
  package let destination: String
  /// Name of the bound program that changes objects of the old version before the hop.
  package let willMigrate: String?
  /// Name of the bound program that changes objects of the new version after the hop.
  package let didMigrate: String?
  /// Where the stage is declared; `source` and `destination` are keys below it.
  package let place: Place

  /// "Model 2 → Model 3".
  package var title: String { "\(source) → \(destination)" }

  /// Returns the stage with other names for its versions.
  package func renaming(_ names: [String: String]) -> DeclaredStage {
    DeclaredStage(
      model: model, source: names[source] ?? source, destination: names[destination] ?? destination,
      willMigrate: willMigrate, didMigrate: didMigrate, place: place)
  }

  /// Returns the hook of one moment; nil if the stage has none.
  package func hook(_ moment: StageHook.Moment) -> StageHook? {
    let program = moment == .willMigrate ? willMigrate : didMigrate
    return program.map { StageHook(moment: moment, program: $0, stage: self) }
  }
}

/// A program that runs before or after the hop of a stage.
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
  /// The name to which the program is bound.
  package let program: String
  /// The stage it belongs to.
  package let stage: DeclaredStage

  /// "willMigrate of Model 2 → Model 3".
  package var title: String { "\(moment.rawValue) of \(stage.title)" }
}
