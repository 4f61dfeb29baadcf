import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SQLite
import StoreExchange
import StoreReplacement
import SystemPackage

/// `hopctl create STORE --models … --model-version V`.
struct CreateCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create a store, empty or with sample data",
    discussion: "Without --model-version, uses the current version of the model, or its only one.")

  @OptionGroup var store: StoreArgument
  @OptionGroup(title: "Model options") var models: ModelOptions

  @Option(name: .customLong("model-version"), help: "Model version (default: the current one)")
  var modelVersion: String?

  @Option(help: "Number of sample objects, with values of every type, limits and nulls")
  var rows: Int64 = 0

  @Option(help: "Seed of the sample data")
  var seed: UInt64?

  @OptionGroup(title: "Layout options") var layout: LayoutOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    guard (0...100_000_000_000).contains(rows) else {
      throw ValidationError("--rows expects a number from 0 to 100000000000.")
    }
  }

  func execute() throws {
    let location = try store.location()
    let loaded = try models.load(for: location.store)
    let version = try version(in: loaded.catalog)
    let schema = try layout.schema(of: try layout.part(of: version.model, at: version.path), at: version.path)
    output.warn(loaded.warnings + layout.remarks(on: schema, at: version.path))
    let fresh = try FreshStore(
      schema: schema, uuid: FreshStore.uuid(seed: seed ?? UInt64.random(in: .min ... .max)))
    try make(fresh, at: location, loaded.catalog.enumValues(of: version))
    let name = version.model.name
    try output.line("created \(store.text): \(name), \(MessageFormatter.count(rows, "object", "objects"))")
    try output.object([
      "store": location.database.string, "model": version.modelName, "version": name, "storeUUID": fresh.uuid,
      "frameworkVersion": schema.frameworkVersion, "rows": rows, "seed": seed ?? 1,
    ])
  }

  private func version(in catalog: ModelCatalog) throws(HopdError) -> CatalogedVersion {
    guard let modelVersion else { return try current(in: catalog) }
    try catalog.requireVersion(modelVersion)
    let found = catalog.versions.filter { $0.model.name == modelVersion }
    if found.count == 1, let only = found.first { return only }
    throw HopdError(
      .usage,
      found.isEmpty
        ? "a store has one version, and several match" : "\(found.count) models have a version “\(modelVersion)”",
      at: Place(file: found.first?.path ?? catalog.bundles.first?.path), hint: "pass one model with --models")
  }

  /// The current version, or the only one.
  private func current(in catalog: ModelCatalog) throws(HopdError) -> CatalogedVersion {
    if let refusal = catalog.refusal(ofTarget: nil) { throw refusal }
    let current = catalog.versions.filter(\.isCurrent)
    let candidates = current.isEmpty ? catalog.versions : current
    if let only = candidates.first, candidates.count == 1 { return only }
    throw HopdError(
      .usage,
      current.isEmpty
        ? "no version of the model is marked as current" : "\(current.count) models have a current version",
      at: Place(file: catalog.bundles.first?.path),
      hint: "pass --model-version with one of: \(candidates.map(\.model.name).joined(separator: ", "))")
  }

  /// Creates the store under a hidden name and renames it when it is complete: a program that watches the folder never
  /// finds half a store.
  private func make(
    _ fresh: FreshStore, at location: CanonicalStoreLocation, _ enumValues: [PropertyKey: EnumValues]
  ) throws {
    let store = try NewStore(at: location, job: RequestOptions.jobName())
    defer { store.discard() }
    let stop = StopOnSignals.start()
    let bar = ProgressBar(output)
    defer { bar.end() }
    do {
      let samples = ExternalSamples { try store.change($0, to: $1) }
      try fresh.make(at: store.hidden.database, rows: rows, seed: seed ?? 1, external: samples, enumValues: enumValues)
      { done in
        bar.show(rows: done, of: rows)
        return !stop.isStopping
      }
      try store.commit()
    } catch let error as SQLiteError {
      throw StoreReader.explained(error, location: location.store)
    } catch let error as HopdError {
      throw error.located(Place(store: location.database))
    }
  }
}
