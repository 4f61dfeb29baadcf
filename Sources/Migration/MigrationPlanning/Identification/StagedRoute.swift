// The stages in a store's chain (docs/decisions/0068). A stage is one hop; for its hooks, a hop from its old version to
// itself precedes it and one from its new version to itself follows it. No hop skips a stage.

import Diagnostics
import ManagedObjectModel
import MappingModel

extension HopdError.Code {
  /// The hooks of a stage do not run, because the store's version is between its versions.
  package static let stageNotRun = HopdError.Code("stage-not-run", severity: .note)
}

/// The stages between the versions of one chain.
struct StagedRoute {
  /// A stage both of whose versions are in the chain.
  private struct Part {
    let stage: DeclaredStage
    let source: CatalogedVersion
    let destination: CatalogedVersion
  }

  /// The versions of the chain, both ends included. Versions within a stage are left out, because the stage is one hop.
  let stops: [CatalogedVersion]
  private let parts: [Part]
  /// Warnings about stages whose hooks do not run.
  private let warnings: [HopdError]

  /// Finds the stages between `stops` of a line with these versions.
  init(_ stages: [DeclaredStage], of versions: [CatalogedVersion], on stops: [CatalogedVersion]) {
    func stop(_ name: String, _ model: String?) -> CatalogedVersion? {
      guard let version = versions.first(where: { $0.model.name == name && model ?? $0.modelName == $0.modelName })
      else { return nil }
      return stops.first { $0.isSameVersion(as: version) }
    }
    var (parts, inner, warnings): ([Part], Set<Int>, [HopdError]) = ([], [], [])
    for stage in stages {
      let (source, destination) = (stop(stage.source, stage.model), stop(stage.destination, stage.model))
      if let source, let destination, source.position < destination.position {
        parts.append(Part(stage: stage, source: source, destination: destination))
        inner.formUnion(stops.map(\.position).filter { source.position < $0 && $0 < destination.position })
      } else if let start = stops.first, let destination, start.position < destination.position,
        versions.contains(where: { $0.model.name == stage.source && $0.position < start.position }),
        stage.willMigrate != nil || stage.didMigrate != nil
      {
        warnings.add(
          .stageNotRun, "the store begins within the stage \(stage.title), so the hooks of the stage do not run",
          at: stage.place, hint: "declare a stage from \(start.model.name) if its stores need one")
      }
    }
    self.parts = parts
    self.warnings = warnings
    self.stops = stops.enumerated().filter { index, stop in
      index == 0 || index == stops.count - 1 || !inner.contains(stop.position)
    }.map(\.element)
  }

  /// Returns the first stage that a hop would leave out; nil if there is none.
  func stageLeftOut(from source: CatalogedVersion, to destination: CatalogedVersion) -> DeclaredStage? {
    parts.first { part in
      source.position <= part.source.position && part.destination.position <= destination.position
        && !(part.source.position == source.position && part.destination.position == destination.position)
    }?.stage
  }

  /// The error for a hop that would skip a stage.
  static func leavesOut(_ stage: DeclaredStage, _ hop: String) -> HopdError {
    HopdError(
      .noRoute, "one hop from end to end would leave out the stage \(stage.title)",
      at: stage.place.filled(from: Place(hop: hop)),
      hint: "remove --route (`route` in the configuration) to use every version, or remove the stage")
  }

  /// Returns the hops together with those of the hooks.
  func withHooks(_ edges: [MigrationGraph.Edge]) -> [MigrationGraph.Edge] {
    var result: [MigrationGraph.Edge] = []
    for edge in edges {
      let part = parts.first {
        $0.source.position == edge.source.position && $0.destination.position == edge.destination.position
      }
      if let hook = part?.stage.hook(.willMigrate) { result.append(Self.edge(of: hook, at: edge.source)) }
      result.append(edge)
      if let hook = part?.stage.hook(.didMigrate) { result.append(Self.edge(of: hook, at: edge.destination)) }
    }
    if !result.isEmpty { result[0].warnings += warnings }
    return result
  }

  private static func edge(of hook: StageHook, at version: CatalogedVersion) -> MigrationGraph.Edge {
    MigrationGraph.Edge(
      source: version, destination: version, mapping: InferredMapping(keeping: version.model),
      mapped: MappedHop(hook: hook, at: version.model))
  }
}

// MARK: The order of versions

extension ModelCatalog {
  /// Checks stages against the versions, and puts the versions in their order unless another one is declared.
  mutating func arrange(by stages: [DeclaredStage]) throws(HopdError) {
    var mistakes = stages.compactMap(mistake(in:))
    if mistakes.isEmpty {
      for index in bundles.indices {
        let own = stages.filter { belongs($0, to: bundles[index]) }
        if let mistake = arrange(index, by: own) { mistakes.append(mistake) }
      }
    }
    if mistakes.count == 1, let only = mistakes.first { throw only }
    guard let first = mistakes.first else { return }
    throw HopdError(
      .stagesInvalid, "\(mistakes.count) stages do not match the versions", at: Place(file: first.place.file),
      reasons: mistakes)
  }

  private func belongs(_ stage: DeclaredStage, to bundle: ModelBundle) -> Bool {
    stage.model ?? bundle.name == bundle.name && bundle.version(named: stage.source) != nil
      && bundle.version(named: stage.destination) != nil
  }

  /// Returns the mistake in the names of a stage; nil if there is none.
  private func mistake(in stage: DeclaredStage) -> HopdError? {
    guard !bundles.contains(where: { belongs(stage, to: $0) }) else { return nil }
    let owners = bundles.filter { stage.model ?? $0.name == $0.name }
    var place = stage.place
    if let model = stage.model, owners.isEmpty {
      place.key = "model"
      let names = bundles.map(\.name)
      return HopdError(
        .stagesInvalid, "no model “\(model)”", at: place,
        hint: NearestName.hint(NearestName.among(names, to: model), of: names))
    }
    let names = owners.flatMap { $0.versions.map(\.name) }
    for (key, name) in [("from", stage.source), ("to", stage.destination)] where !names.contains(name) {
      place.key = "stage.\(key)"
      return HopdError(
        .stagesInvalid, "the stage \(stage.title) has an unknown version “\(name)”", at: place,
        hint: NearestName.hint(NearestName.among(names, to: name), of: names))
    }
    return HopdError(
      .stagesInvalid, "the versions of the stage \(stage.title) are of two models", at: place,
      hint: "set `from` and `to` to different versions of the model")
  }

  /// Puts the versions of a bundle in the order of its stages; returns the error if that is impossible.
  private mutating func arrange(_ index: Int, by stages: [DeclaredStage]) -> HopdError? {
    let bundle = bundles[index]
    for stage in stages {
      let versions = [stage.source, stage.destination].compactMap(bundle.version(named:))
      if versions.count == 2, versions[0].versionHashes == versions[1].versionHashes {
        return HopdError(
          .stagesInvalid,
          "the versions of the stage \(stage.title) have the same hashes, so no store is migrated between them",
          at: stage.place, hint: "set a different hash modifier in one of them, or remove the stage")
      }
    }
    var (remaining, order) = (bundle.versions.map(\.name), [String]())
    while !remaining.isEmpty {
      let next = remaining.firstIndex { name in
        !stages.contains { $0.destination == name && remaining.contains($0.source) }
      }
      guard let next else {
        let circle = stages.first { remaining.contains($0.source) && remaining.contains($0.destination) }
        return HopdError(
          .stagesInvalid, "the stages lead in a circle over \(remaining.joined(separator: ", "))",
          at: circle?.place ?? Place(), hint: "list the stages from the oldest version to the newest")
      }
      order.append(remaining.remove(at: next))
    }
    guard order != bundle.versions.map(\.name) else { return nil }
    if isOrderDeclared {
      let names = bundle.versions.map(\.name)
      let against = stages.first {
        names.firstIndex(of: $0.source) ?? 0 > names.firstIndex(of: $0.destination) ?? 0
      }
      return HopdError(
        .stagesInvalid,
        "the stage \(against?.title ?? "") leads back in the declared order of versions: "
          + names.joined(separator: ", "), at: against?.place ?? Place(),
        hint: "correct the stage, or the order (--order, or `versions` in the configuration)")
    }
    // In a chain of versions that were given one by one, the last one is current.
    let isChain = bundle.order == .declared && bundle.currentVersionName == bundle.versions.last?.name
    var ordered = ModelBundle(
      name: bundle.name, path: bundle.path, versions: order.compactMap(bundle.version(named:)), order: .declared,
      currentVersionName: isChain ? order.last : bundle.currentVersionName, omitted: bundle.omitted,
      warnings: bundle.warnings)
    ordered.origin = bundle.origin
    reorder(index, as: ordered)
    return nil
  }

  /// Throws if stages are declared for a part of a line of merged models: its stores have no version of that name.
  func requireStages(of line: VersionLine) throws(HopdError) {
    guard line.paths.count > 1 else { return }
    for stage in mappings.stages {
      for bundle in bundles where line.paths.contains(bundle.path) && belongs(stage, to: bundle) {
        throw HopdError(
          .stagesInvalid, "the store has entities of several models, and the stage \(stage.title) is of one of them",
          at: stage.place, hint: "use a mapping model with a policy for this hop")
      }
    }
  }
}
