import ArgumentParser
import Diagnostics
import HopdConfiguration
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl dump STORE`.
struct DumpCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "dump",
    abstract: "Print all objects of a store as JSON lines",
    discussion:
      "Output order depends only on the contents. Read-only. The output contains user data. Missing parts are "
      + "reported on standard error, with exit status 65.")

  @OptionGroup var store: StoreArgument
  @Option(
    help: ArgumentHelp(
      "Binary values of more than 64 bytes: digest (length and SHA-256), base64, or files",
      valueName: "form"))
  var binary = BinaryArgument.digest
  @Option(
    help: ArgumentHelp(
      "Directory for --binary files, each named by its SHA-256; created if missing",
      valueName: "directory"))
  var files: String?
  @OptionGroup(title: "Model options") var models: ModelOptions
  @OptionGroup var evidence: EvidenceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    guard (binary == .files) == (files != nil) else {
      throw ValidationError("--binary files and --files DIRECTORY require each other")
    }
  }

  func execute() throws {
    let location = try store.location().store
    // Lines of JSON have no place for the statement.
    let evidence = evidence.readOnly ? try Evidence(location, isTold: true) : nil
    do {
      try dump(location)
    } catch {
      try evidence?.finish()
      throw error
    }
    try evidence?.finish()
  }

  private func dump(_ location: StoreLocation) throws {
    let loaded = try models.load(for: location, search: .everywhere)
    output.tell(loaded.found)
    output.warn(loaded.warnings)
    if ConvertedStore.isNeeded(for: location) {
      return try ConvertedStore.with(location, catalog: loaded.catalog) { try dump($0, loaded.catalog) }
    }
    try dump(location, loaded.catalog)
  }

  private func dump(_ location: StoreLocation, _ catalog: ModelCatalog) throws {
    // A dump needs only a known version, so the target does not matter.
    try StoreReader.withUnchangedStore(at: location) { reader in
      let found = try StoreIdentifier.identify(
        reader: reader, location: location, catalog: catalog, target: .own)
      guard let version = found.version, let metadata = found.metadata else {
        throw found.explanation ?? HopdError(.internalError, "the store has no version, without a reason")
      }
      let schema = try reader.layout(of: version.model, frameworkVersion: metadata.frameworkVersion)
      let dump = StoreDump(
        reader: reader, schema: schema, external: try ExternalDataDirectory(of: location), binary: try form())
      let written = try dump.write { try StandardStreams.write($0, to: .output) }
      if written.shortened > 0, !output.quiet {
        let values = MessageFormatter.count(written.shortened, "binary value", "binary values")
        StandardStreams.report(
          "note: \(values) of more than 64 bytes are replaced by length and SHA-256 (see --binary base64)"
        )
      }
      if written.missingFiles > 0 {
        output.warn([
          HopdError(
            .externalDataMissing,
            "the external data of \(MessageFormatter.count(written.missingFiles, "value", "values")) is missing; "
              + "the dump contains only the file names",
            at: Place(file: location.database),
            hint: "copy the directory \(location.externalDataDirectory.printable) of the store too")
        ])
      }
      guard written.leftOut.isEmpty else {
        throw HopdError(
          .dumpIncomplete, "the dump is incomplete: \(written.leftOut.count) parts of the store are missing",
          at: Place(file: location.database),
          hint: "check the reasons and run `hopctl verify`; the other objects were written",
          reasons: written.leftOut)
      }
    }
  }

  private func form() throws -> BinaryForm {
    switch binary {
    case .digest: .digest
    case .base64: .base64
    case .files: .files(try BinaryFiles(FilePath(files ?? ".")))
    }
  }
}

/// The value of `--binary`.
enum BinaryArgument: String, ExpressibleByArgument {
  case digest, base64, files
}
