import ArgumentParser
import Diagnostics
import HopdConfiguration
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreExchange
import StoreReplacement
import SystemPackage

/// `hopctl export STORE --to FORMAT`.
struct ExportCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write a store as JSON lines, CSV or SQLite",
    discussion: """
      Read-only. ndjson contains every value in full, in the format of `hopctl dump`; `hopctl import` creates an equal \
      store from it. csv is a directory with a file for each entity and each many-to-many relationship. sqlite is a \
      database with the names of the model: foreign keys, join tables, constraints, and a view for each subentity. \
      These contain user data. sql, grdb-swift and room-kotlin are code for that database, without data.
      """)

  @OptionGroup var store: StoreArgument
  @Option(name: .customLong("to"), help: "Output format")
  var format: ExportFormat
  @Option(
    name: .customLong("output"),
    help: ArgumentHelp("New file, or directory for csv (default for text: standard output)", valueName: "path"),
    completion: .file())
  var path: String?
  @Option(
    name: .customLong("entity"),
    help: ArgumentHelp("Export only this entity and its subentities; repeatable", valueName: "entity"))
  var entities: [String] = []
  @Option(
    name: .customLong("where"),
    help: ArgumentHelp("Export only the objects of --entity that match this predicate", valueName: "predicate"))
  var predicate: String?
  @Option(
    help: ArgumentHelp(
      "Export only objects changed after this history transaction (ndjson)",
      discussion: "Deleted objects have a line with `deleted`. 0 = the complete history.", valueName: "transaction"))
  var since: Int64?
  @Option(help: "Dates in csv and sqlite: iso (RFC 3339) or unix (seconds since 1970)")
  var dates = DateForm.iso
  @Option(help: "UUIDs in sqlite: text or blob")
  var uuids = UUIDForm.text
  @Option(help: "Strings in csv that a spreadsheet reads as formulas: keep, or escape with an apostrophe")
  var formulas = FormulaForm.keep
  @Option(
    help: ArgumentHelp(
      "Directory for binary values of more than 64 bytes in ndjson, each named by its SHA-256",
      valueName: "directory"))
  var files: String?
  @OptionGroup var models: ModelOptions
  @OptionGroup var evidence: EvidenceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if predicate != nil, entities.count != 1 {
      throw ValidationError("--where requires one --entity")
    }
    if uuids == .blob, format == .csv { throw ValidationError("--uuids blob requires --to sqlite") }
    if since != nil, format != .ndjson { throw ValidationError("--since requires --to ndjson") }
    if let since, since < 0 { throw ValidationError("--since expects a number from 0") }
    if files != nil, format != .ndjson { throw ValidationError("--files requires --to ndjson") }
    if path == nil, !format.isText { throw ValidationError("--to \(format.rawValue) requires --output PATH") }
    if path == nil, output.json {
      throw ValidationError("--json requires --output PATH, because the export is written to standard output")
    }
  }

  func execute() throws {
    let location = try store.location().store
    let evidence = evidence.readOnly ? try Evidence(location, isTold: !output.json) : nil
    var result: JSONObject
    do {
      result = try export(location)
    } catch {
      try evidence?.finish()
      throw error
    }
    if let statement = try evidence?.finish() { result += statement }
    try output.object(result)
  }

  private func export(_ location: StoreLocation) throws -> JSONObject {
    let loaded = try models.load(for: location, search: .everywhere)
    output.tell(loaded.found)
    output.warn(loaded.warnings)
    if ConvertedStore.isNeeded(for: location) {
      return try ConvertedStore.with(location, catalog: loaded.catalog) { try export($0, loaded.catalog) }
    }
    return try export(location, loaded.catalog)
  }

  private func export(_ location: StoreLocation, _ catalog: ModelCatalog) throws -> JSONObject {
    let target = try path.map { path in
      try NewOutput(
        at: try StoreArgument.location(of: path).database, isFolder: format == .csv, job: RequestOptions.jobName())
    }
    do {
      var written = try StoreReader.withUnchangedStore(at: location, attachedAs: "source") { reader in
        try write(reader, location, catalog, to: target)
      }
      written.warnings += written.references.map(\.warning)
      try target?.commit()
      return try report(written, location)
    } catch {
      target?.discard()
      throw error
    }
  }

  /// What was written, whatever the format.
  private struct Written {
    var objects: Int64
    var pairs: Int64?
    var deleted: Int64?
    /// The newest transaction of the history.
    var transaction: Int64?
    var references: [ReferencesLeftOut] = []
    var warnings: [HopdError] = []
    var leftOut: [HopdError] = []
  }

  private func write(
    _ reader: StoreReader, _ location: StoreLocation, _ catalog: ModelCatalog, to target: NewOutput?
  ) throws -> Written {
    let found = try StoreIdentifier.identify(reader: reader, location: location, catalog: catalog, target: .own)
    guard let version = found.version, let metadata = found.metadata else {
      throw found.explanation ?? HopdError(.internalError, "the store has no version, without a reason")
    }
    let schema = try reader.layout(of: version.model, frameworkVersion: metadata.frameworkVersion)
    let history = try since.map { try HistorySelection(since: $0, in: reader, schema: schema) }
    let selection = try StoreSelection(
      entities: entities, predicate: predicate, history: history, in: reader, schema: schema)
    let external = try ExternalDataDirectory(of: location)
    let bar = ProgressBar(output)
    defer { bar.end() }
    let stop = target == nil ? nil : StopOnSignals.start()
    let progress = ExchangeProgress(total: found.entities.reduce(0) { $0 &+ $1.rows }) { done, total in
      bar.show(rows: done, of: total)
      return stop?.isStopping != true
    }
    let references = try referencesLeftOut(of: selection, in: reader, schema: schema)
    switch format {
    case .ndjson:
      let dump = StoreDump(
        reader: reader, schema: schema, external: external,
        binary: try files.map { .files(try BinaryFiles(FilePath($0))) } ?? .base64, selection: selection,
        isExact: true)
      var deleted: Int64?
      let written = try writing(to: target, stop) { emit in
        let written = try dump.write(emit)
        deleted = try history?.writeDeleted(of: selection, emit)
        return written
      }
      return Written(
        objects: written.objects, deleted: deleted, transaction: history?.last, references: references,
        warnings: missing(written.missingFiles) + [history?.warning].compactMap(\.self), leftOut: written.leftOut)
    case .sql, .grdbSwift, .roomKotlin:
      let clean = try CleanSchema(of: schema, in: reader, selection: selection, options: options)
      let code = try SchemaCode(of: clean, in: reader, options: options, external: external)
      try write(code.text(in: format.language ?? .sql), to: target)
      return Written(objects: 0, warnings: code.warnings, leftOut: clean.missingParts)
    case .csv, .sqlite:
      guard let target else { throw HopdError(.usage, "no output specified", hint: "pass --output PATH") }
      let clean = try CleanSchema(of: schema, in: reader, selection: selection, options: options)
      if format == .csv {
        let written = try CSVExport(of: clean, in: reader, options: options, external: external)
          .write(to: target.hidden, progress: progress)
        return Written(
          objects: written.count, pairs: written.pairs, references: references, warnings: written.warnings,
          leftOut: clean.missingParts)
      }
      let written = try SQLiteExport(of: clean, in: reader, options: options, external: external)
        .write(to: target.hidden, progress: progress)
      return Written(
        objects: written.count, pairs: written.pairs, references: references, warnings: written.warnings,
        leftOut: clean.missingParts)
    }
  }

  private func referencesLeftOut(
    of selection: StoreSelection, in reader: StoreReader, schema: StoreSchema
  ) throws -> [ReferencesLeftOut] {
    guard format.language == nil else { return [] }
    let unselected = try ReferencesLeftOut.count(of: selection, in: reader, schema: schema)
    guard format != .ndjson else { return unselected }
    return unselected + (try ReferencesLeftOut.dangling(of: selection, in: reader, schema: schema))
  }

  private func write(_ text: String, to target: NewOutput?) throws {
    try writing(to: target, nil) { try $0(Array(text.utf8)) }
  }

  private var options: ExportOptions {
    var options = ExportOptions()
    (options.dates, options.uuids, options.formulas) = (dates, uuids, formulas)
    return options
  }

  /// Runs `body` with a function that writes to the output.
  private func writing<Result>(
    to target: NewOutput?, _ stop: StopSignal?, _ body: (@escaping ([UInt8]) throws -> Void) throws -> Result
  ) throws -> Result {
    guard let target else { return try body { try StandardStreams.write($0, to: .output) } }
    let file = try FileDescriptor.open(target.hidden, .writeOnly, options: [.noFollow, .closeOnExec])
    return try file.closeAfter {
      try body { portion in
        guard stop?.isStopping != true else {
          throw HopdError(.interrupted, "stopped on request", hint: "run the command again")
        }
        _ = try file.writeAll(portion)
      }
    }
  }

  private func missing(_ count: Int64) -> [HopdError] {
    guard count > 0 else { return [] }
    return [
      HopdError(
        .externalDataMissing,
        "the external data of \(MessageFormatter.count(count, "value", "values")) is missing; the export contains only "
          + "the file names", hint: "copy the store's external data directory too")
    ]
  }

  private func report(_ written: Written, _ location: StoreLocation) throws -> JSONObject {
    output.warn(written.warnings.map { $0.located(Place(store: location.database)) })
    if let path {
      let pairs = written.pairs.map { ", \(MessageFormatter.count($0, "pair", "pairs"))" } ?? ""
      let objects = MessageFormatter.count(written.objects, "object", "objects")
      try output.line(
        format.language != nil
          ? "wrote \(FilePath(path).printable) for the model of \(store.text)"
          : "exported \(store.text) to \(FilePath(path).printable): \(objects)\(pairs)")
    }
    if let transaction = written.transaction, !output.quiet {
      StandardStreams.report(
        "note: the newest transaction is \(transaction): pass --since \(transaction) for the next export")
    }
    guard written.leftOut.isEmpty else {
      throw HopdError(
        .dumpIncomplete, "the export is incomplete: \(written.leftOut.count) parts of the store are missing",
        at: Place(file: location.database),
        hint: "check the reasons and run `hopctl verify`; the other objects were written",
        reasons: written.leftOut)
    }
    return [
      "store": location.database.string, "format": format.rawValue, "output": path, "objects": written.objects,
      "pairs": written.pairs, "deleted": written.deleted, "transaction": written.transaction,
      "referencesLeftOut": written.references.map { left -> JSONObject in
        ["relationship": left.relationship.text, "count": left.count]
      },
      "warnings": written.warnings.map(\.json),
    ]
  }
}

/// The value of `--to`.
enum ExportFormat: String, CaseIterable, ExpressibleByArgument {
  case ndjson, csv, sqlite, sql
  case grdbSwift = "grdb-swift"
  case roomKotlin = "room-kotlin"

  /// Whether the output is text, which may go to standard output.
  var isText: Bool { self != .csv && self != .sqlite }
  /// The language of code for the database of sqlite; nil for formats of objects.
  var language: SchemaLanguage? { SchemaLanguage(rawValue: rawValue) }
}

extension DateForm: ExpressibleByArgument {}
extension UUIDForm: ExpressibleByArgument {}
extension FormulaForm: ExpressibleByArgument {}
