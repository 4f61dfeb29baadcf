// Has all of a store arrived? A database and its write-ahead log may come one after the other, and a log that comes
// when the store is migrated already would be played into the new store by whoever opens it next.

import Diagnostics
import Glibc
import PersistentStore
import SystemPackage

extension HopdError.Code {
  /// Part of the store is still to come.
  package static let storeIncomplete = HopdError.Code("store-incomplete", exit: .unavailable, isRetryable: true)
}

/// Looks for signs that the files of a store do not belong together yet. Files that are being sent are seen by the
/// watcher.
enum StoreArrival {
  /// Throws `.storeIncomplete` for a store in WAL mode that has the index of a log beside it, but no log: SQLite
  /// removes the index first, so this is the middle of a copy.
  static func requireComplete(_ location: StoreLocation) throws(HopdError) {
    guard isThere(location.sharedMemory), !isThere(location.writeAheadLog) else { return }
    let keepsLog: Bool
    do {
      keepsLog = try StoreReader.withUnchangedStore(at: location) { _ in try StoreReader.keepsWriteAheadLog(location) }
    } catch {
      // What is wrong with the file is for the look to tell.
      return
    }
    guard keepsLog, isThere(location.sharedMemory), !isThere(location.writeAheadLog) else { return }
    let index = location.sharedMemory.printable
    throw HopdError(
      .storeIncomplete, "its write-ahead log is missing, although the log's index is there: is it still being copied?",
      at: Place(store: location.database),
      hint: "copy \(location.writeAheadLog.printable) too; if there is none, remove \(index)")
  }

  private static func isThere(_ path: FilePath) -> Bool {
    var status = stat()
    return path.withPlatformString { lstat($0, &status) } == 0
  }
}
