import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SQLite
import StoreExchange
import StoreReplacement
import StoreVerification
import SystemPackage

/// `hopctl import DATA --models … --output STORE`.
struct ImportCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Create a store from JSON lines, CSV or SQLite",
    discussion: """
      DATA is a file written by `hopctl export --to ndjson`, a directory written by `hopctl export --to csv`, or a \
      file, directory or SQLite database with a mapping (docs/SEED.md). The store is verified before it is renamed \
      into place; an interrupted import leaves no files.
      """)

  @Argument(help: "A file, a directory of files, or a SQLite database", completion: .file())
  var data: String
  @OptionGroup var models: ModelOptions
  @Option(
    name: .customLong("model-version"),
    help: ArgumentHelp("Version of the store (default: the model's current version)", valueName: "version"))
  var modelVersion: String?
  @Option(
    name: .customLong("output"), help: ArgumentHelp("Path of the new store", valueName: "store"), completion: .file())
  var path: String?
  @Option(
    help: ArgumentHelp("Add the objects to this store and keep a backup", valueName: "store"),
    completion: .file())
  var into: String?
  @Option(
    help: ArgumentHelp("File that maps columns to attributes and relationships", valueName: "file"),
    completion: .file(extensions: ["toml"]))
  var mapping: String?
  @Option(
    help: ArgumentHelp(
      "Directory of binary values written by hopctl export", valueName: "directory"),
    completion: .directory)
  var files: String?
  @Option(
    name: .customLong("invalid-rows"),
    help: ArgumentHelp("How to handle rows that fail validation: fail, skip, default or keep", valueName: "rule"))
  var invalidRows = ImportRowsRule.fail
  @Flag(help: "Add data again that the store has from an earlier import")
  var again = false
  @Flag(name: .customLong("dry-run"), help: "Read and check everything without creating a store")
  var dryRun = false
  @OptionGroup var layout: LayoutOptions
  @OptionGroup var replacement: ReplaceOptions
  @Option(help: ArgumentHelp("Number of backups that --into keeps, or none (default: 1)", valueName: "keep|none"))
  var backup: BackupCount?
  @OptionGroup var state: StateOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if into != nil, path != nil { throw ValidationError("Pass either --output or --into, not both.") }
    guard dryRun || path != nil || into != nil else {
      throw ValidationError("pass --output STORE for a new store, or --into STORE to add to one")
    }
    if into == nil, again { throw ValidationError("--again requires --into") }
    if into != nil, modelVersion != nil { throw ValidationError("--model-version requires --output") }
  }

  func execute() throws {
    if let into { return try add(to: into) }
    let loaded = try models.load(for: nil)
    let version = try version(in: loaded.catalog)
    let schema = try layout.schema(of: try layout.part(of: version.model, at: version.path), at: version.path)
    output.warn(loaded.warnings + layout.remarks(on: schema, at: version.path))
    let fresh = try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: UInt64.random(in: .min ... .max)))
    let imported: StoreImport.Imported
    if dryRun {
      let scratch = try ScratchDirectory(in: nil)
      defer { try? scratch.remove() }
      let place = try CanonicalStoreLocation(resolving: scratch.path.appending("import.sqlite"))
      imported = try make(fresh, at: place, commits: false)
    } else {
      imported = try make(fresh, at: try StoreArgument.location(of: path ?? ""), commits: true)
    }
    try report(
      imported, version, into: path,
      [
        "storeUUID": dryRun ? nil : fresh.uuid
      ])
  }

  private func version(in catalog: ModelCatalog) throws -> CatalogedVersion {
    guard let bundle = catalog.bundles.first, catalog.bundles.count == 1,
      let any = catalog.versions.first(where: { $0.path == bundle.path })
    else {
      throw HopdError(
        catalog.bundles.isEmpty ? .noModels : .usage,
        catalog.bundles.isEmpty ? "no models" : "\(catalog.bundles.count) models, and a store has one",
        hint: "pass one model with --models")
    }
    return try VersionLine(of: bundle, in: catalog).target(modelVersion.map { .named($0) } ?? .current, for: any)
  }

  private func work() throws -> StoreImport {
    var work = StoreImport(data: try FilePath(data).resolved())
    work.mapping = try mapping.map { try FilePath($0).resolved() }
    work.files = try files.map { try FilePath($0).resolved() }
    work.rows = invalidRows
    return work
  }

  private func make(
    _ fresh: FreshStore, at location: CanonicalStoreLocation, commits: Bool
  ) throws -> StoreImport.Imported {
    let work = try work()
    let store = try NewStore(at: location, job: RequestOptions.jobName())
    let stop = StopOnSignals.start()
    let bar = ProgressBar(output)
    defer { bar.end() }
    do {
      let imported = try work.make(
        fresh, at: store.hidden.database, external: { try store.change($0, to: $1) },
        progress: { share, _ in
          bar.show(rows: Int64(share * 1000), of: 1000)
          guard !stop.isStopping else {
            throw HopdError(.interrupted, "stopped on request; no store was created", hint: "run the command again")
          }
        })
      bar.end()
      try verify(store, fresh.schema, for: location.database)
      if commits { try store.commit() }
      store.discard()
      return imported
    } catch let error as SQLiteError {
      store.discard()
      throw StoreReader.explained(error, location: location.store)
    } catch {
      store.discard()
      throw error
    }
  }

  /// Throws if the new store is not one that Core Data would have made.
  private func verify(_ store: NewStore, _ schema: StoreSchema, for path: FilePath) throws {
    let failed = try StoreReader.withUnchangedStore(at: store.hidden) { reader in
      try StoreVerifier(depth: .quick).checks(
        of: reader, schema: schema, isExact: true, external: ExternalDataDirectory(of: store.hidden))
    }.filter { !$0.passed }
    guard failed.isEmpty else {
      throw HopdError(
        .verificationFailed, "the new store failed \(failed.count) checks; it was removed",
        at: Place(store: path), hint: "report this bug, with the data if possible",
        reasons: failed.map { HopdError(.verificationFailed, "\($0.name): \($0.detail)") })
    }
  }

  // MARK: Adding to a store

  private func add(to path: String) throws {
    let location = try StoreArgument.location(of: path)
    let loaded = try models.load(for: location.store, search: .everywhere)
    output.tell(loaded.found)
    output.warn(loaded.warnings)
    if dryRun { return try tryAdding(to: location, loaded.catalog) }
    let work = try work()
    let stateDirectory = try state.directory()
    let rule = BackupRule(keep: backup?.count ?? 1)
    let outcome = try MigrationPipeline().recover(location, stateDirectory: stateDirectory, backup: rule)
    if let outcome, case .completed = outcome.decision {
      try IntentStore(stateDirectory: stateDirectory, files: LinuxFileSystem()).remove(location)
    }
    let stop = StopOnSignals.start()
    let bar = ProgressBar(output)
    defer { bar.end() }
    var version: CatalogedVersion?
    let added = try StoreAddition(stateDirectory: stateDirectory, mode: replacement.replace).add(
      work, again: again, to: location, job: RequestOptions.jobName(), backup: rule, now: Int64(time(nil)),
      identify: { reader in
        let (found, identified) = try identify(reader, location.store, loaded.catalog)
        version = found
        return identified
      },
      progress: { share in
        bar.show(rows: Int64(share * 1000), of: 1000)
        guard !stop.isStopping else {
          throw HopdError(.interrupted, "stopped on request; the store is unchanged", hint: "run the command again")
        }
      })
    bar.end()
    guard let (imported, replaced) = added else {
      try output.line(
        "\(location.database.printable) has \(FilePath(data).printable) from an earlier import; nothing was added")
      if !output.quiet { StandardStreams.report("note: pass --again to add it once more") }
      return try output.object(["data": data, "store": into, "alreadyImported": true, "objects": 0])
    }
    output.warn(replaced.warnings)
    guard let version else { throw HopdError(.internalError, "the store has no version, without a reason") }
    try report(imported, version, into: path, ["backup": replaced.backup?.string])
    if let kept = replaced.backup { try output.line("  backup: \(kept.printable)") }
  }

  private func identify(
    _ reader: StoreReader, _ location: StoreLocation, _ catalog: ModelCatalog
  ) throws -> (CatalogedVersion, StoreAddition.Identified) {
    let found = try StoreIdentifier.identify(
      reader: reader, location: location, catalog: catalog, target: .own, countsRows: false)
    guard let version = found.version, let metadata = found.metadata else {
      throw found.explanation ?? HopdError(.internalError, "the store has no version, without a reason")
    }
    let framework = metadata.frameworkVersion
    var schema = try reader.layout(of: version.model, frameworkVersion: framework)
    schema.history = try HistoryLayout.read(from: reader).layout?.asMade(byFramework: framework)
    return (
      version, StoreAddition.Identified(schema: schema, metadata: metadata, version: version.model.name)
    )
  }

  /// Adds the data to a copy of the store, which is removed.
  private func tryAdding(to location: CanonicalStoreLocation, _ catalog: ModelCatalog) throws {
    let scratch = try ScratchDirectory(in: nil)
    defer { try? scratch.remove() }
    let copy = scratch.path.appending("import.sqlite")
    try LinuxFileSystem().createUnsyncedFile(copy, [], mode: 0o600)
    let (version, identified) = try StoreReader.withUnchangedStore(at: location.store) { reader in
      let found = try identify(reader, location.store, catalog)
      try reader.connection.copy("main", to: copy) { _, _ in true }
      return found
    }
    let imported = try work().add(
      to: copy, schema: identified.schema, metadata: identified.metadata, external: { _, _ in },
      progress: { _, _ in })
    try report(imported, version, into: into, [:])
  }

  private func report(
    _ imported: StoreImport.Imported, _ version: CatalogedVersion, into store: String?, _ more: JSONObject
  ) throws {
    output.warn(imported.problems)
    let counts = [
      (imported.leftOut, "row", "rows", "left out"),
      (imported.clearedReferences, "reference", "references", "cleared"),
      (imported.corrected, "value", "values", "set to the default"),
    ].filter { $0.0 > 0 }.map { "\(MessageFormatter.count($0.0, $0.1, $0.2)) \($0.3)" }
    if !output.quiet {
      if !counts.isEmpty { StandardStreams.report("note: \(counts.joined(separator: ", "))") }
      for (file, columns) in imported.unusedColumns.sorted(by: { $0.key < $1.key }) {
        let names = columns.map(\.printableLine).joined(separator: ", ")
        StandardStreams.report("note: \(file.printableLine): columns not used: \(names)")
      }
    }
    let objects = MessageFormatter.count(imported.objects, "object", "objects")
    let (data, name) = (FilePath(data).printable, version.model.name)
    try output.line(
      dryRun
        ? "\(data) has \(objects) of \(name); nothing was written"
        : "imported \(data) into \(FilePath(store ?? "").printable): \(name), \(objects)")
    try output.object(
      [
        "data": self.data, "store": store, "model": version.modelName, "version": name, "dryRun": dryRun,
        "objects": imported.objects, "leftOut": imported.leftOut, "clearedReferences": imported.clearedReferences,
        "corrected": imported.corrected, "problems": imported.problems.map(\.json),
        "unusedColumns": JSONObject(imported.unusedColumns.map { ($0.key, $0.value) }),
      ] + more)
  }
}

extension ImportRowsRule: ExpressibleByArgument {}
