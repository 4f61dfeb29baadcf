// The end of the pins that the restore of a set has set. The pin of a single restore ends by the name of its store.

import Diagnostics
import DurableFiles
import HopdConfiguration
import PersistentStore
import StoreReplacement
import SystemPackage

/// Removes the pins of a group.
struct GroupUnpinning {
  /// Name of the group.
  let group: String
  /// A watch or folder; nil for all watches.
  let place: String?
  /// The configuration file with the watches; nil for the installed ones.
  let config: String?

  private struct Unpinned {
    let store: FilePath
    let pin: RestorePin
  }

  private static func configuration(_ config: String?) throws -> Configuration {
    guard let config else { return try ConfigurationLoader().load().configuration }
    return try ConfigurationLoader.load(file: FilePath(config).resolved()).configuration
  }

  /// Removes the pins, and reports the stores. Unreadable pins are reported, and the others are removed.
  func run(_ output: OutputOptions) throws {
    var problems: [HopdError] = []
    let unpinned = try removePins { problems.append($0) }
    for store in unpinned { try output.line("unpinned: \(store.store.printable) (\(store.pin.account))") }
    for problem in problems { ErrorReport.report(problem) }
    if unpinned.isEmpty, problems.isEmpty {
      throw HopdError(
        .notFound, "no store is pinned by the group \(group.printableLine) here",
        hint: "list pinned stores with `hopctl list --state pinned`, or pass another --config")
    }
    try output.line(
      "\(MessageFormatter.count(unpinned.count, "store", "stores")) unpinned; hopd migrates them after its next "
        + "rescan, or immediately after: hopctl retry --failed")
    try output.object([
      "command": "resume", "group": group,
      "stores": unpinned.map { ["store": $0.store.string, "pin": PinShape($0.pin)] as JSONObject },
      "problems": problems.map(\.json),
    ])
    if let first = problems.first { throw Finished(status: first.code.exit) }
  }

  private func removePins(problem: (HopdError) -> Void) throws -> [Unpinned] {
    var unpinned: [Unpinned] = []
    // The directory of one watch may be in that of another.
    var seen: Set<FilePath> = []
    for place in try places() {
      try place.forEach(
        { backups in
          let store = backups.location.database
          guard seen.insert(store).inserted else { return }
          let pins = PinStore(location: backups.location, files: LinuxFileSystem())
          guard let pin = try pins.read(), pin.group == group else { return }
          if try pins.remove() { unpinned.append(Unpinned(store: store, pin: pin)) }
        }, problem: problem)
    }
    return unpinned.sorted { $0.store.string < $1.store.string }
  }

  private func places() throws -> [SetPlace] {
    guard let place else {
      // The directory of a watch may be missing.
      return try Self.configuration(config).watches.compactMap { try? SetPlace($0) }
    }
    var options = RestoreSetOptions()
    options.config = config
    options.recursive = true
    return [try options.place(place)]
  }
}
