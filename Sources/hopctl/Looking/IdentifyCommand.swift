import ArgumentParser
import Diagnostics
import HopdConfiguration
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SystemPackage

/// `hopctl identify STORE`.
struct IdentifyCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "identify", abstract: "Says which version a store has; changes nothing.",
    discussion: "Exit status 0 for a store that is current or behind, 65 for one that cannot be migrated as it is.")

  @OptionGroup var store: StoreArgument
  @OptionGroup var models: ModelOptions
  @OptionGroup var wanted: WantedVersion
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let location = try store.location()
    let loaded = try models.load(for: location, withMappings: true, allowsOlder: wanted.allowOlder)
    output.warn(loaded.warnings)
    let found = try StoreIdentifier.identify(
      location, catalog: loaded.catalog, target: wanted.target(loaded.watch))
    try output.line("\(store.text): \(IdentifyCommand.sentence(found))")
    let isSwiftData =
      found.metadata != nil
      && (try? StoreReader.withUnchangedStore(at: location, { try StoreModels.isSwiftData($0) })) == true
    if isSwiftData { try output.line("  made by SwiftData") }
    let rows = found.entities.sorted { $0.number < $1.number }
    for line in MessageFormatter.table(
      rows.map { [String($0.number), $0.name, MessageFormatter.count($0.rows, "row", "rows")] }, right: [0, 2])
    {
      try output.line(line)
    }
    if !found.sideFiles.isEmpty {
      try output.line(
        "  with \(found.sideFiles.map { $0.lastComponent.map { FilePath($0.string).printable } ?? "" }.joined(separator: ", "))"
      )
    }
    let pin = try PinShape.of(location, found, output)
    try output.object(
      IdentifyShape(
        store: location.database.string, state: found.state.rawValue,
        model: OrNull(wrappedValue: found.version?.modelName),
        version: OrNull(wrappedValue: found.version?.model.name),
        targetVersion: OrNull(wrappedValue: found.target?.model.name),
        configuration: OrNull(wrappedValue: found.version?.configuration),
        modelSource: OrNull(wrappedValue: found.version.map(MessageFormatter.modelSource)),
        storeUUID: OrNull(wrappedValue: found.metadata?.uuid),
        frameworkVersion: OrNull(wrappedValue: found.metadata?.frameworkVersion), swiftData: isSwiftData,
        entities: rows.map { IdentifyShape.Rows(name: $0.name, number: $0.number, rows: $0.rows) },
        sideFiles: found.sideFiles.map(\.string), pin: OrNull(wrappedValue: pin),
        error: found.explanation.map(ErrorShape.init)))
    switch found.state {
    case .current, .behind: return
    case .newer, .unknown, .notAStore, .damaged, .encrypted:
      if let explanation = found.explanation { StandardStreams.tell("hopctl: \(explanation)") }
      throw Finished(status: .dataError)
    }
  }

  /// "Library 2 (behind; target Library 4)".
  static func sentence(_ found: StoreAssessment) -> String {
    let target = found.target?.model.name ?? "?"
    switch (found.state, found.version?.title) {
    case (.current, let version?): return "\(version) (current)"
    case (.behind, let version?): return "\(version) (behind; target \(target))"
    case (.newer, let version?): return "\(version) (newer; target \(target))"
    case (.unknown, _): return "a Core Data store of an unknown version"
    case (.notAStore, _): return "not a Core Data store"
    case (.damaged, _): return "damaged"
    case (.encrypted, _): return "encrypted, as it seems"
    case (.current, nil), (.behind, nil), (.newer, nil): return found.state.rawValue
    }
  }
}
