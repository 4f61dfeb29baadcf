// The name of a version, as it was typed or configured: a name that no model has is refused before a store is opened,
// and by the same status in every command.

import Diagnostics
import HopdConfiguration
import ManagedObjectModel
import MigrationPlanning
import SystemPackage

extension ModelCatalog {
  /// Throws if no model has a version of this name. A catalog without models is that of a file that is not a store.
  func requireVersion(_ name: String?, code: HopdError.Code = .noSuchVersion) throws(HopdError) {
    guard let name, !versions.isEmpty, !canName(name) else { return }
    if let refusal = refusal(of: name) { throw refusal }
    let names = versions.map(\.model.name)
    let near = NearestName.among(names, to: name)
    throw HopdError(
      code, "no such version: '\(name.printableLine)'", at: Place(file: bundles.first?.path),
      hint: NearestName.hint(near, of: names))
  }
}

extension WantedVersion {
  /// Throws if no model has the version to reach.
  func requireKnown(in loaded: ModelOptions.Loaded) throws(HopdError) {
    try loaded.catalog.requireVersion(
      to ?? loaded.watch?.target, code: to == nil ? .configurationInvalid : .noSuchVersion)
  }
}
