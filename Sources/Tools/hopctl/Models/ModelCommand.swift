import ArgumentParser
import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import SystemPackage

/// `hopctl model …`: commands about models.
struct ModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model", abstract: "Inspect model versions, hashes and schemas",
    subcommands: [
      ModelListCommand.self, ModelHashCommand.self, ModelSchemaCommand.self, ModelDiffCommand.self,
      ModelFreezeCommand.self, ModelCalibrateCommand.self,
    ])

  /// Reads the only model at or below `path`: a model, a store that holds its own, Swift source, or a folder of any. In
  /// a folder with both, the source of SwiftData models comes before model files, which can be passed individually.
  static func bundle(at path: String, _ source: any SourceModelReader) throws(HopdError) -> ModelBundle {
    let given = FilePath(path)
    if StoreModels.isStore(given) { return try StoreModels.bundle(ofStoreAt: given) }
    let files = given.extension == "swift" ? [] : try ModelReader.findBundles(in: given)
    if !files.isEmpty, files != [given], source.isSource(given) {
      return try source.bundle(at: given, declaredOrder: [])
    }
    guard files.isEmpty else { return try ModelReader.read(at: only(files, "model", at: path)) }
    let bundles = try ModelCatalog.load([given], source: source).bundles
    if bundles.count == 1, let bundle = bundles.first { return bundle }
    return try StoreModels.bundle(ofStoreAt: only(bundles.map(\.path), "model", at: path))
  }

  /// Returns the current version, or the only one.
  static func only(of bundle: ModelBundle, remedy: String) throws(HopdError) -> ManagedObjectModel {
    if let current = bundle.currentVersion { return current }
    if bundle.versions.count == 1, let only = bundle.versions.first { return only }
    throw HopdError(
      .usage, "the model \(bundle.name) has \(bundle.versions.count) versions, and none is marked as current",
      at: Place(file: bundle.path), hint: remedy)
  }

  /// Returns the only file that was found at a path; throws if there is none (with `hint`) or several.
  static func only(
    _ found: [FilePath], _ what: String, at path: String, hint: String = "check the path"
  ) throws(HopdError) -> FilePath {
    if let first = found.first, found.count == 1 { return first }
    throw HopdError(
      .usage, found.isEmpty ? "found no \(what)" : "found \(found.count) \(what)s",
      at: Place(file: FilePath(path)),
      hint: found.isEmpty ? hint : "pass one of: \(found.map(\.printable).joined(separator: ", "))")
  }

  /// Returns the version of that name.
  static func version(_ name: String, of bundle: ModelBundle) throws(HopdError) -> ManagedObjectModel {
    if let version = bundle.version(named: name) { return version }
    let names = bundle.versions.map(\.name)
    throw HopdError(
      .usage, "the model \(bundle.name) has no version “\(name)”", at: Place(file: bundle.path),
      hint: NearestName.hint(NearestName.among(names, to: name), of: names))
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
