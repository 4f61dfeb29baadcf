import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import SystemPackage

/// `hopctl model list PATH…`.
struct ModelListCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List models and their versions, oldest first",
    discussion: "Accepts the same arguments as --models; single versions form one model.")

  @Argument(help: "Models, stores that contain their model, or directories of them", completion: .file())
  var paths: [String]

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func execute() throws {
    var catalog = try ModelCatalog.load(paths.map { FilePath($0) }, source: source.reader)
    try catalog.loadStages([], beside: paths.map { FilePath($0) })
    output.warn(catalog.warnings)
    let models = catalog.bundles
    for model in models {
      let order = model.versions.count > 1 ? ModelListCommand.words(for: model.order) : ""
      try output.line("\(model.name)  \(model.path.printable)\(order)")
      for version in model.versions {
        try output.line("  \(version.name)\(version.name == model.currentVersionName ? "  (current)" : "")")
      }
      for version in model.omitted {
        try output.line("  \(version.name)  (left out\(version.isCurrent ? "; current" : ""))")
      }
    }
    let objects = models.map { model -> JSONObject in
      [
        "name": model.name, "path": model.path.string, "currentVersion": model.currentVersionName,
        "order": model.order.rawValue, "versions": model.versions.map(\.name),
        "omitted": model.omitted.map { ["name": $0.name, "error": $0.reason.json] as JSONObject },
      ]
    }
    try output.object(["models": objects])
  }

  /// The origin of the order of versions; printed after the model's name.
  private static func words(for order: VersionOrder) -> String {
    switch order {
    case .declared: "  (in the declared order)"
    case .project: "  (in the order of the project file)"
    case .names: ""
    }
  }
}
