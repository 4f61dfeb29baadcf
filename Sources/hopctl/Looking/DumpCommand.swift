import ArgumentParser
import Diagnostics
import HopdConfiguration
import MigrationPlanning
import PersistentStore

/// `hopctl dump STORE`.
struct DumpCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "dump",
    abstract: "Prints every object as a line of JSON, in an order that only depends on the content.",
    discussion: "Changes nothing. The values are the users' own: mind where the output goes.")

  @OptionGroup var store: StoreArgument
  @OptionGroup var models: ModelOptions
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let location = try store.location()
    let loaded = try models.load(for: location)
    output.warn(loaded.warnings)
    // Any known version will do: a version to reach plays no part here.
    try StoreReader.withUnchangedStore(at: location) { reader in
      let found = try StoreIdentifier.identify(
        reader: reader, location: location, catalog: loaded.catalog,
        target: .own)
      guard let version = found.version, let metadata = found.metadata else {
        throw found.explanation ?? HopdError(.internalError, "the store has no version, without a reason")
      }
      let framework = metadata.frameworkVersion
      let schema = StoreSchema(
        model: version.model, frameworkVersion: framework,
        naming: try reader.joinTableNaming(for: version.model, frameworkVersion: framework))
      output.warn(schema.unsupported.filter { $0.code == .layoutUnsupported })
      try StoreDump(reader: reader, schema: schema, external: ExternalDataDirectory(of: location)).write {
        try StandardStreams.write($0, to: .output)
      }
    }
  }
}
