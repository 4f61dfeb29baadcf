// Hints of libraries apply to hopctl too. This one applies only to a watch.

import Diagnostics
import MigrationPlanning
import PersistentStore

extension HopdError {
  /// The first hint about a store of a watch; it includes how to exclude a store that is not for the watch.
  func hint(inWatch watch: String) -> String? {
    guard [.notAStore, .foreignStore, .cloudKitNotSupported].contains(code) else { return firstHint }
    let way = "add it to `exclude` of the watch \(watch.printableLine) to ignore it"
    return firstHint.map { "\($0); \(way)" } ?? way
  }
}
