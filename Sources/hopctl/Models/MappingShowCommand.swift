import ArgumentParser
import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import SystemPackage

/// `hopctl mapping show FILE --models …`.
struct MappingShowCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows what a mapping model does, expression by expression.",
    discussion: """
      What Xcode's compiler would fill in is filled in. What could not be followed in a migration is a warning here: names that lead \
      nowhere, expressions that are not supported.
      """)

  @Argument(help: "A .xcmappingmodel, .cdm or .hopmap.toml, or a folder that holds one.", completion: .file())
  var file: String

  @Option(
    name: .customLong("models"),
    help: "The model with both versions: a .xcdatamodeld, .momd, versions one by one, or a folder; may be repeated.",
    completion: .file())
  var models: [String]

  @Option(
    name: .customLong("mappings"),
    help: "Other mapping models of the same hop, whose objects its relationships look for; may be repeated.",
    completion: .file())
  var mappings: [String] = []

  @Flag(help: "Show it as a text mapping, which hopd follows in the same way.")
  var text = false

  @OptionGroup var output: OutputOptions

  func execute() throws {
    let path = try onlyFile()
    let file = try MappingReader.read(at: path)
    let catalog = try ModelCatalog.load(models.map { FilePath($0) })
    let (hops, pair, remarks) = try pair(for: file, in: catalog)
    let parts = try hops.loaded(pair)
    guard let loaded = parts.first(where: { $0.mapping.path == path }) else {
      throw HopdError(.internalError, "a mapping model that fits cannot be loaded", at: Place(file: path))
    }
    let (source, destination) = hops.models(of: pair)
    let mapping = loaded.mapping
    let findings = MappingChecker.findings(in: parts.map(\.mapping), source: source, destination: destination)
      .filter { $0.place.file == path }
    let warnings = catalog.warnings + remarks + loaded.warnings + findings
    output.warn(warnings)
    let text = text ? try mapping.text(source: source, destination: destination) : nil
    if let text {
      if !output.json { try StandardStreams.write(text, to: .output) }
    } else {
      try show(mapping)
    }
    try output.object(
      MappingShowShape(
        name: mapping.name, sourceVersion: mapping.sourceVersion, destinationVersion: mapping.destinationVersion,
        entityMappings: mapping.entityMappings.map(MappingShowShape.EntityMapping.init),
        warnings: warnings.map(ErrorShape.init), text: text))
  }

  private func show(_ mapping: ExplicitMapping) throws(HopdError) {
    try output.line(
      "\(mapping.name.printableLine): \(mapping.sourceVersion.printableLine) → \(mapping.destinationVersion.printableLine)"
    )
    for entity in mapping.entityMappings {
      for line in Self.lines(of: entity) { try output.line(line) }
    }
  }

  private func onlyFile() throws(HopdError) -> FilePath {
    let found = try MappingFileSearch.find(at: FilePath(file))
    guard let first = found.first, found.count == 1 else {
      throw HopdError(
        .usage, found.isEmpty ? "there is no mapping model here" : "there are \(found.count) mapping models here",
        at: Place(file: FilePath(file)),
        hint: found.isEmpty
          ? "name a .xcmappingmodel, .cdm or .hopmap.toml"
          : "name one of: \(found.map(\.printable).joined(separator: ", "))")
    }
    return first
  }

  /// The pair of versions that the mapping model is for. One that fits several is shown for the nearest ahead.
  private func pair(
    for file: any MappingFile, in catalog: ModelCatalog
  ) throws(HopdError) -> (hops: MappingHops, pair: MappingHops.Pair, remarks: [HopdError]) {
    let place = Place(file: file.path)
    var fitting: [(bundle: ModelBundle, hops: MappingHops)] = []
    var stale: [HopdError] = []
    for bundle in catalog.bundles {
      let hops = MappingCatalog(files: [file]).hops(among: versions(of: bundle, in: catalog))
      stale += hops.stale
      if !hops.pairs.isEmpty { fitting.append((bundle, hops)) }
    }
    guard let first = fitting.first else {
      if let error = stale.first { throw error }
      let names = catalog.bundles.map { bundle in
        "\(bundle.name) (\(bundle.versions.map(\.name).joined(separator: ", ")))"
      }
      throw HopdError(
        .staleMapping, "the mapping model fits no two versions of the models that were given", at: place,
        hint: "give the model it was made for; given were: \(names.joined(separator: "; "))")
    }
    guard fitting.count == 1 else {
      throw HopdError(
        .ambiguousMapping, "the mapping model fits versions of \(fitting.count) models", at: place,
        hint: "name one with --models: \(fitting.map(\.bundle.path.printable).joined(separator: ", "))")
    }
    func distance(_ pair: MappingHops.Pair) -> (Int, Int) {
      pair.destination > pair.source
        ? (0, pair.destination - pair.source) : (1, pair.source - pair.destination)
    }
    // Pairs are never empty here, and come in the order of versions.
    guard let pair = first.hops.pairs.min(by: { distance($0) < distance($1) }) else {
      throw HopdError(.internalError, "a mapping model that fits has no pair of versions", at: place)
    }
    let alternatives = first.hops.pairs.filter { $0 != pair }.map { pair in
      let (source, destination) = first.hops.models(of: pair)
      return "\(source.name) → \(destination.name)"
    }
    var remarks = first.hops.remarks(on: pair)
    if !alternatives.isEmpty {
      remarks.append(
        HopdError(
          .mappingRemark, "the mapping model also fits \(alternatives.joined(separator: ", "))", at: place))
    }
    guard !mappings.isEmpty else { return (first.hops, pair, remarks) }
    let others = try MappingCatalog.load(mappings.map { FilePath($0) }).files.filter { $0.path != file.path }
    let together = MappingCatalog(files: [file] + others).hops(among: versions(of: first.bundle, in: catalog))
    return (together.files(for: pair).contains(file.path) ? together : first.hops, pair, remarks)
  }

  private func versions(of bundle: ModelBundle, in catalog: ModelCatalog) -> [MappableVersion] {
    catalog.versions.filter { $0.path == bundle.path }.map {
      MappableVersion(modelName: $0.modelName, model: $0.model, hashes: $0.versionHashes)
    }
  }

  // MARK: Text

  private static func lines(of mapping: ExplicitEntityMapping) -> [String] {
    let ends = "\(mapping.source ?? "nothing") → \(mapping.destination ?? "nothing")"
    var lines = ["", "\(mapping.name.printableLine)  \(mapping.type.word)  \(ends.printableLine)"]
    if let policy = mapping.policy { lines.append("  policy \(policy.printableLine)") }
    if let filter = mapping.filter { lines.append("  filter \(filter.text.printableLine)") }
    lines += MessageFormatter.table(
      (mapping.attributes + mapping.relationships).map {
        [$0.name.printableLine, ($0.value?.description ?? "(no expression)").printableLine]
      })
    return lines
  }
}

extension MappingShowShape.EntityMapping {
  init(_ mapping: ExplicitEntityMapping) {
    func texts(_ properties: [ExplicitPropertyMapping]) -> [String: OrNull<String>] {
      Dictionary(
        properties.map { ($0.name, OrNull(wrappedValue: $0.value?.description)) },
        uniquingKeysWith: { first, _ in first })
    }
    self.init(
      name: mapping.name, type: mapping.type.word, source: OrNull(wrappedValue: mapping.source),
      destination: OrNull(wrappedValue: mapping.destination), policy: OrNull(wrappedValue: mapping.policy),
      filter: OrNull(wrappedValue: mapping.filter?.text), attributes: texts(mapping.attributes),
      relationships: texts(mapping.relationships))
  }
}
