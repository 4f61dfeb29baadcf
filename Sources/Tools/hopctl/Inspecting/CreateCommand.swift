import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import SystemPackage

/// `hopctl create STORE --models … --model-version V`.
struct CreateCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create a store, empty or with sample data",
    discussion: "Without --model-version the store has the current version of the model, or its only one.")

  @OptionGroup var store: StoreArgument
  @OptionGroup(title: "Model options") var models: ModelOptions

  @Option(name: .customLong("model-version"), help: "The version of the model (default: the current one).")
  var modelVersion: String?

  @Option(help: "Sample objects, spread over the entities: values of every type, limits and nulls included.")
  var rows: Int64 = 0

  @Option(help: "The same seed makes the same store.")
  var seed: UInt64?

  @OptionGroup(title: "Layout options") var layout: LayoutOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    guard (0...100_000_000_000).contains(rows) else {
      throw ValidationError("--rows is a number from 0 to 100000000000.")
    }
  }

  func execute() throws {
    let location = try store.location().store
    let loaded = try models.load(for: location)
    let version = try version(in: loaded.catalog)
    let schema = try layout.schema(of: try layout.part(of: version.model, at: version.path), at: version.path)
    output.warn(loaded.warnings + layout.remarks(on: schema, at: version.path))
    let fresh = try FreshStore(
      schema: schema, uuid: FreshStore.uuid(seed: seed ?? UInt64.random(in: .min ... .max)))
    try make(fresh, at: location)
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
        ? "a store has one version, and this names several" : "\(found.count) models have a version “\(modelVersion)”",
      at: Place(file: found.first?.path ?? catalog.bundles.first?.path), hint: "name one model with --models")
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

  /// Makes the store under a hidden name and renames it when it is complete: a program that watches the folder never
  /// finds half a store.
  private func make(_ fresh: FreshStore, at location: StoreLocation) throws {
    let files = LinuxFileSystem()
    for path in [location.database, location.supportDirectory] + location.sideFiles
    where try files.status(path) != nil {
      throw HopdError(
        .alreadyExists, "there is a file of that name already", at: Place(store: path),
        hint: "name another one, or move that one away")
    }
    let hidden = StoreLocation(
      database: location.directory.appending(".\(location.fileName).hop-\(RequestOptions.jobName()).tmp"))
    defer {
      for path in [hidden.database] + hidden.sideFiles { _ = try? files.unlinkIfPresent(path) }
    }
    let external = ExternalFiles(of: location, files: files)
    let stop = StopOnSignals.start()
    let bar = ProgressBar(output)
    defer { bar.end() }
    do {
      let samples = ExternalSamples { try external.write($1, as: $0) }
      try fresh.make(at: hidden.database, rows: rows, seed: seed ?? 1, external: samples) { done in
        bar.show(rows: done, of: rows)
        return !stop.isStopping
      }
      // The external files are synced before the store that refers to them gets its name.
      try external.sync()
      try files.syncFile(hidden.database)
      try files.renameNoReplace(hidden.database, to: location.database)
    } catch let error as SQLiteError {
      external.remove()
      throw StoreReader.explained(error, location: location)
    } catch let error as HopdError {
      external.remove()
      throw error.located(Place(store: location.database))
    }
    try files.syncDirectory(location.directory)
  }
}

/// The external files of a store that is being made.
private final class ExternalFiles {
  private let location: StoreLocation
  private let files: LinuxFileSystem
  private var written: [FilePath] = []

  init(of location: StoreLocation, files: LinuxFileSystem) {
    self.location = location
    self.files = files
  }

  func write(_ content: [UInt8], as name: ExternalFileName) throws {
    if written.isEmpty {
      try files.makeDirectory(location.supportDirectory, mode: 0o755)
      try files.makeDirectory(location.externalDataDirectory, mode: 0o755)
    }
    let path = location.externalDataDirectory.appending(name.text)
    try files.createFile(path, content, mode: 0o644)
    written.append(path)
  }

  func sync() throws {
    guard !written.isEmpty else { return }
    try files.syncDirectory(location.externalDataDirectory)
    try files.syncDirectory(location.supportDirectory)
  }

  /// Removes the written files of a store that could not be completed.
  func remove() {
    for path in written { _ = try? files.unlinkIfPresent(path) }
    guard !written.isEmpty else { return }
    try? files.removeDirectory(location.externalDataDirectory)
    try? files.removeDirectory(location.supportDirectory)
  }
}
