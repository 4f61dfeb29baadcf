// Libraries give hints that hold for hopctl too. What only a watch can do about a store is said here.

import Diagnostics
import MigrationPlanning
import PersistentStore

extension HopdError {
  /// The first hint about a store of a watch; it says how the watch leaves out a store that is not for it.
  func hint(inWatch watch: String) -> String? {
    guard [.notAStore, .foreignStore, .cloudKitNotSupported].contains(code) else { return firstHint }
    let way = "add it to `exclude` of the watch \(watch.printableLine) to ignore it"
    return firstHint.map { "\($0)\($0.hasSuffix("?") ? "" : ";") \(way)" } ?? way
  }
}
