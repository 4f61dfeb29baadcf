import ArgumentParser
import Diagnostics
import ManagedObjectModel
import SwiftDataReading
import SwiftDataSource
import SystemPackage

/// `hopctl model freeze FOLDER --tag TAG --name NAME`.
struct ModelFreezeCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "freeze", abstract: "Print a VersionedSchema with the models as shipped",
    discussion: """
      The copies have the version hashes of the models in the source at that tag. Add the output to the source of the \
      app, and never change it.
      """)

  @Argument(help: "Directory of Swift source", completion: .file())
  var path: String

  @Option(help: "Git tag, branch or commit (default: the working tree)")
  var tag: String?

  @Option(help: "Name of the VersionedSchema")
  var name: String

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    guard let first = name.first, first.isLetter, name.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" }) else {
      throw ValidationError("--name expects a Swift identifier, e.g. SchemaV1.")
    }
  }

  func execute() throws {
    let folder = FilePath(path)
    let target =
      if let tag {
        try GitSource(folder: folder).target(ofCommit: tag, choice: source.choice)
      } else {
        try SwiftDataSourceReader(source.choice).target(at: folder)
      }
    let calibrated = try CalibrationFile.read(besides: folder)
    let models = try SourceModels(target, schema: source.schema, calibrated: calibrated)
    guard let (version, derived) = models.versions.last else {
      throw HopdError(.noSourceModels, "no version in this source", at: Place(file: folder))
    }
    let text = try FrozenSchema(version, derived, of: target).text(name: name, origin: tag ?? "this source")
    if !output.json { try StandardStreams.write(text, to: .output) }
    try output.object([
      "name": name, "tag": tag, "text": text,
      "entityVersionHashes": derived.model?.versionHashes.mapValues(\.description),
    ])
  }
}
