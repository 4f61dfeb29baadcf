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

/// All versions of one model.
package struct ModelBundle: Sendable {
  /// The bundle's name without extension.
  package let name: String
  /// Where it was read.
  package let path: FilePath
  /// The versions, oldest first: in declared order, else in the natural order of their names.
  package let versions: [ManagedObjectModel]
  /// Was the order declared? If not, it is a guess from the names.
  package let isOrderDeclared: Bool
  /// The version that the bundle marks as current; nil where it has several and marks none.
  package let currentVersionName: String?
  /// Remarks of all versions.
  package let warnings: [ModelWarning]

  /// Makes a bundle.
  package init(
    name: String, path: FilePath, versions: [ManagedObjectModel], isOrderDeclared: Bool = false,
    currentVersionName: String?, warnings: [ModelWarning] = []
  ) {
    self.name = name
    self.path = path
    self.versions = versions
    self.isOrderDeclared = isOrderDeclared
    self.currentVersionName = currentVersionName
    self.warnings = warnings
  }

  /// The version of that name.
  package func version(named name: String) -> ManagedObjectModel? { versions.first { $0.name == name } }

  /// The version marked as current.
  package var currentVersion: ManagedObjectModel? { currentVersionName.flatMap { version(named: $0) } }
}
