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
  /// A watch or folder; nil for all watches.
  let name: String?
  /// Name of the group; nil for all groups.
  let group: String?
  /// The configuration file with the watches; nil for the installed ones.
  let config: String?

  private struct Released {
    let store: FilePath
    let pin: RestorePin
  }

  /// Whether a name is that of a folder or of a watch, rather than of a store.
  static func isSet(_ name: String, config: String?) -> Bool {
    switch try? LinuxFileSystem().status(FilePath(name).resolved())?.kind {
    case .directory: return true
    case .some: return false
    case nil: return !name.contains("/") && (try? configuration(config))?.watch(named: name) != nil
    }
  }

  private static func configuration(_ config: String?) throws -> Configuration {
    guard let config else { return try ConfigurationLoader().load().configuration }
    return try ConfigurationLoader.load(file: FilePath(config).resolved()).configuration
  }

  /// Removes the pins, and reports the stores. What cannot be read is told, and the others are released.
  func run(_ output: OutputOptions) throws {
    var problems: [HopdError] = []
    let released = try removePins { problems.append($0) }
    for store in released { try output.line("released \(store.store.printable): it was \(store.pin.account)") }
    for problem in problems { ErrorReport.report(problem) }
    if released.isEmpty, problems.isEmpty {
      throw HopdError(
        .notFound, "no store is pinned as \(group.map { "the group \($0.printableLine)" } ?? "a group") here",
        hint: "`hopctl list --state held-back` lists pinned stores; the group may be in another --config")
    }
    try output.line(
      "\(MessageFormatter.count(released.count, "store", "stores")) released; hopd migrates them after its next "
        + "rescan, or at once after: hopctl retry --failed")
    try output.object([
      "group": group,
      "stores": released.map { ["store": $0.store.string, "pin": PinShape($0.pin)] as JSONObject },
      "problems": problems.map(\.json),
    ])
    if let first = problems.first { throw Finished(status: first.code.exit) }
  }

  private func removePins(problem: (HopdError) -> Void) throws -> [Released] {
    var released: [Released] = []
    // The directory of one watch may be in that of another.
    var seen: Set<FilePath> = []
    for place in try places() {
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

  private func places() throws -> [SetPlace] {
    guard let name else {
      // The directory of a watch may be missing.
      return try Self.configuration(config).watches.compactMap { try? SetPlace($0) }
    }
    var options = RestoreSetOptions()
    options.config = config
    options.recursive = true
    return [try options.place(name)]
  }
}
