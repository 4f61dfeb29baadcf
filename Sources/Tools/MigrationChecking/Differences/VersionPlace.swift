// The path of a version, for places in messages: a bundle has many versions, and a message is about one of them.

import ManagedObjectModel
import SystemPackage

extension ModelBundle {
  /// Returns the folder of a version; the bundle itself if it is not a source with versions.
  package func path(ofVersion name: String) -> FilePath {
    path.extension == "xcdatamodeld" ? path.appending("\(name).xcdatamodel") : path
  }
}
