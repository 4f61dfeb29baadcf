// A copy of an object: the files that a fetch command put into an empty folder.

import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import MigrationPipeline
import PersistentStore
import SystemPackage

/// A fetched store.
struct FetchedStore {
  let location: StoreLocation
  let folder: ScratchDirectory
  /// The version of the object, as the fetch command printed it.
  let version: String
  /// The other files that the command put there.
  private let brought: Set<String>
  private let files = LinuxFileSystem(isDurable: false)

  /// Opens the copy in `folder`. Throws where the database is missing.
  init(location: StoreLocation, folder: ScratchDirectory, version: String) throws {
    (self.location, self.folder, self.version) = (location, folder, version)
    brought = Set(try files.names(in: folder.path).map(\.string))
    guard try files.status(location.database)?.kind == .regular else {
      throw HopdError(
        .objectRefused, "the fetch command ended with exit status 0, and brought no file {path}",
        hint: "it has to write the database there: {directory} with the last part of the key as file name")
    }
  }

  /// Removes the copy.
  func remove() { try? folder.remove() }

  /// Bytes of database and log.
  func size() throws -> Int64 {
    let database = try files.status(location.database)?.size ?? 0
    let log = try files.status(location.writeAheadLog)?.size ?? 0
    return database &+ log
  }

  /// Throws where a log came with the database: a command that stores one file would leave the old log beside the new
  /// database, and SQLite would play it into that.
  func requireNoLog() throws {
    guard let log = try firstLog() else { return }
    throw HopdError(
      .objectRefused, "a log with changes lies beside the object: \(log), and --store takes the database alone",
      hint: "close the store before it is uploaded; or keep it as one archive that --store packs from {directory}")
  }

  /// Throws where the migrated store is not the one file, with its external data, that the store command takes.
  func requireOneFile(takesFolder: Bool) throws {
    if let log = try firstLog() {
      throw HopdError(.internalError, "the migrated store still has a log: \(log)")
    }
    guard !takesFolder else { return }
    let own = [location.fileName, location.supportDirectory.lastComponent?.string ?? ""]
    let side = location.sideFiles.compactMap { $0.lastComponent?.string }
    let left = try files.names(in: folder.path).map(\.string)
      .filter { !own.contains($0) && !side.contains($0) && !brought.contains($0) }
    guard let first = left.first else { return }
    throw HopdError(
      .objectRefused, "the migration made \(first.printableLine) beside the store, which --store would not take along",
      hint: "have --store take {directory}, or choose a rule for invalid rows that keeps none beside the store")
  }

  /// A side file of SQLite that is not empty.
  private func firstLog() throws -> String? {
    for log in [location.writeAheadLog, location.rollbackJournal] {
      if let status = try files.status(log), status.size > 0 { return log.lastComponent?.string }
    }
    return nil
  }

  /// SHA-256 of the database and of what is in its support folder, with their names.
  func digest() throws -> String {
    var digest = ContentDigest.Running()
    try add(location.database, "", to: &digest)
    try addFolder(location.supportDirectory, "", depth: 0, to: &digest)
    return digest.sha256()
  }

  private func addFolder(
    _ path: FilePath, _ name: String, depth: Int, to digest: inout ContentDigest.Running
  ) throws {
    guard depth < 8, try files.status(path)?.kind == .directory else { return }
    for entry in try files.names(in: path) {
      let (below, text) = (path.appending(entry), "\(name)/\(entry.string)")
      if try files.status(below)?.kind == .directory {
        try addFolder(below, text, depth: depth + 1, to: &digest)
      } else {
        try add(below, text, to: &digest)
      }
    }
  }

  private func add(_ path: FilePath, _ name: String, to digest: inout ContentDigest.Running) throws {
    let descriptor = path.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
    guard descriptor >= 0 else { throw Errno(rawValue: errno) }
    defer { close(descriptor) }
    let size = try files.status(path)?.size ?? 0
    digest.add("\(name)\u{0}\(size)\u{0}".utf8)
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    while true {
      let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        throw Errno(rawValue: errno)
      }
      if count == 0 { return }
      digest.add(buffer[..<count])
    }
  }
}
