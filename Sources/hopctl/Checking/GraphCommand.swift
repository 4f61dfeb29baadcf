import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationChecking
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SystemPackage

/// The value of `--format`.
enum GraphFormat: String, ExpressibleByArgument, CaseIterable {
  case svg, dot, mermaid
}

/// `hopctl graph MODEL`.
struct GraphCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "graph", abstract: "Draws the versions of a model and the hops between them.",
    discussion: "It tries no store: the drawing shows what the models and mapping models say.")

  @OptionGroup var subject: CheckSubject

  @Option(help: "svg, dot or mermaid.")
  var format: GraphFormat = .svg

  @Option(
    help: ArgumentHelp(
      "Stores whose versions are marked: a store, or a folder of them; may be repeated.", valueName: "dir"),
    completion: .file())
  var stores: [String] = []

  @OptionGroup var output: OutputOptions

  func execute() throws {
    let loaded = try subject.load()
    output.warn(loaded.warnings)
    var request = CheckRequest(catalog: loaded.catalog)
    request.target = subject.target
    request.settings.renames = subject.renameRules
    let report = ModelChecker(request).look()
    guard let model = report.models.first, report.models.count == 1 else {
      throw HopdError(
        .usage, "there are \(report.models.count) models here, and one is drawn",
        hint: "name one of: \(report.models.map(\.path.printable).joined(separator: ", "))")
    }
    var graph = VersionGraph(model, isTried: false)
    for place in stores {
      for store in try StoreFolder.stores(at: FilePath(place)) {
        try mark(store, in: &graph, loaded.catalog)
      }
    }
    let text =
      switch format {
      case .svg: graph.svg()
      case .dot: graph.dot
      case .mermaid: graph.mermaid
      }
    if !output.json { try StandardStreams.write(text, to: .output) }
    try output.object(["format": format.rawValue, "text": text])
  }

  private func mark(_ store: FilePath, in graph: inout VersionGraph, _ catalog: ModelCatalog) throws {
    let found = try StoreIdentifier.identify(
      StoreLocation(database: store), catalog: catalog, target: .own, countsRows: false)
    guard let name = found.version?.model.name, let index = graph.nodes.firstIndex(where: { $0.name == name }) else {
      output.warn([
        HopdError(
          .unknownVersion, "the store has no version of the model", at: Place(store: store),
          hint: "hopctl explain says what differs")
      ])
      return
    }
    graph.nodes[index].stores += 1
  }
}
