// Names that programs give to a file while they send it. rsync, for example, writes `.a.sqlite-wal.Xy12Zw` and renames
// it when it is complete. While such a file is there, the store beside it is not whole.

/// What the name of a file in transfer says.
enum TransferName {
  /// Names that the file may get when it has arrived; empty for a name that no program sends under.
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
  /// Stores for which it was reported already that they wait.
  private var told: Set<[UInt8]> = []

  /// How long a file may stay unchanged before it counts as left over from a transfer that was given up.
  static let patience: Int64 = 3600

  /// Notes a file in transfer.
  mutating func insert(_ transfer: [UInt8], of store: [UInt8]) { names[store, default: []].insert(transfer) }

  /// Forgets one that has gone.
  mutating func remove(_ transfer: [UInt8], of store: [UInt8]) {
    names[store]?.remove(transfer)
    if names[store]?.isEmpty == true { names[store] = nil }
  }

  /// Forgets all: a scan finds those that are there.
  mutating func removeAll() { names = [:] }

  /// A file that is still being sent for this store, if there is one. `changed` answers seconds since its last change,
  /// nil when it is gone.
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

  /// Is it news that the store waits?
  mutating func isNews(_ store: [UInt8]) -> Bool { told.insert(store).inserted }

  /// The store waits no longer.
  mutating func arrived(_ store: [UInt8]) { told.remove(store) }
}
