// The mapping models for a graph of versions: named ones, and those found in folders of models. Named ones take
// precedence.

import Diagnostics
import ManagedObjectModel
import MappingModel
import SystemPackage

extension ModelCatalog {
  /// Reads named mapping models, and those in folders among `models`.
  package mutating func loadMappings(_ named: [FilePath], beside models: [FilePath]) throws(HopdError) {
    try take(named: MappingCatalog.load(named), found: MappingCatalog.load(Self.folders(among: models)))
  }

  /// Takes mapping models and stages that were read, and puts the versions in the order of the stages.
  package mutating func take(named: MappingCatalog, found: MappingCatalog) throws(HopdError) {
    let catalogs = CatalogedMappings(named: named, found: found, otherNames: otherNames)
    if !catalogs.isEmpty || !catalogs.stages.isEmpty { mappings = catalogs }
    try arrange(by: catalogs.stages)
  }

  /// The names that the app's migration plan has for versions that are named after releases.
  private var otherNames: [String: String] {
    bundles.reduce(into: [:]) { names, bundle in
      for (other, name) in bundle.origin?.otherNames ?? [:] where bundle.version(named: other) == nil {
        names[other] = name
      }
    }
  }

  /// Only puts the versions in the order of the stages: for inspections that plan nothing.
  package mutating func loadStages(_ named: [FilePath], beside models: [FilePath]) throws(HopdError) {
    let stages = try MappingCatalog.stages(at: named)
    let names = otherNames
    try arrange(
      by: (stages.isEmpty ? try MappingCatalog.stages(at: Self.folders(among: models)) : stages)
        .map { $0.renaming(names) })
  }

  private static func folders(among models: [FilePath]) -> [FilePath] {
    models.filter { !modelExtensions.contains($0.lastComponent?.extension ?? "") && !StoreModels.isStore($0) }
  }
}

/// Mapping models that were read.
package struct CatalogedMappings: MappingSource {
  let named: MappingCatalog
  let found: MappingCatalog
  package let stages: [DeclaredStage]

  /// Creates the source; named mapping models take precedence over those found in folders. Stages may use other names
  /// of versions.
  package init(
    named: MappingCatalog, found: MappingCatalog = .empty, otherNames: [String: String] = [:]
  ) {
    self.named = named
    self.found = found
    stages = (named.stages.isEmpty ? found.stages : named.stages).map { $0.renaming(otherNames) }
  }

  package var isEmpty: Bool { named.isEmpty && found.isEmpty }
  package var isReadable: Bool { named.unreadable.isEmpty && found.unreadable.isEmpty }

  package func hops(among versions: [CatalogedVersion]) -> any HopMappings {
    let mappable = versions.map {
      MappableVersion(modelName: $0.modelName, model: $0.model, hashes: $0.versionHashes)
    }
    return Hops(
      versions: versions, named: named.hops(among: mappable), found: found.hops(among: mappable),
      unreadable: named.unreadable + found.unreadable)
  }

  private struct Hops: HopMappings {
    let versions: [CatalogedVersion]
    let named: MappingHops
    let found: MappingHops
    let unreadable: [HopdError]

    func hop(
      from source: CatalogedVersion, to destination: CatalogedVersion
    ) throws(HopdError) -> (hop: MappedHop, warnings: [HopdError])? {
      guard let first = index(of: source), let second = index(of: destination) else { return nil }
      let pair = MappingHops.Pair(source: first, destination: second)
      for hops in [named, found] {
        if let served = try hops.hop(pair) { return (served.hop, served.warnings) }
      }
      // An unreadable one may be meant for this hop, so nothing is inferred.
      guard let unknown = unreadable.first else { return nil }
      var error = unknown
      if unreadable.count > 1 {
        error = HopdError(
          unknown.code, "\(unreadable.count) mapping models cannot be read", hint: unknown.hint, reasons: unreadable)
      }
      error.hint =
        "\(error.hint.map { $0 + "; " } ?? "")repair or remove it: no hop is inferred while a mapping model beside the "
        + "models cannot be read"
      throw error.located(Place(hop: "\(source.model.name) → \(destination.model.name)"))
    }

    func nearMisses(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError] {
      named.stale + found.stale
    }

    func unused(from source: CatalogedVersion, to destination: CatalogedVersion) -> [HopdError] {
      guard let first = index(of: source), let second = index(of: destination) else { return [] }
      return (named.misfits + found.misfits).filter { misfit in
        versions[misfit.pair.source].isSameVersion(as: versions[first])
          && versions[misfit.pair.destination].isSameVersion(as: versions[second])
      }.map(\.warning)
    }

    var pairs: [(source: CatalogedVersion, destination: CatalogedVersion)] {
      (named.pairs + found.pairs).map { (versions[$0.source], versions[$0.destination]) }
    }

    private func index(of version: CatalogedVersion) -> Int? {
      versions.firstIndex { $0.position == version.position && $0.path == version.path }
        ?? versions.firstIndex { $0.isSameVersion(as: version) }
    }
  }
}
