// One mapping model with its source and destination version, for `mapping show` and `mapping lint`.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import SystemPackage

/// A mapping model with its two versions.
struct MappingSubject {
  let mapping: ExplicitMapping
  /// The other mapping models of the hop.
  let others: [ExplicitMapping]
  let source: ManagedObjectModel
  let destination: ManagedObjectModel
  /// Whether the mapping model serves a hop between the two versions; otherwise they are the nearest versions.
  let serves: Bool
  /// Warnings about models and files.
  let warnings: [HopdError]
  /// Why hopd cannot run the mapping model.
  let findings: [HopdError]

  /// Reads a mapping model for versions of `models`; `mappings` are the other mapping models of its hop. If it fits
  /// several pairs of versions, the nearest pair that goes forward is used.
  init(file: String, models: [String], mappings: [String], _ reader: any SourceModelReader) throws {
    let path = try ModelCommand.only(
      MappingFileSearch.find(at: FilePath(file)), "mapping model", at: file,
      hint: "pass a .xcmappingmodel, .cdm or .hopmap.toml")
    guard !models.isEmpty else {
      throw MissingModel(directories: [path.removingLastComponent()], place: "next to the mapping model").error
    }
    let file = try MappingReader.read(at: path)
    let catalog = try ModelCatalog.load(models.map { FilePath($0) }, source: reader)
    let (hops, pair, misfit, remarks) = try Self.pair(for: file, mappings, in: catalog)
    (source, destination) = hops.models(of: pair)
    serves = hops.pairs.contains(pair)
    let loaded: LoadedMapping
    if !serves {
      loaded = try file.load(source: source, destination: destination)
      others = []
    } else {
      let parts = try hops.loaded(pair)
      guard let own = parts.first(where: { $0.mapping.path == path }) else {
        throw HopdError(.internalError, "a mapping model that matches cannot be loaded", at: Place(file: path))
      }
      loaded = own
      others = parts.map(\.mapping).filter { $0.path != path }
    }
    mapping = loaded.mapping
    warnings = catalog.warnings + remarks + [misfit?.warning].compactMap(\.self) + loaded.warnings
    findings = MappingChecker.findings(in: [mapping] + others, source: source, destination: destination)
      .filter { $0.place.file == path }
  }

  private static func pair(
    for file: any MappingFile, _ mappings: [String], in catalog: ModelCatalog
  ) throws(HopdError) -> (hops: MappingHops, pair: MappingHops.Pair, misfit: MappingMisfit?, remarks: [HopdError]) {
    let place = Place(file: file.path)
    var fitting: [(bundle: ModelBundle, hops: MappingHops)] = []
    var misfits: [(misfit: MappingMisfit, hops: MappingHops)] = []
    for bundle in catalog.bundles {
      let hops = MappingCatalog(files: [file]).hops(among: versions(of: bundle, in: catalog))
      misfits += hops.misfits.map { ($0, hops) }
      if !hops.pairs.isEmpty { fitting.append((bundle, hops)) }
    }
    guard let first = fitting.first else {
      for hops in catalog.bundles.map({ MappingCatalog(files: [file]).hops(among: versions(of: $0, in: catalog)) }) {
        guard let pair = hops.idle.first?.pair else { continue }
        let remark = HopdError(
          .mappingRemark, "the mapping model is never used: its two versions have the same hashes", at: place)
        return (hops, pair, nil, [remark])
      }
      if let nearest = misfits.first { return (nearest.hops, nearest.misfit.pair, nearest.misfit, []) }
      let names = catalog.bundles.map { bundle in
        "\(bundle.name) (\(bundle.versions.map(\.name).joined(separator: ", ")))"
      }
      throw HopdError(
        .staleMapping, "the mapping model matches no two versions of the given models", at: place,
        hint: "pass the model it was created for; given: \(names.joined(separator: "; "))")
    }
    guard fitting.count == 1 else {
      throw HopdError(
        .ambiguousMapping, "the mapping model matches versions of \(fitting.count) models", at: place,
        hint: "pass one with --models: \(fitting.map(\.bundle.path.printable).joined(separator: ", "))")
    }
    func distance(_ pair: MappingHops.Pair) -> (Int, Int) {
      pair.destination > pair.source
        ? (0, pair.destination - pair.source) : (1, pair.source - pair.destination)
    }
    // Pairs are never empty here, and are in the order of versions.
    guard let pair = first.hops.pairs.min(by: { distance($0) < distance($1) }) else {
      throw HopdError(.internalError, "a mapping model that matches has no pair of versions", at: place)
    }
    let alternatives = first.hops.pairs.filter { $0 != pair }.map { pair in
      let (source, destination) = first.hops.models(of: pair)
      return "\(source.name) → \(destination.name)"
    }
    var remarks = first.hops.remarks(on: pair)
    if !alternatives.isEmpty {
      remarks.append(
        HopdError(
          .mappingRemark, "the mapping model also matches \(alternatives.joined(separator: ", "))", at: place))
    }
    guard !mappings.isEmpty else { return (first.hops, pair, nil, remarks) }
    let others = try MappingCatalog.load(mappings.map { FilePath($0) }).files.filter { $0.path != file.path }
    let together = MappingCatalog(files: [file] + others).hops(among: versions(of: first.bundle, in: catalog))
    return (together.files(for: pair).contains(file.path) ? together : first.hops, pair, nil, remarks)
  }

  private static func versions(of bundle: ModelBundle, in catalog: ModelCatalog) -> [MappableVersion] {
    catalog.versions.filter { $0.path == bundle.path }.map {
      MappableVersion(modelName: $0.modelName, model: $0.model, hashes: $0.versionHashes)
    }
  }
}
