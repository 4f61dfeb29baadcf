import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationChecking
import MigrationPlanning
import SystemPackage

/// `hopctl model diff A B`, `hopctl model diff MODEL FROM TO`.
struct ModelDiffCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff", abstract: "Compare two model versions",
    discussion: """
      With two arguments, compares two models: .xcdatamodel, .mom, a store that contains its model, or the current \
      version of a bundle. With three, compares two versions of the first.
      """)

  @Argument(help: "Two models, or a model and two of its versions", completion: .file())
  var words: [String]

  @Flag(help: "Print Markdown")
  var markdown = false

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    guard (2...3).contains(words.count) else { throw ValidationError("Pass two models, or a model and two versions.") }
  }

  func execute() throws {
    let (from, to) = try versions()
    let difference = ModelDifference(from: from, to: to)
    let text = DifferenceText(difference)
    if markdown, !output.json {
      try StandardStreams.write(text.markdown, to: .output)
    } else {
      try output.lines(text.lines)
    }
    try output.object(difference.json)
  }

  private func versions() throws -> (ManagedObjectModel, ManagedObjectModel) {
    if words.count == 3 {
      let bundle = try ModelCommand.bundle(at: words[0], source.reader)
      return (try version(words[1], of: bundle), try version(words[2], of: bundle))
    }
    return (try only(words[0]), try only(words[1]))
  }

  private func version(_ name: String, of bundle: ModelBundle) throws(HopdError) -> ManagedObjectModel {
    try ModelCommand.refuse(omitted: name, of: bundle)
    return try ModelCommand.version(name, of: bundle)
  }

  private func only(_ path: String) throws(HopdError) -> ManagedObjectModel {
    let bundle = try ModelCommand.bundle(at: path, source.reader)
    return try ModelCommand.only(
      of: bundle,
      remedy: "pass two of them: "
        + (["hopctl", "model", "diff", path, "FROM", "TO"] + source.words).map(\.quotedForShell).joined(separator: " "))
  }
}
