// What is on the disk of a watch's models and mapping models, in two numbers: one of sizes and times, which is quick
// to take, and one of the content, which says whether anything has changed.

import Diagnostics
import DurableFiles
import HopdConfiguration
import MigrationPlanning
import SystemPackage

/// The files of models and mapping models as they were at one moment. The numbers hold in this process.
package struct ModelsMark: Sendable, Hashable {
  /// Names, sizes and times of the files.
  package let times: Int
  /// Names and bytes of the files.
  package let content: Int

  /// Names that models and mapping models consist of, as patterns.
  package static let patterns = [
    "contents", "elements", ".xccurrentversion", "VersionInfo.plist", "*.mom", "*.omo", "xcmapping.xml", "*.cdm",
    "*.hopmap.toml", "*.hopstages.toml",
  ]

  /// Folders below folders, and files, that are inspected most.
  private static let deepest = 16
  private static let most = 20_000
  /// Bytes of a file that count: no model is larger.
  private static let mostBytes = 64 << 20

  /// Takes the mark of a watch's models. What cannot be read counts as not there.
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

  /// The number of sizes and times alone, without reading a file.
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

  /// A path, and all that `collect` finds below it: what has to be read of a model.
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
