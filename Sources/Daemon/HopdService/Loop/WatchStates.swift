// What is known of the directories of the watches.

import Diagnostics
import SystemPackage

/// The directories of the watches: whether they can be read, and what was found there.
struct WatchStates {
  /// Watches whose directory cannot currently be read, and why.
  private(set) var degraded: [String: HopdError] = [:]
  /// Number of files per watch at the last scan; a watch has no entry before its first scan.
  private var files: [String: Int] = [:]
  /// The symbolic links that each watch leaves alone, in words.
  private(set) var links: [String: String] = [:]
  /// Watches whose records may contain removed stores.
  private var unseen: Set<String> = []

  /// The number of files in all watches.
  var fileCount: Int { files.values.reduce(0, &+) }

  func isScanned(_ watch: String) -> Bool { files[watch] != nil }

  /// A scan of a watch found so many files.
  mutating func scanned(_ watch: String, files count: Int) { files[watch] = count }

  /// The directory of a watch cannot be read now.
  mutating func degrade(_ watch: String, _ error: HopdError) {
    files[watch] = files[watch] ?? 0
    degraded[watch] = error
  }

  /// The directory of a watch can be read again.
  mutating func restore(_ watch: String) { degraded[watch] = nil }

  /// The last scan of a watch found so many symbolic links, which it leaves alone.
  mutating func found(links count: Int, _ first: FilePath?, in watch: String) {
    links[watch] = first.map { first in
      count == 1
        ? "a symbolic link of the watch \(watch): \(first.printable)"
        : "\(count) symbolic links of the watch \(watch), such as \(first.printable)"
    }
  }

  /// The watches of a new configuration are in force.
  mutating func configure(_ watches: [String]) {
    degraded = degraded.filter { watches.contains($0.key) }
    files = files.filter { watches.contains($0.key) }
    links = links.filter { watches.contains($0.key) }
  }

  /// The records of these watches may contain removed stores.
  mutating func markUnseen(_ watches: [String]) { unseen.formUnion(watches) }

  /// Returns the watches whose records may contain removed stores, once every file of theirs was inspected.
  mutating func takeUnseen(known: Int, unavailable: [String]) -> [String] {
    guard !unseen.isEmpty, known >= fileCount else { return [] }
    let served = unseen.subtracting(unavailable).filter(isScanned)
    unseen.subtract(served)
    return served.sorted()
  }
}
