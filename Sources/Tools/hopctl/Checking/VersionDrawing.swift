// `hopctl explain MODEL --graph`: the versions of a model and the hops between them as a picture.

import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationChecking
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SystemPackage

/// The value of `--graph`.
enum GraphFormat: String, ExpressibleByArgument, CaseIterable {
  case svg, mermaid
}

extension ExplainCommand {
  /// Draws the versions of the model, and marks those of `--stores`.
  func draw(_ format: GraphFormat) throws {
    let (checker, catalog) = try subject([path])
    let models = checker.inspect().models
    guard let model = models.first, models.count == 1 else {
      throw HopdError(
        .usage, "found \(models.count) models; --graph draws one",
        hint: "pass one of: \(models.map(\.path.printable).joined(separator: ", "))")
    }
    var graph = VersionGraph(model, isTried: false)
    for place in stores {
      for store in try StoreFolder.stores(at: FilePath(place)) { try mark(store, in: &graph, catalog) }
    }
    let text =
      switch format {
      case .svg: graph.svg()
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
          hint: "run `hopctl explain` for the differences")
      ])
      return
    }
    graph.nodes[index].stores += 1
  }
}
