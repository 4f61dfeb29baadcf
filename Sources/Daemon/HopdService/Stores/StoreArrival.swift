// Checks that all files of a store have arrived. A database and its write-ahead log may arrive one after the other; if
// the log arrives after the migration, the next program that opens the store would play it into the new store.

import Diagnostics
import Glibc
import PersistentStore
import SystemPackage

extension HopdError.Code {
  /// Part of the store is still missing.
  package static let storeIncomplete = HopdError.Code("store-incomplete", exit: .unavailable, isRetryable: true)
}

/// Detects stores whose files are not complete yet. The watcher detects files in transfer.
enum StoreArrival {
  /// Throws `.storeIncomplete` for a store in WAL mode that has the index of a log but no log: SQLite removes the index
  /// first, so the copy is not complete.
  static func requireComplete(_ location: StoreLocation) throws(HopdError) {
    guard location.sharedMemory.linkStatus() != nil, location.writeAheadLog.linkStatus() == nil else { return }
    let keepsLog: Bool
    do {
      keepsLog = try StoreReader.withUnchangedStore(at: location) { _ in try StoreReader.keepsWriteAheadLog(location) }
    } catch {
      // The inspection that follows reports what is wrong with the file.
      return
    }
    guard keepsLog, location.sharedMemory.linkStatus() != nil, location.writeAheadLog.linkStatus() == nil else {
      return
    }
    let index = location.sharedMemory.printable
    throw HopdError(
      .storeIncomplete, "its -wal file is missing, but its -shm file exists: it may still be being copied",
      at: Place(store: location.database),
      hint: "copy \(location.writeAheadLog.printable) too; if it does not exist, remove \(index)")
  }
}
