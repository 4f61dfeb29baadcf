import Diagnostics

/// A version of the model that the source declares.
package struct SourceVersion: Sendable {
  /// The name of its VersionedSchema; without one the identifier.
  package let name: String
  /// `versionIdentifier`; 1.0.0 without one, as SwiftData writes it (read in stores of 6 apps).
  package let identifier: String
  /// Where it is declared.
  package let place: Place
  /// The classes that it lists; or why they are unknown.
  package let models: Result<[SourceSymbol], HopdError>
  /// The VersionedSchema; nil for the schema that the app passes to its container.
  package let schema: SourceSymbol?
}

/// A stage of a migration plan.
package struct SourceStage: Sendable {
  /// Names of the versions.
  package let from: String
  package let to: String
  /// Whether the app runs code in it.
  package let isCustom: Bool
  /// Whether a custom stage has code before the hop, and after it: not if it is written as nil.
  package let hasWillMigrate: Bool
  package let hasDidMigrate: Bool
  package let place: Place
}

/// All versions of a target, in their order, with the stages between them.
package struct SourceVersions: Sendable {
  /// Oldest first; the last one is current.
  package var versions: [SourceVersion] = []
  package var stages: [SourceStage] = []
  /// Whether a migration plan gives the order.
  package var isPlanned = false
  /// Whether every stage of the migration plan could be read.
  package var areStagesKnown = true
  package var remarks: [HopdError] = []
}
