// The release of stores that the restore of a set pinned: all of one group, or all groups of a watch or folder. A pin
// that the restore of one store made is released by the name of that store alone.

import Diagnostics
import DurableFiles
import HopdConfiguration
import PersistentStore
import StoreReplacement
import SystemPackage

/// Releases the stores of groups.
struct GroupRelease {
  let places: [SetPlace]
  /// Name of the group; nil for all groups.
  let group: String?

  /// A released store.
  struct Released {
    let store: FilePath
    let pin: RestorePin
  }

  /// The stores of the watch that has this name; nil if the configuration has no such watch.
  static func places(ofWatch name: String, in configuration: Configuration) throws -> [SetPlace]? {
    try configuration.watch(named: name).map { [try SetPlace($0)] }
  }

  /// The stores of all watches. The directory of a watch may be missing.
  static func places(in configuration: Configuration) -> [SetPlace] {
    configuration.watches.compactMap { try? SetPlace($0) }
  }

  /// Removes the pins, and returns the stores. Reports what cannot be read or removed to `problem`, and continues.
  func run(problem: (HopdError) -> Void) throws -> [Released] {
    var released: [Released] = []
    // The directory of one watch may be in that of another.
    var seen: Set<FilePath> = []
    for place in places {
      try place.forEach(
        { backups in
          let store = backups.location.database
          guard seen.insert(store).inserted else { return }
          let pins = PinStore(location: backups.location, files: LinuxFileSystem())
          guard let pin = try pins.read(), let name = pin.group, group == nil || name == group else { return }
          if try pins.remove() { released.append(Released(store: store, pin: pin)) }
        }, problem: problem)
    }
    return released.sorted { $0.store.string < $1.store.string }
  }
}
