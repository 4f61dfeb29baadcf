import ArgumentParser
import Diagnostics
import ManagedObjectModel

/// `hopctl model hash PATH`.
struct ModelHashCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "hash", abstract: "Print the version hashes of each model version")

  @Argument(help: "A model", completion: .file())
  var path: String

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let bundle = try ModelCommand.bundle(at: path, source.reader)
    output.warn(ModelCommand.warnings(bundle))
    var versions: [JSONObject] = []
    for model in bundle.versions {
      let hashes = model.versionHashes
      let isCurrent = model.name == bundle.currentVersionName
      let checksum = VersionHash.checksum(of: hashes)
      try output.line(model.name + (isCurrent ? "  (current)" : ""))
      try output.line("  checksum  \(checksum)")
      let rows = hashes.sorted { $0.key < $1.key }.map { [$0.key, $0.value.description] }
      try output.lines(MessageFormatter.table(rows))
      try output.lines(model.uncertainHashes.map { "  uncertain: \($0)" })
      versions.append([
        "name": model.name, "current": isCurrent, "identifiers": model.versionIdentifiers,
        "entityVersionHashes": hashes.mapValues(\.description), "versionChecksum": checksum,
        "versionHashesDigest": VersionHash.digest(of: hashes),
      ])
    }
    try output.object(["versions": versions])
  }
}
