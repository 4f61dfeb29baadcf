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

  @Option(help: "Tag, branch or commit (default: the working tree)")
  var tag: String?

  @Option(help: "Name of the VersionedSchema")
  var name: String

  @Option(
    help: ArgumentHelp(
      "The versionIdentifier, such as 1.2.0 (default: the number in the tag, otherwise in the name).",
      discussion: "v1.2 is 1.2.0, and SchemaV2 is 2.0.0. Each version of a plan needs an identifier of its own.",
      valueName: "number"))
  var identifier: String?

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    guard let first = name.first, first.isLetter, name.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" }) else {
      throw ValidationError("--name expects a Swift identifier, e.g. SchemaV1.")
    }
    if let identifier, FrozenSchema.number(identifier) == nil {
      throw ValidationError("--identifier is a number such as 1.2.0.")
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
    let models = try SourceModels(
      target, schema: source.schema, calibrated: calibrated, words: source.choice.words(for: folder))
    guard let (version, derived) = models.versions.last else {
      throw HopdError(.noSourceModels, "no version in this source", at: Place(file: folder))
    }
    let text = try FrozenSchema(version, derived, of: target).text(
      name: name, origin: tag ?? "this source", tag: tag, identifier: identifier.flatMap(FrozenSchema.number))
    if !output.json { try StandardStreams.write(text, to: .output) }
    try output.object([
      "name": name, "tag": tag, "text": text,
      "entityVersionHashes": derived.model?.versionHashes.mapValues(\.description),
    ])
  }
}
