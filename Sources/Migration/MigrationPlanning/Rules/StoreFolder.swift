// A folder of stores as models: SwiftData ships no model files, so operators keep one store per version to migrate
// others. The stores are only read; no file is written beside them.

import Diagnostics
import Glibc
import ManagedObjectModel
import PersistentStore
import SystemPackage

/// Finds stores in folders, and makes models from them.
package enum StoreFolder {
  /// Extensions of stores' names.
  private static let extensions: Set<String> = ["store", "sqlite"]
  /// The depth of folders that are searched: one folder per version is usual.
  private static let depth = 3
  /// The maximum number of entries that are inspected.
  private static let most = 20_000

  /// Returns the store at a path, or those below a folder, with symbolic links resolved.
  package static func stores(at path: FilePath) throws(HopdError) -> [FilePath] {
    guard let real = path.resolvingLinks else {
      throw HopdError(.notFound, "no such file or directory", at: Place(file: path), hint: "check the path")
    }
    if StoreModels.isStore(real) { return [real] }
    var failures: [HopdError] = []
    let found = stores(in: real, &failures)
    if let first = failures.first { throw first }
    return found
  }

  /// Returns the stores below a folder, in the natural order of their paths, without hidden ones, which are backups and
  /// staged stores. Adds why a folder could not be read to its end: the stores in it may be the newest.
  static func stores(in folder: FilePath, _ failures: inout [HopdError]) -> [FilePath] {
    var search = Search()
    search.visit(folder, depth: 0)
    failures += search.failures
    return search.found.sorted { NaturalOrder.precedes($0.string, $1.string) }
  }

  /// A search below a folder.
  private struct Search {
    var found: [FilePath] = []
    var failures: [HopdError] = []
    private var entries = 0

    mutating func visit(_ folder: FilePath, depth: Int) {
      guard depth <= StoreFolder.depth, entries < StoreFolder.most else { return }
      var names: [FilePath.Component] = []
      do throws(Errno) {
        try folder.readEntries { entry in
          if let name = String(validatingCString: entry.name), !name.hasPrefix("."),
            let component = FilePath.Component(name)
          {
            entries += 1
            names.append(component)
          }
          return entries < StoreFolder.most
        }
      } catch {
        note(error, folder)
      }
      if entries == StoreFolder.most {
        failures.append(
          HopdError(
            .modelTooLarge, "only the first \(StoreFolder.most) files and directories are searched for stores",
            at: Place(file: folder),
            hint: "pass a directory that contains only the stores of the versions"))
      }
      for name in names { inspect(folder.appending(name), depth: depth) }
    }

    private mutating func inspect(_ path: FilePath, depth: Int) {
      var info = stat()
      // Links are not followed: a folder could contain itself.
      guard path.withPlatformString({ lstat($0, &info) }) == 0 else { return note(Errno(rawValue: errno), path) }
      if info.st_mode & S_IFMT == S_IFDIR {
        visit(path, depth: depth + 1)
      } else if info.st_mode & S_IFMT == S_IFREG, StoreFolder.extensions.contains(path.extension ?? ""),
        StoreModels.isStore(path)
      {
        found.append(path)
      }
    }

    private mutating func note(_ code: Errno, _ path: FilePath) {
      guard code != .noSuchFileOrDirectory else { return }
      failures.append(
        HopdError(
          code == .permissionDenied ? .noPermission : .inputOutput, "it cannot be searched for stores",
          at: Place(file: path), cause: code, hint: "ls -ld \(path.quotedForShell)"))
    }
  }

  /// Creates one model per app: stores with a common entity belong together. Two stores of one version count once.
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
      let declared = groups.count == 1 ? declaredOrder : []
      if let known = ModelChain.byIdentifier(distinct) {
        return try ModelChain.bundle(of: known, declaredOrder: declared)
      }
      let guessed = byNumber(distinct)
      let bundle = try ModelChain.bundle(of: guessed, declaredOrder: declared)
      if declared.isEmpty { try requireNoContradiction(guessed, of: group.parts, names: bundle.versions.map(\.name)) }
      return bundle
    }
  }

  /// Returns stores in the order of the numbers in their files' names, if each has one at its end; otherwise as given.
  private static func byNumber(_ parts: [ModelBundle]) -> [ModelBundle] {
    guard let names = NaturalOrder.byFinalNumber(parts.map(\.name)) else { return parts }
    return names.compactMap { name in parts.first { $0.name == name } }
  }

  /// Throws if the order is only that of the files' names, and every store of some version was written by an older
  /// framework than every store of a version before it: a store could go to an older model, which drops values.
  private static func requireNoContradiction(
    _ versions: [ModelBundle], of stores: [ModelBundle], names: [String]
  ) throws(HopdError) {
    let written = versions.map { version in
      stores.filter { $0.versions.first?.versionHashes == version.versions.first?.versionHashes }
        .compactMap { framework(ofStoreAt: $0.path) }
    }
    for (later, second) in written.enumerated() {
      guard let newest = second.max() else { continue }
      guard let earlier = written[..<later].firstIndex(where: { $0.min().map { $0 > newest } ?? false }) else {
        continue
      }
      let framework = written[earlier].min() ?? 0
      throw HopdError(
        .versionOrder,
        "nothing but the names of the stores gives the order of their versions, and their contents contradict it: "
          + "“\(names[earlier])” would come before “\(names[later])”, but was written by the newer framework "
          + "(\(framework), not \(newest))", at: Place(file: versions[later].path),
        hint: "declare the order, oldest first, with --order (`versions` in the configuration); the versions are: "
          + names.map { "\"\($0)\"" }.joined(separator: ", "))
    }
  }

  /// Returns the framework that wrote a store last; nil if the store does not say.
  private static func framework(ofStoreAt path: FilePath) -> Int64? {
    let found = try? StoreReader.withUnchangedStore(at: StoreLocation(database: path.resolvingLinks ?? path)) {
      try $0.metadata().frameworkVersion
    }
    return found.flatMap { $0 > 0 ? $0 : nil }
  }
}
