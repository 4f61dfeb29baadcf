// The pin of a restored store, which `hopctl resume` removes. It is a file beside the store, so no daemon is needed.

import Diagnostics
import DurableFiles
import PersistentStore
import StoreReplacement
import SystemPackage

/// A pin that was removed.
struct Unpinning {
  let store: FilePath
  /// What the pin said; nil if it could not be read.
  let pin: RestorePin?

  /// Removes the pin of a store; nil if it has none.
  init?(of location: CanonicalStoreLocation, _ output: OutputOptions) throws {
    let pins = PinStore(location: location, files: LinuxFileSystem())
    var pin: RestorePin?
    do { pin = try pins.read() } catch let error as HopdError where error.code == .recordUnreadable {
      output.warn([error])
    }
    guard try pins.remove() else { return nil }
    (store, self.pin) = (location.database, pin)
  }

  /// Prints what was done, and the command that has hopd migrate the store immediately.
  func report(_ output: OutputOptions, _ daemon: DaemonOptions) throws {
    try output.line(
      "unpinned: \(store.printable)" + (pin.map { " (\($0.account))" } ?? "") + "; hopd migrates it again")
    try output.line(
      "  after its next rescan, or immediately after: hopctl retry \(store.quotedForShell)\(daemon.words)")
  }

  /// The keys that it adds to the report.
  var json: JSONObject { ["store": store.string, "unpinned": true, "pin": pin.map { PinShape($0) }] }
}
