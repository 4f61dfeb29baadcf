// Stages of an app's own migration plan that run code of the app, for models that were derived from its source. hopd
// does not have that code: a store may pass such a stage only if a stages file or a mapping model takes its place
// (docs/decisions/0188).

import Diagnostics
import ManagedObjectModel
import MappingModel
import SystemPackage

extension ModelCatalog {
  /// Returns a warning for each stage of the app that a chain passes and that nothing replaces.
  func stagesLeftOut(on edges: [MigrationGraph.Edge]) -> [HopdError] {
    guard let start = edges.first?.source, let end = edges.last?.destination else { return [] }
    let stages = bundles.flatMap { $0.origin?.stages ?? [] }
    return stages.filter { stage in
      stage.begins(at: start.versionHashes) && stage.ends(at: end.versionHashes)
        && !edges.contains { isReplaced(stage, by: $0) }
    }.map { Self.warning($0, [start] + edges.map(\.destination)) }
  }

  /// Whether a hop stands for a stage: by a mapping model, or because a stages file declares it.
  private func isReplaced(_ stage: AppStage, by edge: MigrationGraph.Edge) -> Bool {
    guard stage.begins(at: edge.source.versionHashes), stage.ends(at: edge.destination.versionHashes) else {
      return false
    }
    let isMapped = edge.mapped.map { $0.hook == nil && $0.mappings.contains { !$0.path.isEmpty } } ?? false
    return isMapped
      || mappings.stages.contains {
        $0.source == edge.source.model.name && $0.destination == edge.destination.model.name
          && $0.model ?? edge.source.modelName == edge.source.modelName
      }
  }

  private static func warning(_ stage: AppStage, _ stops: [CatalogedVersion]) -> HopdError {
    let first = stops.last { stage.begins(at: $0.versionHashes) }?.model.name ?? stage.source
    let last = stops.first { stage.ends(at: $0.versionHashes) }?.model.name ?? stage.destination
    return HopdError(
      .stageNeedsProgram,
      "the stage \(stage.source) → \(stage.destination) runs code of the app, which hopd does not have, and nothing "
        + "replaces it", at: stage.place, hint: hint(from: first, to: last))
  }

  private static func hint(from first: String, to last: String) -> String {
    "write it as programs, and list them in a file NAME.hopstages.toml next to the models (`hopctl check` "
      + "prints it); without programs, its [[stage]] from = \"\(first)\", to = \"\(last)\" says that the code is not "
      + "needed"
  }
}
