import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import SystemPackage

/// `hopctl model …`: commands about models.
struct ModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model", abstract: "Shows models: versions, hashes, the tables they make.",
    subcommands: [ModelListCommand.self, ModelHashCommand.self, ModelSchemaCommand.self, ModelDiffCommand.self])

  /// Reads the only model at or below `path`.
  static func bundle(at path: String) throws(HopdError) -> ModelBundle {
    if StoreModels.isStore(FilePath(path)) { return try StoreModels.bundle(ofStoreAt: FilePath(path)) }
    return try ModelReader.read(
      at: only(
        try ModelReader.findBundles(in: FilePath(path)), "model", at: path,
        hint: "name a .xcdatamodeld, .xcdatamodel, .momd or .mom, or a store that holds its model"))
  }

  /// Returns the only file that was found at a path; throws if there is none (with `hint`) or several.
  static func only(_ found: [FilePath], _ what: String, at path: String, hint: String) throws(HopdError) -> FilePath {
    if let first = found.first, found.count == 1 { return first }
    throw HopdError(
      .usage, found.isEmpty ? "there is no \(what) here" : "there are \(found.count) \(what)s here",
      at: Place(file: FilePath(path)),
      hint: found.isEmpty ? hint : "name one of: \(found.map(\.printable).joined(separator: ", "))")
  }

  /// Returns the version of that name.
  static func version(_ name: String, of bundle: ModelBundle) throws(HopdError) -> ManagedObjectModel {
    if let version = bundle.version(named: name) { return version }
    let names = bundle.versions.map(\.name)
    throw HopdError(
      .usage, "the model \(bundle.name) has no version “\(name)”", at: Place(file: bundle.path),
      hint: NearestName.among(names, to: name).map { "did you mean “\($0)”?" }
        ?? "its versions are: \(names.joined(separator: ", "))")
  }

  /// Throws if the version of that name was left out.
  static func refuse(omitted name: String, of bundle: ModelBundle) throws(HopdError) {
    guard let version = bundle.omitted.first(where: { $0.name == name }) else { return }
    throw version.reason
  }

  /// The reader's remarks as notes.
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
