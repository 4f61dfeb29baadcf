// A manifest that a scan has continued: a store that changed since the earlier scan has two lines, and the last counts.

import Diagnostics
import DurableFiles
import SystemPackage

/// Removes outdated lines from a manifest.
package enum ManifestUpdate {
  /// Keeps the last line of each store, and returns the summary of the result. A manifest without older lines is not
  /// rewritten; another one is replaced in one step, by a file made under a name with `job` in it.
  package static func keepNewest(in path: FilePath, job: String) throws -> FleetSummary {
    var last: [String: Int] = [:]
    var count = 0
    var manifest = try Manifest(path: path)
    while let line = try manifest.next() {
      last[line.store] = count
      count += 1
    }
    var summary = FleetSummary()
    let copy = FilePath(path.string + ".hop-\(job).tmp")
    let files = LinuxFileSystem()
    do {
      let kept = last.count < count ? try LineFile(path: copy) : nil
      var number = 0
      manifest = try Manifest(path: path)
      while let line = try manifest.next() {
        defer { number += 1 }
        guard last[line.store] == number else { continue }
        summary.add(line)
        try kept?.append(line)
      }
    } catch {
      try? files.unlink(copy)
      throw error
    }
    if last.count < count { try files.rename(copy, to: path) }
    return summary
  }
}
