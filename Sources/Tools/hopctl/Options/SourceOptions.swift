// Options for models in Swift source.

import ArgumentParser
import ManagedObjectModel
import SwiftDataReading

/// `--target`, `--schema`, `--tags`, `--define`.
struct SourceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The target of Swift source: of an Xcode project, a package, or a folder.",
      discussion: "Without it, the app of the project that the folder belongs to, or the folder itself."))
  var target: String?

  @Option(
    help: ArgumentHelp(
      "The schema of Swift source: a VersionedSchema, classes as A,B, or FILE:LINE of a call that names them.",
      discussion: "Without it, every VersionedSchema, or the schema that the app passes to its container."))
  var schema: String?

  @Option(
    help: ArgumentHelp(
      "Take the models of Swift source from the releases in git whose tags fit the pattern, such as 'v*'.",
      discussion: """
        Every shape that was released is a version, named after its first tag, and the source of the folder is the \
        current one. No VersionedSchema is needed, and nothing is checked out.
        """,
      valueName: "pattern"))
  var tags: String?

  @Option(
    name: .customLong("define"),
    help: ArgumentHelp("A condition of #if in Swift source, as DEBUG or DEBUG=0; may be repeated.", valueName: "name"))
  var definitions: [String] = []

  /// The options as typed.
  var words: [String] {
    (target.map { ["--target", $0] } ?? []) + (schema.map { ["--schema", $0] } ?? [])
      + (tags.map { ["--tags", $0] } ?? [])
      + definitions.flatMap { ["--define", $0] }
  }

  var choice: SourceChoice {
    var choice = SourceChoice()
    choice.target = target
    choice.schema = schema
    choice.tags = tags
    choice.definitions = SourceChoice.definitions(definitions)
    return choice
  }

  /// The reader of models in Swift source.
  var reader: any SourceModelReader { SwiftDataSourceReader(choice) }
}
