// All versions of all given models, with their hashes, for comparison with stores. Loading the catalog is the only
// place of this target that reads model files.

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// The version to which a store is migrated.
package enum TargetVersion: Sendable, Hashable {
  /// The version that the model marks as current.
  case current
  /// The version of that name.
  case named(String)
  /// The version that the store has: for inspections that migrate nothing.
  case own
}

/// The given models.
package struct ModelCatalog: Sendable {
  /// Models in the order they were given.
  package private(set) var bundles: [ModelBundle]
  /// Their versions, model by model, oldest first.
  package private(set) var versions: [CatalogedVersion]
  /// Whether the order of the versions was declared.
  private(set) var isOrderDeclared = false
  /// Models of a folder that could not be read, and remarks of the reader.
  package let warnings: [HopdError]
  /// The mapping models for hops between the versions.
  package var mappings: any MappingSource = NoMappings() {
    didSet { cache = Self.cache(for: versions) }
  }
  /// Whether stores of a version later than the target may be migrated back by inference. Only an operator can decide
  /// this (docs/decisions/0016).
  package var allowsOlder = false {
    didSet { cache = Self.cache(for: versions) }
  }
  /// Cached results about these models and mappings: matches and chains, which are the same for every store of one
  /// version.
  package private(set) var cache: Cache

  /// A catalog of models that were read already.
  package init(bundles: [ModelBundle], warnings: [HopdError] = []) {
    self.bundles = bundles
    self.warnings =
      warnings
      + bundles.flatMap { bundle in
        (bundle.omissions + bundle.warnings).map {
          HopdError(.modelRemark, $0.message, at: $0.place.filled(from: Place(file: bundle.path)))
        }
      }
    versions = Self.versions(of: bundles)
    cache = Self.cache(for: versions)
  }

  /// The raw values of enums in the source of a version, by attribute.
  package func enumValues(of version: CatalogedVersion) -> [PropertyKey: EnumValues] {
    bundles.first { $0.path == version.path }?.origin?.enumValues[version.model.name] ?? [:]
  }

  /// Creates a cache that holds the results for every version: its match, its chain, its further hops.
  private static func cache(for versions: [CatalogedVersion]) -> Cache { Cache(limit: max(64, 8 * versions.count)) }

  private static func versions(of bundles: [ModelBundle]) -> [CatalogedVersion] {
    bundles.flatMap { bundle in
      bundle.versions.enumerated().map { position, model in
        CatalogedVersion(
          modelName: bundle.name, path: bundle.path, model: model, versionHashes: model.versionHashes,
          position: position, isCurrent: model.name == bundle.currentVersionName)
      }
    }
  }

  /// Replaces a bundle by the same one with its versions in another order.
  mutating func reorder(_ index: Int, as bundle: ModelBundle) {
    bundles[index] = bundle
    versions = Self.versions(of: bundles)
    cache = Self.cache(for: versions)
  }

  /// Reads models, and searches folders for models.
  ///
  /// `declaredOrder` names versions, oldest first. A named model must be readable; an unreadable one in a folder
  /// becomes a warning, unless no readable one is left. `source` reads folders of Swift source, and Swift files;
  /// without it they are not read. Throws `no-models` if there are none.
  package static func load(
    _ paths: [FilePath], declaredOrder: [String] = [], source: (any SourceModelReader)? = nil
  ) throws(HopdError) -> ModelCatalog {
    var catalog = try read(paths, declaredOrder: declaredOrder, source)
    catalog.isOrderDeclared = !declaredOrder.isEmpty
    return catalog
  }

  private static func read(
    _ paths: [FilePath], declaredOrder: [String], _ source: (any SourceModelReader)?
  ) throws(HopdError) -> ModelCatalog {
    var bundles: [ModelBundle] = []
    var failures: [HopdError] = []
    var links: [HopdError] = []
    var seen: Set<FilePath> = []
    // Versions that are given one by one form one model; a single one is a model by itself.
    let isChain = Set(paths.map(resolved)).count > 1 && paths.allSatisfy(isSingleVersion)
    for path in paths {
      let isStore = StoreModels.isStore(path)
      let isNamed = isStore || modelExtensions.contains(path.lastComponent?.extension ?? "")
      if let source, !isNamed, path.extension == "swift" || source.isNamed {
        bundles.append(try source.bundle(at: path, declaredOrder: declaredOrder))
        continue
      }
      let found =
        isNamed
        ? [path]
        : try ModelReader.findBundles(in: path) { link in
          links.append(HopdError(.modelRemark, link.message, at: link.place, cause: link.cause, hint: link.hint))
        }
      if found.isEmpty {
        bundles += try unbundled(in: path, declaredOrder: declaredOrder, source, &seen, &failures)
      } else if !isNamed {
        bundles += besides(path, source, &failures)
      }
      for bundlePath in found {
        guard seen.insert(resolved(bundlePath)).inserted else { continue }
        do throws(HopdError) {
          bundles.append(
            isStore
              ? try StoreModels.bundle(ofStoreAt: bundlePath)
              : try ModelReader.read(at: bundlePath, declaredOrder: isChain ? [] : declaredOrder))
        } catch {
          // If a model's source contradicts its compiled form, the compiled form must not silently take its place.
          if isNamed || error.code == .modelsDisagree { throw error }
          failures.append(error)
        }
      }
    }
    if bundles.isEmpty { throw nothingFound(in: paths, failures, source) }
    return try assembled(
      bundles, chainOf: isChain ? paths : nil, declaredOrder: declaredOrder, warnings: failures + links)
  }

  /// The catalog of what was read; `paths` are those of the versions of one chain.
  private static func assembled(
    _ bundles: [ModelBundle], chainOf paths: [FilePath]?, declaredOrder: [String], warnings: [HopdError]
  ) throws(HopdError) -> ModelCatalog {
    guard let paths else {
      let (models, copies) = withoutCopies(try merged(bundles))
      return ModelCatalog(bundles: models, warnings: warnings + copies)
    }
    // Two forms of the same version are not a chain.
    if let same = try? merged(bundles), same.count == 1 {
      return ModelCatalog(bundles: same, warnings: warnings)
    }
    let isOfStores = paths.allSatisfy(StoreModels.isStore)
    return ModelCatalog(
      bundles: [
        try ModelChain.bundle(
          of: (isOfStores ? ModelChain.byIdentifier(bundles) : nil) ?? bundles, declaredOrder: declaredOrder)
      ], warnings: warnings)
  }

  private static func nothingFound(
    in paths: [FilePath], _ failures: [HopdError], _ source: (any SourceModelReader)?
  ) -> HopdError {
    if failures.isEmpty, paths.count == 1, let absence = paths.first.flatMap({ source?.absence(at: $0) }) {
      return absence
    }
    let places = paths.map(\.printable).joined(separator: ", ")
    return HopdError(
      .noModels, paths.isEmpty ? "no model specified" : "no readable model found in \(places)",
      hint:
        "pass a .xcdatamodeld, .xcdatamodel, .momd or .mom, a store that contains its model, or a directory of these"
        + (paths.isEmpty ? ", with --models PATH" : ""), reasons: failures)
  }

  /// Returns the models of a folder without model files: that of Swift source, or those of its stores. Source comes
  /// first, because a repository may have stores for its tests.
  private static func unbundled(
    in folder: FilePath, declaredOrder: [String], _ source: (any SourceModelReader)?, _ seen: inout Set<FilePath>,
    _ failures: inout [HopdError]
  ) throws(HopdError) -> [ModelBundle] {
    guard let source, source.isSource(folder) else {
      return try stores(in: folder, declaredOrder: declaredOrder, &seen, &failures)
    }
    do throws(HopdError) {
      return [try source.bundle(at: folder, declaredOrder: declaredOrder)]
    } catch {
      guard error.code == .noSourceModels else { throw error }
      let found = try stores(in: folder, declaredOrder: declaredOrder, &seen, &failures)
      if found.isEmpty { throw error }
      return found
    }
  }

  /// Returns the model of Swift source in a folder that has model files too: an app on its way to SwiftData has both.
  private static func besides(
    _ folder: FilePath, _ source: (any SourceModelReader)?, _ failures: inout [HopdError]
  ) -> [ModelBundle] {
    guard let source, source.isSource(folder) else { return [] }
    do throws(HopdError) {
      return [try source.bundle(at: folder, declaredOrder: [])]
    } catch {
      failures.append(error)
      return []
    }
  }

  /// Returns the models of the stores in a folder.
  private static func stores(
    in folder: FilePath, declaredOrder: [String], _ seen: inout Set<FilePath>, _ failures: inout [HopdError]
  ) throws(HopdError) -> [ModelBundle] {
    var parts: [ModelBundle] = []
    for store in StoreFolder.stores(in: folder, &failures) where seen.insert(resolved(store)).inserted {
      do throws(HopdError) {
        parts.append(try StoreModels.bundle(ofStoreAt: store))
      } catch {
        failures.append(error)
      }
    }
    return try StoreFolder.bundles(of: parts, declaredOrder: declaredOrder)
  }

  /// Omits copies of a model, since it does not matter which of them describes a store. A warning lists each.
  private static func withoutCopies(_ bundles: [ModelBundle]) -> (models: [ModelBundle], remarks: [HopdError]) {
    var models: [ModelBundle] = []
    var remarks: [HopdError] = []
    for bundle in bundles {
      guard let first = models.first(where: { $0.isCopy(of: bundle) }) else {
        models.append(bundle)
        continue
      }
      remarks.append(
        HopdError(
          .modelRemark, "the model is the same as \(first.path.printable), and ignored", at: Place(file: bundle.path)))
    }
    return (models, remarks)
  }

  /// Returns the bundles with each model once: a `.momd` and its source, or two builds of it, are one.
  private static func merged(_ bundles: [ModelBundle]) throws(HopdError) -> [ModelBundle] {
    var result: [ModelBundle] = []
    for bundle in bundles {
      let index = result.firstIndex { $0.name == bundle.name && ($0.isCompiled || bundle.isCompiled) }
      if let index { result[index] = try result[index].merged(with: bundle) } else { result.append(bundle) }
    }
    return result
  }

  /// Returns the error for a version that was left out of its model; nil if no model has one of that name.
  package func refusal(of name: String) -> HopdError? {
    for bundle in bundles {
      guard let version = bundle.omitted.first(where: { $0.name == name }) else { continue }
      return VersionLine(of: bundle, in: self).unusable(version, "it is the one that is named")
    }
    return nil
  }

  /// Returns the error if the target was left out of its model; nil if it can be used. With several models no current
  /// version is checked here, because each store has the target of its own model.
  package func refusal(ofTarget name: String?) -> HopdError? {
    if let name { return versions.contains { $0.model.name == name } ? nil : refusal(of: name) }
    guard bundles.count == 1, let current = bundles.first?.omitted.first(where: \.isCurrent) else { return nil }
    return refusal(of: current.name)
  }

  static let modelExtensions: Set<String> = ["xcdatamodeld", "xcdatamodel", "momd", "mom"]

  /// Whether the path has the name of a model.
  package static func isModelFile(_ path: FilePath) -> Bool { modelExtensions.contains(path.extension ?? "") }

  /// Whether the path holds one version rather than a bundle of several.
  private static func isSingleVersion(_ path: FilePath) -> Bool {
    ["xcdatamodel", "mom"].contains(path.lastComponent?.extension ?? "") || StoreModels.isStore(path)
  }

  /// Returns the path with symbolic links resolved, so that one model found twice is taken once.
  private static func resolved(_ path: FilePath) -> FilePath { path.resolvingLinks ?? path.lexicallyNormalized() }
}

extension CatalogedVersion {
  /// Whether two versions make the same store.
  func isSameVersion(as other: CatalogedVersion) -> Bool { versionHashes == other.versionHashes }
}

extension ModelCatalog {
  /// Returns the first of these names that no version has as an entity, with a remedy; nil if all are known, or if a
  /// model or version could not be read, as it may have the entity. A rule for such a name would never be used.
  package func unknownEntity(among names: some Sequence<String>) -> (name: String, hint: String)? {
    guard bundles.allSatisfy(\.omissions.isEmpty), warnings.allSatisfy({ $0.code == .modelRemark }) else { return nil }
    let known = Set(versions.flatMap { $0.model.entities.map(\.name) })
    guard let name = names.first(where: { !known.contains($0) }) else { return nil }
    if let near = NearestName.among(known, to: name) { return (name, "use '\(near.printableLine)'") }
    let some = known.sorted().prefix(8).map(\.printableLine).joined(separator: ", ")
    return (name, "use one of: \(some)" + (known.count > 8 ? " and \(known.count - 8) more" : ""))
  }
}
