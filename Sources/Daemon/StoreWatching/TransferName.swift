// Names that programs give to a file while they send it. rsync, for example, writes `.a.sqlite-wal.Xy12Zw` and renames
// it when it is complete. While such a file exists, its store is incomplete.

/// Finds the final names of a file in transfer.
enum TransferName {
  /// Names that the file may get after the transfer; empty if no program uses such a name for a transfer.
  static func destinations(of name: [UInt8]) -> [[UInt8]] {
    var found: [[UInt8]] = []
    // rsync: .NAME.XXXXXX
    if name.first == dot, name.count > 8, name[name.count - 7] == dot, name.suffix(6).allSatisfy(isAlphanumeric) {
      found.append(Array(name.dropFirst().dropLast(7)))
    }
    // proftpd: .in.NAME.   Syncthing: .syncthing.NAME.tmp
    for (prefix, suffix) in [(".in.", "."), (".syncthing.", ".tmp")] {
      if let inner = stripped(name, prefix, suffix) { found.append(inner) }
    }
    // WinSCP, browsers and others: NAME.filepart, NAME.part; rclone: NAME.XXXXXXXX.partial
    for suffix in [".filepart", ".part", ".partial"] {
      guard let inner = stripped(name, "", suffix) else { continue }
      found.append(inner)
      if inner.count > 9, inner[inner.count - 9] == dot, inner.suffix(8).allSatisfy(isAlphanumeric) {
        found.append(Array(inner.dropLast(9)))
      }
    }
    return found
  }

  private static let dot = UInt8(ascii: ".")

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
  }

  private static func stripped(_ name: [UInt8], _ prefix: String, _ suffix: String) -> [UInt8]? {
    let (prefix, suffix) = (Array(prefix.utf8), Array(suffix.utf8))
    guard name.count > prefix.count + suffix.count, name.starts(with: prefix), name.suffix(suffix.count) == suffix[...]
    else { return nil }
    return Array(name.dropFirst(prefix.count).dropLast(suffix.count))
  }
}

/// Files in transfer below one watched directory, by the store that they belong to.
struct Transfers {
  private var names: [[UInt8]: Set<[UInt8]>] = [:]
  /// Stores that were already reported as waiting.
  private var reported: Set<[UInt8]> = []

  /// Seconds that a file may stay unchanged before it counts as left over from an abandoned transfer.
  static let patience: Int64 = 3600

  /// Notes a file in transfer.
  mutating func insert(_ transfer: [UInt8], of store: [UInt8]) { names[store, default: []].insert(transfer) }

  /// Forgets a file in transfer that was removed.
  mutating func remove(_ transfer: [UInt8], of store: [UInt8]) {
    names[store]?.remove(transfer)
    if names[store]?.isEmpty == true { names[store] = nil }
  }

  /// Forgets all before a scan, which finds those that still exist.
  mutating func removeAll() { names = [:] }

  /// Returns a file that is still being sent for this store, if there is one. `changed` returns the seconds since the
  /// file's last change, nil if it no longer exists.
  mutating func obstacle(for store: [UInt8], changed: ([UInt8]) -> Int64?) -> [UInt8]? {
    guard let candidates = names[store] else { return nil }
    for name in candidates.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      guard let age = changed(name) else {
        remove(name, of: store)
        continue
      }
      if age < Transfers.patience { return name }
    }
    return nil
  }

  /// Notes that the store waits; false if that was already noted.
  mutating func isNews(_ store: [UInt8]) -> Bool { reported.insert(store).inserted }

  /// Notes that the store no longer waits.
  mutating func arrived(_ store: [UInt8]) { reported.remove(store) }
}
