// Two watches must not see the same store: each would migrate it to its own target. Directories are compared after
// links are resolved, so that a symbolic link cannot hide an overlap.

import Diagnostics
import HopdConfiguration
import MigrationPlanning
import SystemPackage

/// Finds watches that would serve the same stores.
package enum WatchOverlap {
  /// Returns one error for each pair, at the line of the second watch, naming the line of the first.
  package static func findings(in loaded: LoadedConfiguration) -> [HopdError] {
    let watches = loaded.configuration.watches.map { ($0, resolved($0.directory)) }
    var findings: [HopdError] = []
    for (index, (watch, directory)) in watches.enumerated() {
      for (other, otherDirectory) in watches.prefix(index) {
        let relation: String
        if directory == otherDirectory {
          relation = "is the directory of the watch \(other.name)"
        } else if other.recursive, directory.starts(with: otherDirectory) {
          relation =
            "is in \(other.directory.printable), which the watch \(other.name) watches recursively"
        } else if watch.recursive, otherDirectory.starts(with: directory) {
          relation = "contains \(other.directory.printable), the directory of the watch \(other.name)"
        } else {
          continue
        }
        let first = loaded.place(of: "watch.\(other.name).directory")
        let line = first.file.map { " (\($0.printable)" + (first.line.map { ":\($0)" } ?? "") + ")" } ?? ""
        findings.append(
          HopdError(
            .configurationInvalid, "\(watch.directory.printable) \(relation)\(line)",
            at: loaded.place(of: "watch.\(watch.name).directory"),
            hint: "watch each directory once: merge the two watches, or set another directory for one of them"))
      }
    }
    return findings
  }

  /// Resolves the links of a path, as far as the path exists.
  static func resolved(_ path: FilePath) -> FilePath {
    var missing: [FilePath.Component] = []
    var folder = path.lexicallyNormalized()
    while true {
      if var real = folder.resolvingLinks {
        for name in missing.reversed() { real.append(name) }
        return real
      }
      guard let name = folder.lastComponent else { return path.lexicallyNormalized() }
      missing.append(name)
      folder.removeLastComponent()
    }
  }
}
