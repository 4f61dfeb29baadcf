import ArgumentParser
import Diagnostics
import HopdConfiguration
import ManagedObjectModel
import MigrationChecking
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl identify STORE…`.
struct IdentifyCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "identify", abstract: "Show the model version of a store",
    discussion: """
      Read-only. Exit status: 0 if the store is current or can be migrated, 65 if it cannot be migrated as is. With \
      several stores, prints a report for each and exits with the first status that is not 0; --json prints an object \
      with `stores`. For directories, use `hopctl fleet scan`.
      """)

  @Argument(help: "SQLite files of the stores", completion: .file())
  var stores: [String]

  @OptionGroup(title: "Model options") var models: ModelOptions
  @OptionGroup var wanted: WantedVersion
  @OptionGroup var evidence: EvidenceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    if let only = stores.first, stores.count == 1 {
      let (object, explanation) = try report(only)
      try output.object(object)
      guard let explanation else { return }
      ErrorReport.report(explanation)
      throw Finished(status: .dataError)
    }
    var objects: [JSONObject] = []
    var failure: ExitStatus?
    for store in stores {
      do {
        let (object, explanation) = try report(store)
        objects.append(object)
        guard let explanation else { continue }
        ErrorReport.report(explanation)
        failure = failure ?? .dataError
      } catch {
        // One that cannot be read does not keep the others from being told.
        let error = ErrorReport.hopdError(error)
        ErrorReport.report(error)
        objects.append(["store": FilePath(store).printable, "error": error.json])
        failure = failure ?? error.code.exit
      }
    }
    try output.object(["stores": objects])
    if let failure { throw Finished(status: failure) }
  }

  /// Prints the lines about a store. Returns its object, and why its state is neither current nor behind.
  private func report(_ path: String) throws -> (object: JSONObject, explanation: HopdError?) {
    let location = try StoreArgument.location(of: path)
    let text = FilePath(path).printable
    let evidence = try evidence.begin(location.store, output)
    let loaded = try models.load(
      for: location.store, withMappings: true, allowsOlder: wanted.allowOlder, search: .everywhere)
    output.tell(loaded.found)
    try wanted.requireKnown(in: loaded)
    output.warn(loaded.warnings)
    let found = try StoreIdentifier.identify(
      location.store, catalog: loaded.catalog, target: wanted.target(loaded.watch))
    try output.line("\(text): " + IdentifyCommand.sentence(found))
    let isSwiftData =
      found.metadata != nil
      && (try? StoreReader.withUnchangedStore(at: location.store, { try StoreModels.isSwiftData($0) })) == true
    if isSwiftData { try output.line("  created by SwiftData") }
    let app = KnownApp.of(found.version?.model.entities.map(\.name) ?? found.entities.map(\.name))
    if let app { try output.line("  entities of \(app.name), usually \(app.store)") }
    let rows = found.entities.sorted { $0.number < $1.number }
    try output.lines(
      MessageFormatter.table(
        rows.map { [String($0.number), $0.name, MessageFormatter.count($0.rows, "row", "rows")] }, right: [0, 2]))
    if !found.sideFiles.isEmpty {
      let names = found.sideFiles.map { $0.lastComponent.map { FilePath($0.string).printable } ?? "" }
      try output.line("  with \(names.joined(separator: ", "))")
    }
    let pin = try PinShape.of(location, found, output, rule: loaded.watch?.migration.pinRule)
    if found.version != nil {
      let options = loaded.found == nil ? " \(models.words)" : ""
      try output.line("  pages and rows not checked (hopctl verify \(text.quotedForShell)\(options))")
    }
    var object: JSONObject = [
      "store": location.database.string, "state": found.state.rawValue, "model": found.version?.modelName,
      "version": found.version?.model.name, "targetVersion": found.target?.model.name,
      // The named configuration, if the store has only its entities.
      "configuration": found.version?.configuration,
      "modelSource": found.version.map(MessageFormatter.modelSource), "storeUUID": found.metadata?.uuid,
      "frameworkVersion": found.metadata?.frameworkVersion, "swiftData": isSwiftData,
      "entities": rows.map { ["name": $0.name, "number": $0.number, "rows": $0.rows] as JSONObject },
      "sideFiles": found.sideFiles.map(\.string),
      // These may be damaged: only `verify` reads them.
      "notChecked": found.version == nil ? [] : ["pages", "rows"], "pin": pin,
    ]
    if let app { object += ["app": app.json] }
    if let statement = try evidence?.finish() { object += statement }
    if let found = loaded.found { object += ["models": found.json()] }
    return (found.explanation.map { object + ["error": $0.json] } ?? object, found.explanation)
  }

  /// "Library 2 (behind; target Library 4)".
  private static func sentence(_ found: StoreAssessment) -> TerminalText {
    let target = found.target?.model.name ?? "?"
    switch (found.state, found.version?.title) {
    case (.current, let version?): return "\(version) (" + TerminalText("current", .good) + ")"
    case (.behind, let version?): return "\(version) (" + TerminalText("behind", .attention) + "; target \(target))"
    case (.newer, let version?): return "\(version) (" + TerminalText("newer", .bad) + "; target \(target))"
    case (.unknown, _): return TerminalText("a Core Data store of an unknown version", .bad)
    case (.notAStore, _): return TerminalText("not a Core Data store", .bad)
    case (.damaged, _): return TerminalText("damaged", .bad)
    case (.xmlStore, _): return TerminalText("a Core Data XML store", .bad)
    case (.binaryStore, _): return TerminalText("probably a Core Data binary store", .bad)
    case (.encrypted, _): return TerminalText("probably encrypted", .bad)
    case (.current, nil), (.behind, nil), (.newer, nil): return TerminalText(found.state.rawValue)
    }
  }
}
