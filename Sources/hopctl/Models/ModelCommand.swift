import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import SystemPackage

/// `hopctl model …`: what is in models.
struct ModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model", abstract: "Shows models: versions, hashes, the tables they make.",
    subcommands: [ModelListCommand.self, ModelHashCommand.self, ModelSchemaCommand.self, ModelDiffCommand.self])

  /// The one model at or below `path`.
  static func bundle(at path: String) throws(HopdError) -> ModelBundle {
    if StoreModels.isStore(FilePath(path)) { return try StoreModels.bundle(ofStoreAt: FilePath(path)) }
    let found = try ModelReader.findBundles(in: FilePath(path))
    guard let first = found.first, found.count == 1 else {
      throw HopdError(
        .usage, found.isEmpty ? "there is no model here" : "there are \(found.count) models here",
        at: Place(file: FilePath(path)),
        hint: found.isEmpty
          ? "name a .xcdatamodeld, .xcdatamodel, .momd or .mom, or a store that holds its model"
          : "name one of: \(found.map(\.printable).joined(separator: ", "))")
    }
    return try ModelReader.read(at: first)
  }

  /// Throws where the version of that name is one that is left out.
  static func refuse(omitted name: String, of bundle: ModelBundle) throws(HopdError) {
    guard let version = bundle.omitted.first(where: { $0.name == name }) else { return }
    throw version.reason
  }

  /// Remarks of a reader as warnings.
  static func warnings(_ bundle: ModelBundle) -> [HopdError] {
    (bundle.omissions + bundle.warnings).map {
      HopdError(.modelWarning, $0.message, at: $0.place.filled(from: Place(file: bundle.path)))
    }
  }
}

extension HopdError.Code {
  /// A remark on a model.
  static let modelWarning = HopdError.Code("model-remark", severity: .note)
}
