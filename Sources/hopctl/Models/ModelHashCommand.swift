import ArgumentParser
import Diagnostics
import ManagedObjectModel

/// `hopctl model hash PATH`.
struct ModelHashCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "hash", abstract: "Shows the version hashes that stores of each version carry.")

  @Argument(help: "A model.", completion: .file())
  var path: String

  @OptionGroup var output: OutputOptions

  func execute() throws {
    let bundle = try ModelCommand.bundle(at: path)
    output.warn(ModelCommand.warnings(bundle))
    let versions = bundle.versions.map { model in
      let hashes = model.versionHashes
      return ModelHashShape.Version(
        name: model.name, current: model.name == bundle.currentVersionName, identifiers: model.versionIdentifiers,
        entityVersionHashes: hashes.mapValues(\.description), versionHashesDigest: VersionHash.digest(of: hashes),
        versionChecksum: VersionHash.checksum(of: hashes))
    }
    for (version, model) in zip(versions, bundle.versions) {
      try output.line(version.name + (version.current ? "  (current)" : ""))
      try output.line("  checksum  \(version.versionChecksum)")
      let rows = version.entityVersionHashes.sorted { $0.key < $1.key }.map { [$0.key, $0.value] }
      for line in MessageFormatter.table(rows) { try output.line(line) }
      for uncertainty in model.uncertainHashes { try output.line("  uncertain: \(uncertainty)") }
    }
    try output.object(ModelHashShape(versions: versions))
  }
}
