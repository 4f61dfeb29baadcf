import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import SystemPackage

/// `hopctl model list PATH…`.
struct ModelListCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists models and their versions, oldest first.")

  @Argument(help: "Models, or folders that are searched for them.", completion: .file())
  var paths: [String]

  @OptionGroup var output: OutputOptions

  func execute() throws {
    var models: [ModelBundle] = []
    for path in paths {
      if StoreModels.isStore(FilePath(path)) {
        models.append(try StoreModels.bundle(ofStoreAt: FilePath(path)))
        continue
      }
      for bundle in try ModelReader.findBundles(in: FilePath(path)) { models.append(try ModelReader.read(at: bundle)) }
    }
    if models.isEmpty {
      throw HopdError(
        .noModelFound, "no model was found", at: Place(file: paths.first.map { FilePath($0) }),
        hint: "name a .xcdatamodeld, .xcdatamodel, .momd or .mom, or a folder that holds one")
    }
    var catalog = ModelCatalog(bundles: models)
    try catalog.loadStages([], beside: paths.map { FilePath($0) })
    models = catalog.bundles
    for model in models {
      output.warn(ModelCommand.warnings(model))
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

extension HopdError.Code {
  /// The searched paths hold no model.
  static let noModelFound = HopdError.Code("no-models", exit: .notConfigured)
}
