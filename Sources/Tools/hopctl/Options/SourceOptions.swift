// Options for models in Swift source.

import ArgumentParser
import ManagedObjectModel
import SwiftDataReading

/// `--target`, `--schema`, `--tags`, `--define`.
struct SourceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Target of Swift source: of an Xcode project, a package, or a directory",
      discussion: "Default: the app of the project that contains the directory, or the directory itself."))
  var target: String?

  @Option(
    help: ArgumentHelp(
      "Schema of Swift source: a VersionedSchema, classes as A,B, or FILE:LINE of a call that lists them",
      discussion: "Default: every VersionedSchema, or the schema that the app passes to its container."))
  var schema: String?

  @Option(
    help: ArgumentHelp(
      "Read Swift source from git tags that match the pattern, e.g. 'v*'",
      discussion: """
        Every released schema is a version, named after its first tag; the source of the directory is the current one. \
        No VersionedSchema is required, and nothing is checked out.
        """,
      valueName: "pattern"))
  var tags: String?

  @Option(
    name: .customLong("define"),
    help: ArgumentHelp("Condition of #if in Swift source, e.g. DEBUG or DEBUG=0; repeatable", valueName: "name"))
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
