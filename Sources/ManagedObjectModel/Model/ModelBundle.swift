// What a reader hands on: the versions of one model in order, and remarks that do not stop anybody.

import Diagnostics
import SystemPackage

/// A remark on a model that does not keep it from being read.
package struct ModelWarning: Sendable, Hashable, CustomStringConvertible {
  /// What was found and what becomes of it.
  package let message: String
  /// Where.
  package let place: Place

  /// Makes a warning.
  package init(_ message: String, at place: Place = Place()) {
    self.message = message
    self.place = place
  }

  package var description: String { place.isEmpty ? message : "\(place): \(message)" }
}

extension [ModelWarning] {
  /// Adds a remark.
  mutating func add(_ message: String, at place: Place) { append(ModelWarning(message, at: place)) }
}

/// A version that the bundle has and that cannot be read or used; the others continue without it.
package struct OmittedVersion: Sendable {
  /// Its name.
  package let name: String
  /// Why.
  package let reason: HopdError
  /// Its version hashes, where the app's compiled model states them.
  package var hashes: [String: VersionHash]?
  /// Is it the current version of its bundle?
  package var isCurrent = false
}

/// Where the order of a model's versions comes from.
package enum VersionOrder: String, Sendable, Hashable {
  /// Somebody declared it.
  case declared
  /// From the project file beside the bundle, which tells when each version was added.
  case project
  /// From the names: a guess.
  case names
}

/// All versions of one model.
package struct ModelBundle: Sendable {
  /// The bundle's name without extension.
  package let name: String
  /// Where it was read.
  package let path: FilePath
  /// The versions that can be used, oldest first.
  package let versions: [ManagedObjectModel]
  /// Where their order comes from.
  package let order: VersionOrder
  /// Was the order declared?
  package var isOrderDeclared: Bool { order == .declared }
  /// The version that the bundle marks as current; nil where it has several and marks none, and where the one that it
  /// marks is left out.
  package let currentVersionName: String?
  /// Versions that are left out, in their order.
  package let omitted: [OmittedVersion]
  /// Remarks of all versions.
  package let warnings: [ModelWarning]

  /// Makes a bundle.
  package init(
    name: String, path: FilePath, versions: [ManagedObjectModel], order: VersionOrder = .names,
    currentVersionName: String?, omitted: [OmittedVersion] = [], warnings: [ModelWarning] = []
  ) {
    self.name = name
    self.path = path
    self.versions = versions
    self.order = order
    self.currentVersionName = currentVersionName
    self.omitted = omitted
    self.warnings = warnings
  }

  /// The version of that name.
  package func version(named name: String) -> ManagedObjectModel? { versions.first { $0.name == name } }

  /// The version marked as current.
  package var currentVersion: ManagedObjectModel? { currentVersionName.flatMap { version(named: $0) } }

  /// One sentence for each version that is left out, with the reason.
  package var omissions: [ModelWarning] {
    omitted.map { version in
      // A fault list is reported in full where the version is needed; here its beginning does.
      let reasons = version.reason.reasons.prefix(3).map { ": " + $0.message }.joined()
      return ModelWarning(
        "the version “\(version.name)” is left out: \(version.reason.message)\(reasons)", at: version.reason.place)
    }
  }
}
