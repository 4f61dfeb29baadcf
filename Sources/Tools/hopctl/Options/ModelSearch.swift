// The models of a store that was named alone: those of the watch that serves it, else those that lie beside it, else
// the copy that the store itself holds. What was taken is always said, because the answer depends on it.

import Diagnostics
import HopdConfiguration
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SystemPackage

/// Where a command without --models and --config searches for models.
enum ModelSearch {
  /// Nowhere: a command that writes takes the models that were named.
  case nowhere
  /// The watch and the folder: comparing a store with its own model says nothing.
  case aroundStore
  /// The store too.
  case everywhere
}

/// The models that a search found.
struct FoundModels {
  /// The place where they were found.
  enum Origin: String {
    case watch, beside, store
  }

  let origin: Origin
  let paths: [FilePath]
  /// Name of the watch.
  var watch: String?
  /// Mapping models and stages that lie beside the store.
  var mappings: [FilePath] = []

  /// What was taken, as a sentence.
  var sentence: String {
    let names = paths.map(\.printable).joined(separator: ", ")
    return switch origin {
    case .watch: "using the models and rules of the watch \((watch ?? "").printableLine), which includes the store"
    case .beside: "using the models next to the store: \(names)"
    case .store: "using the model in the store"
    }
  }

  /// The same models as options, for a suggested command that searches none.
  var words: String {
    switch origin {
    case .watch: "--config /etc/hopd/hopd.toml --watch \((watch ?? "").quotedForShell)"
    case .beside, .store: paths.map { "--models \($0.quotedForShell)" }.joined(separator: " ")
    }
  }

  /// The key `models` of a command's output. Reviews keep no folders.
  func json(isForReview: Bool = false) -> JSONObject {
    let object: JSONObject = [
      "from": origin.rawValue, "watch": watch, "paths": isForReview ? nil : paths.map(\.string),
    ]
    return object.withoutNulls
  }
}

extension FoundModels {
  /// The maximum number of directory entries that are inspected.
  private static let most = 20_000

  /// Returns the models and mapping models directly in the folder of a store; nil if there is no model.
  static func beside(_ location: StoreLocation) -> FoundModels? { inside(location.directory) }

  /// The same for a folder.
  static func inside(_ directory: FilePath) -> FoundModels? {
    var (models, mappings, entries) = ([FilePath](), [FilePath](), 0)
    try? directory.readEntries { entry in
      entries += 1
      guard let name = String(validatingCString: entry.name), !name.hasPrefix("."),
        let component = FilePath.Component(name)
      else { return entries < most }
      let path = directory.appending(component)
      if ModelCatalog.isModelFile(path) { models.append(path) } else if isMapping(name) { mappings.append(path) }
      return entries < most
    }
    guard !models.isEmpty else { return nil }
    func sorted(_ paths: [FilePath]) -> [FilePath] { paths.sorted { NaturalOrder.precedes($0.string, $1.string) } }
    return FoundModels(origin: .beside, paths: sorted(models), mappings: sorted(mappings))
  }

  private static func isMapping(_ name: String) -> Bool {
    [".xcmappingmodel", ".cdm", ".hopmap.toml", ".hopstages.toml"].contains { name.hasSuffix($0) }
  }

  /// Returns a catalog of the model that a store holds; nil if it holds none. It is empty for a file that is not a
  /// store and for a damaged one, whose state the command then finds.
  static func catalog(ofStore location: StoreLocation) throws(HopdError) -> ModelCatalog? {
    do {
      return ModelCatalog(bundles: [try StoreModels.bundle(ofStoreAt: location.database)])
    } catch let error where error.code == .noModels {
      return nil
    } catch {
      guard StoreIdentifier.isState(error) else { throw error }
      return ModelCatalog(bundles: [])
    }
  }
}

extension OutputOptions {
  /// Prints which models were found, if none was named.
  func tell(_ found: FoundModels?) {
    guard !quiet, let found else { return }
    StandardStreams.report("note: \(found.sentence)")
  }
}
