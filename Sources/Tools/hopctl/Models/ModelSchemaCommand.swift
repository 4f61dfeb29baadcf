import ArgumentParser
import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

/// `hopctl model schema PATH --model-version NAME`.
struct ModelSchemaCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema", abstract: "Print the SQL schema of an empty store",
    discussion: "Without --json the output is a script for sqlite3.")

  @Argument(help: "A model", completion: .file())
  var path: String

  @Option(name: .customLong("model-version"), help: "Model version (default: the current or only one)")
  var modelVersion: String?

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Layout options") var layout: LayoutOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    let bundle = try ModelCommand.bundle(at: path, source.reader)
    let model =
      try modelVersion.map { name throws(HopdError) in
        try ModelCommand.refuse(omitted: name, of: bundle)
        return try ModelCommand.version(name, of: bundle)
      } ?? ModelCommand.only(of: bundle, remedy: "pass one with --model-version")
    let schema = try layout.schema(of: try layout.part(of: model, at: bundle.path), at: bundle.path)
    output.warn(ModelCommand.warnings(bundle) + layout.remarks(on: schema, at: bundle.path))
    try output.lines(schema.createStatements.map { $0 + ";" })
    for entry in schema.primaryKeyEntries {
      let name = SQLiteIdentifier.literal(entry.name)
      try output.line("INSERT INTO Z_PRIMARYKEY VALUES (\(entry.number), \(name), \(entry.parent), 0);")
    }
    let keys = schema.primaryKeyEntries.map { entry -> JSONObject in
      ["number": entry.number, "name": entry.name, "super": entry.parent]
    }
    try output.object(["statements": schema.createStatements, "primaryKeys": keys])
  }
}
