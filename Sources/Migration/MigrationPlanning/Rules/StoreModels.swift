// A store as a model: the copy of its model that Core Data keeps in Z_MODELCACHE. SwiftData ships no model files, so
// this is how its versions are known.

import Diagnostics
import Glibc
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

/// Reads models from stores.
package enum StoreModels {
  /// Whether the path is a SQLite database. Only plain files are; a symbolic link is followed, as for every model.
  package static func isStore(_ path: FilePath) -> Bool { (try? beginsAsStore(path)) == true }

  /// Whether the path is a SQLite database, or a file that cannot be read: a command for a fleet must not take a
  /// store for another file because the disk fails.
  package static func mayBeStore(_ path: FilePath) -> Bool {
    do { return try beginsAsStore(path) } catch { return true }
  }

  /// Throws where that cannot be read. A missing file is not a database.
  private static func beginsAsStore(_ path: FilePath) throws(Errno) -> Bool {
    let descriptor = path.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else {
      let code = Errno(rawValue: errno)
      guard [.noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels].contains(code) else { throw code }
      return false
    }
    defer { close(descriptor) }
    var info = stat()
    guard fstat(descriptor, &info) == 0 else { throw Errno(rawValue: errno) }
    guard info.st_mode & S_IFMT == S_IFREG else { return false }
    let magic = Array("SQLite format 3\0".utf8)
    var bytes = [UInt8](repeating: 0, count: magic.count)
    let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
    if count < 0 { throw Errno(rawValue: errno) }
    return count == magic.count && bytes == magic
  }

  /// Returns the model that a store holds, as a model of one version.
  package static func bundle(ofStoreAt path: FilePath) throws(HopdError) -> ModelBundle {
    // The path of an opened store may not be a symbolic link.
    let location = StoreLocation(database: path.resolvingLinks ?? path)
    let place = Place(file: path)
    do {
      let found = try StoreReader.withUnchangedStore(at: location) { try model(of: $0, at: location) }
      guard let found else {
        throw HopdError(
          .noModels, "the store contains no copy of its model (Z_MODELCACHE), so it cannot stand in for one", at: place,
          hint: "pass the .momd, .mom, .xcdatamodeld or .xcdatamodel of its version")
      }
      return ModelBundle(
        name: path.stem ?? path.string, path: path, versions: [found.model], currentVersionName: found.model.name,
        warnings: found.warnings)
    } catch {
      throw (error as? HopdError ?? HopdError(.internalError, "the store's model cannot be read", cause: error))
        .located(place)
    }
  }

  /// Returns the numbers of a Schema.Version, such as 1.2.0; nil for any other text.
  static func schemaVersion(_ identifier: String) -> [Int]? {
    let parts = identifier.split(separator: ".", omittingEmptySubsequences: false)
    let numbers = parts.compactMap { part in part.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 } ? Int(part) : nil }
    return parts.count == 3 && numbers.count == 3 ? numbers : nil
  }

  /// Whether SwiftData made the store. Such a store has history tables from the beginning, one version identifier of
  /// three numbers, and a copy of a model with a named configuration (docs/formats/store-layout.md, "Store metadata").
  package static func isSwiftData(_ reader: StoreReader) throws -> Bool {
    let identifiers = try reader.metadata().versionIdentifiers
    guard identifiers.count == 1, let identifier = identifiers.first, schemaVersion(identifier) != nil,
      try HistoryLayout.read(from: reader).layout?.tables.isEmpty == false,
      let cached = try reader.cachedModel(name: identifier)
    else { return false }
    return !cached.model.configurations.isEmpty
  }

  /// Returns the model that an open store holds, named after its version identifier, or after the store's file if it
  /// has none.
  static func model(
    of reader: StoreReader, at location: StoreLocation
  ) throws -> (model: ManagedObjectModel, warnings: [ModelWarning])? {
    let stem = location.database.stem ?? location.fileName
    guard let found = try reader.cachedModel(name: stem) else { return nil }
    guard let identifier = found.model.versionIdentifiers.filter({ !$0.isEmpty }).min() else { return found }
    return (found.model.renamed(identifier), found.warnings)
  }
}
