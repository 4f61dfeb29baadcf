// A folder of stores as models: SwiftData ships no model files, so operators keep one store per version to migrate
// others. The stores are only read; no file is written beside them.

import Diagnostics
import Glibc
import ManagedObjectModel
import SystemPackage

/// Finds stores in folders, and makes models from them.
package enum StoreFolder {
  /// Extensions of stores' names.
  private static let extensions: Set<String> = ["store", "sqlite"]
  /// The depth of folders that are searched: one folder per version is usual.
  private static let depth = 3
  /// The most entries that are inspected.
  private static let most = 20_000

  /// Returns the store at a path, or those below a folder, with symbolic links resolved.
  package static func stores(at path: FilePath) throws(HopdError) -> [FilePath] {
    guard let real = path.resolvingLinks else {
      throw HopdError(.notFound, "there is no such file or folder", at: Place(file: path), hint: "check the path")
    }
    return StoreModels.isStore(real) ? [real] : stores(in: real)
  }

  /// Returns the stores below a folder, in the natural order of their paths, without hidden ones, which are backups and
  /// staged stores.
  static func stores(in folder: FilePath) -> [FilePath] {
    var (found, entries): ([FilePath], Int) = ([], 0)
    visit(folder, depth: 0, &found, &entries)
    return found.sorted { NaturalOrder.precedes($0.string, $1.string) }
  }

  private static func visit(_ folder: FilePath, depth: Int, _ found: inout [FilePath], _ entries: inout Int) {
    guard depth <= Self.depth, let directory = folder.withPlatformString({ opendir($0) }) else { return }
    defer { closedir(directory) }
    while entries < most, let entry = readdir(directory) {
      entries += 1
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
      }
      guard !name.hasPrefix("."), let component = FilePath.Component(name) else { continue }
      let path = folder.appending(component)
      var info = stat()
      // Links are not followed: a folder could contain itself.
      guard path.withPlatformString({ lstat($0, &info) }) == 0 else { continue }
      if info.st_mode & S_IFMT == S_IFDIR {
        visit(path, depth: depth + 1, &found, &entries)
      } else if info.st_mode & S_IFMT == S_IFREG, extensions.contains(component.extension ?? ""),
        StoreModels.isStore(path)
      {
        found.append(path)
      }
    }
  }

  /// Makes one model per app: stores with a common entity belong together. Two stores of one version count once.
  static func bundles(of parts: [ModelBundle], declaredOrder: [String]) throws(HopdError) -> [ModelBundle] {
    var groups: [(entities: Set<String>, parts: [ModelBundle])] = []
    for part in parts {
      guard let model = part.versions.first else { continue }
      var (entities, members) = (Set(model.entities.map(\.name)), [part])
      for group in groups where !group.entities.isDisjoint(with: entities) {
        entities.formUnion(group.entities)
        members = group.parts + members
      }
      groups.removeAll { !$0.entities.isDisjoint(with: entities) }
      groups.append((entities, members))
    }
    return try groups.map { group throws(HopdError) in
      var versions: Set<[String: VersionHash]> = []
      let distinct = group.parts.filter { versions.insert($0.versions.first?.versionHashes ?? [:]).inserted }
      if distinct.count == 1 { return distinct[0] }
      return try ModelChain.bundle(
        of: ModelChain.byIdentifier(distinct), declaredOrder: groups.count == 1 ? declaredOrder : [])
    }
  }
}

extension FilePath {
  /// The path with symbolic links resolved; nil if it does not exist.
  package var resolvingLinks: FilePath? {
    withPlatformString { name in
      guard let real = realpath(name, nil) else { return nil }
      defer { free(real) }
      return FilePath(platformString: real)
    }
  }
}
