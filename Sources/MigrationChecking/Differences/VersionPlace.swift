// Where a version is on disk, for places of messages: a bundle has many versions, and only one of them is meant.

import ManagedObjectModel
import SystemPackage

extension ModelBundle {
  /// The folder of a version; the bundle itself where that is not a source with versions.
  package func path(ofVersion name: String) -> FilePath {
    path.extension == "xcdatamodeld" ? path.appending("\(name).xcdatamodel") : path
  }
}
