// Models and watches are compared by where they are, whatever links lead there. (Calls that change files take the paths
// of `DurableFiles`, which this target does not import.)

import Glibc
import SystemPackage

extension FilePath {
  /// The path from the root with every link followed; nil where nothing is there.
  package var withoutLinks: FilePath? {
    withPlatformString { name in
      guard let text = realpath(name, nil) else { return nil }
      defer { free(text) }
      return FilePath(platformString: text)
    }
  }
}
