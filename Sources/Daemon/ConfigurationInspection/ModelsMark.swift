// The state of a watch's model files and mapping models in two hash values: one of sizes and times, which is quick to
// compute, and one of the content, which shows whether anything has changed.

import Diagnostics
import DurableFiles
import HopdConfiguration
import MigrationPlanning
import SystemPackage

/// A snapshot of the files of models and mapping models. The hash values are valid only in this process.
package struct ModelsMark: Sendable, Hashable {
  /// Hash of the names, sizes and times of the files.
  package let times: Int
  /// Hash of the names and bytes of the files.
  package let content: Int

  /// Patterns for the names of the files in models and mapping models.
  package static let patterns = [
    "contents", "elements", ".xccurrentversion", "VersionInfo.plist", "*.mom", "*.omo", "xcmapping.xml", "*.cdm",
    "*.hopmap.toml", "*.hopstages.toml", "*.swift", "project.pbxproj", "hop.calibration.toml",
  ]

  /// The deepest nesting of folders, and the most files, to inspect.
  private static let deepest = 16
  private static let most = 20_000
  /// The maximum number of bytes of a file: no model is larger.
  private static let mostBytes = 64 << 20

  /// Takes a snapshot of a watch's models. An unreadable folder counts as missing, an unreadable file as empty.
  package init(of watch: Configuration.Watch) {
    let files = Self.files(of: watch)
    times = Self.times(of: files)
    var content = Hasher()
    for (path, _) in files {
      content.combine(path.string)
      content.combine((try? LinuxFileSystem().read(path, limit: Self.mostBytes)) ?? [])
    }
    self.content = content.finalize()
  }

  /// The hash of names, sizes and times only; it reads no file.
  package static func times(of watch: Configuration.Watch) -> Int { times(of: files(of: watch)) }

  private static func times(of files: [(path: FilePath, status: FileStatus)]) -> Int {
    var times = Hasher()
    for (path, status) in files {
      for value in [status.size, status.modified] { times.combine(value) }
      times.combine(status.identity)
      times.combine(path.string)
    }
    return times.finalize()
  }

  /// A path and everything that `collect` finds below it: the files and folders that reading a model needs.
  static func entries(below path: FilePath) -> [(path: FilePath, isDirectory: Bool)] {
    var found: [(path: FilePath, status: FileStatus)] = []
    collect(path, depth: 0, isNamed: true, into: &found)
    var entries: [(path: FilePath, isDirectory: Bool)] = []
    var seen: Set<FilePath> = []
    for file in found.map(\.path) {
      var folders: [FilePath] = []
      var folder = file.removingLastComponent()
      while folder.starts(with: path), seen.insert(folder).inserted {
        folders.append(folder)
        guard folder != path else { break }
        folder.removeLastComponent()
      }
      entries += folders.reversed().map { ($0, true) } + [(file, false)]
    }
    return entries
  }

  private static func files(of watch: Configuration.Watch) -> [(path: FilePath, status: FileStatus)] {
    var found: [(path: FilePath, status: FileStatus)] = []
    for path in Set(watch.models + watch.mappings).sorted(by: { $0.string < $1.string }) {
      collect(path.resolvingLinks ?? path, depth: 0, isNamed: true, into: &found)
    }
    return found
  }

  private static func collect(
    _ path: FilePath, depth: Int, isNamed: Bool, into found: inout [(path: FilePath, status: FileStatus)]
  ) {
    let files = LinuxFileSystem()
    guard found.count < most, let status = (try? files.status(path)) ?? nil else { return }
    switch status.kind {
    case .regular:
      if isNamed || isModelFile(path.lastComponent?.string ?? "") { found.append((path, status)) }
    case .directory where depth < deepest:
      for name in ((try? files.names(in: path)) ?? []).sorted(by: { $0.string < $1.string }) {
        collect(path.appending(name), depth: depth + 1, isNamed: false, into: &found)
      }
    default: break
    }
  }

  private static func isModelFile(_ name: String) -> Bool {
    patterns.contains { $0.hasPrefix("*") ? name.hasSuffix($0.dropFirst()) : name == $0 }
  }
}
