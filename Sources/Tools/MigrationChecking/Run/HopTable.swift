// The hops between the versions of a model: every consecutive pair, and every pair that a mapping model joins. It reads
// only the models and the mapping models.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPipeline
import MigrationPlanning

/// The hops of a model.
struct HopTable {
  let hops: [HopCheck]

  init(versions: [CatalogedVersion], catalog: ModelCatalog, settings: MigrationSettings) {
    let mappings = catalog.mappings.isEmpty ? nil : catalog.mappings.hops(among: versions)
    var hops: [HopCheck] = []
    for (index, source) in versions.enumerated() {
      for (other, destination) in versions.enumerated() where other != index {
        let isConsecutive = other == index + 1
        guard isConsecutive || mappings != nil else { continue }
        if let hop = HopTable.hop(source, destination, isConsecutive, mappings, settings) { hops.append(hop) }
      }
    }
    self.hops = hops
  }

  private static func hop(
    _ source: CatalogedVersion, _ destination: CatalogedVersion, _ isConsecutive: Bool,
    _ mappings: (any HopMappings)?, _ settings: MigrationSettings
  ) -> HopCheck? {
    var reasons: [HopdError] = []
    var mapped: MappedHop?
    do throws(HopdError) {
      mapped = try mappings?.hop(from: source, to: destination)?.hop
    } catch {
      guard isConsecutive else { return nil }
      reasons = [error]
    }
    guard isConsecutive || mapped != nil else { return nil }
    var kind = HopKind.missing
    if let mapped {
      kind = mapped.policies.isEmpty ? .mapping : .policy
    } else if reasons.isEmpty {
      let attempt = MappingInference.attempt(from: source.model, to: destination.model, renames: settings.renames)
      reasons =
        settings.infer
        ? attempt.reasons : [HopdError(.inferenceOff, "no mapping model matches this hop, and inference is disabled")]
      if reasons.isEmpty {
        kind = .inferred
      } else {
        reasons += mappings?.nearMisses(from: source, to: destination) ?? []
      }
    }
    return HopCheck(
      step: HopStep(
        source: source.model.name, destination: destination.model.name, kind: kind,
        mappings: mapped?.mappings.map(\.name) ?? []),
      isConsecutive: isConsecutive,
      difference: ModelDifference(from: source.model, to: destination.model, renames: settings.renames),
      reasons: reasons)
  }
}
