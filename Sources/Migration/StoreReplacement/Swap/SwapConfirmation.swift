// Step A8 of docs/formats/replacement.md, "Mode rename": the new store is read back before success is reported. It is
// read from the disk without locks and without a log: a log that exists by now is of a program that opened the new
// store, or came too late (LateFiles), and in neither case describes what the rename put in place.

import Diagnostics
import DurableFiles
import Glibc
import PersistentStore
import SQLite

extension StoreSwap {
  /// How often hopd rereads a store that another program writes meanwhile.
  private static let attempts = 50

  /// Closes hopd's connection, and reads the new store back. Throws `.storeDamaged` where it is not the verified one.
  func confirm(_ store: LockedStore, _ version: StoreVersionMark) throws {
    let location = store.location
    if let connection = try? store.connection, connection.isInTransaction { try? connection.execute("ROLLBACK") }
    store.closeConnection()
    for attempt in 1... {
      let before = try SourceFingerprint(of: location, files: files)
      do {
        return try readBack(location, version)
      } catch {
        // Pages that change while they are read look like damage.
        guard attempt < Self.attempts, try SourceFingerprint(of: location, files: files) != before else {
          throw error
        }
        keepAlive()
        usleep(100_000)
      }
    }
  }

  private func readBack(_ location: CanonicalStoreLocation, _ version: StoreVersionMark) throws {
    try HopdError.sqlite("read the new store back", location.database) {
      let connection = try Connection(path: location.database, access: .immutable)
      connection.setProgressHandler(every: 200_000) { [keepAlive] in
        keepAlive()
        return true
      }
      try requireSound(connection, version, at: location)
    }
  }

  /// Throws `.storeDamaged` unless the new store reads as a sound store of its version.
  func requireSound(
    _ connection: Connection, _ version: StoreVersionMark, at location: CanonicalStoreLocation
  ) throws {
    func damaged(_ message: String) -> HopdError {
      HopdError(.storeDamaged, message, at: Place(store: location.database))
    }
    guard try identify(connection) == version.digest else {
      throw damaged("the new store does not read back as version \(version.name)")
    }
    guard try connection.text("PRAGMA quick_check(1)") == "ok" else {
      throw damaged("quick_check of the new store finds damage")
    }
  }
}
