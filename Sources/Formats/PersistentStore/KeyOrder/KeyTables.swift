// The two hash tables in which Core Data keeps the key names of an entity. Their order decides which end of a
// many-to-many inside one entity names the table, and the order of the order keys. The rules and known answers:
// docs/formats/join-table-names.md. All arithmetic wraps, as in Core Data.

/// A key name with its two hashes (docs/formats/join-table-names.md, "String hash").
package struct KeyName: Sendable, Hashable {
  /// The name.
  package let text: String
  /// Hash for table L.
  package let longHash: UInt32
  /// Hash for table T.
  package let shortHash: UInt32

  /// Computes the hashes of a name.
  package init(_ text: String) {
    self.text = text
    let units = Array(text.utf16)
    let count = units.count
    longHash =
      count <= 96
      ? KeyName.hash([units[...]], count: count)
      : KeyName.hash([units.prefix(32), units.dropFirst(count / 2 - 16).prefix(32), units.suffix(32)], count: count)
    shortHash =
      count < 24
      ? KeyName.hash([units[...]], count: count) : KeyName.hash([units.prefix(8), units.suffix(16)], count: count)
  }

  /// The hash of parts of a string of `count` units. Core Data processes four units at a time, with the same result:
  /// the factors are powers of 257.
  private static func hash(_ parts: [ArraySlice<UInt16>], count: Int) -> UInt32 {
    let length = UInt32(truncatingIfNeeded: count)
    let result = parts.joined().reduce(length) { $0 &* 257 &+ UInt32($1) }
    return result &+ (result << (length & 31))
  }

  /// The long hash, scrambled to a bucket of table L.
  package var scrambled: UInt32 {
    var a: UInt32 = 0x4B61_6E65 &+ longHash
    var b: UInt32 = 0x4B61_6E65
    var c: UInt32 = 1
    func mix(_ first: UInt32, _ second: UInt32, _ third: UInt32) {
      a = (a &- b &- c) ^ (c >> first)
      b = (b &- c &- a) ^ (a << second)
      c = (c &- a &- b) ^ (b >> third)
    }
    mix(13, 8, 13)
    mix(12, 16, 5)
    mix(3, 10, 15)
    return c
  }

  package static func == (left: KeyName, right: KeyName) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }
  package func hash(into hasher: inout Hasher) { hasher.combine(longHash) }
}

/// Table L: a set of key names that grows, in the order of its buckets (docs/formats/join-table-names.md, "Table L").
package struct GrowingKeyTable: Sendable {
  private var buckets: [KeyName?] = []
  private var members: Set<KeyName> = []
  private var capacity = 0

  /// Inserts names in turn into an empty table.
  package init(_ names: some Sequence<KeyName> = []) {
    for name in names { insert(name) }
  }

  /// The names in ascending bucket order.
  package var names: [KeyName] { buckets.compactMap(\.self) }
  /// Number of names.
  package var count: Int { members.count }
  /// The buckets, including empty ones.
  package var layout: [String?] { buckets.map { $0?.text } }

  /// Whether the table contains the name.
  package func contains(_ name: KeyName) -> Bool { members.contains(name) }

  /// Inserts a name; does nothing if the table has it.
  package mutating func insert(_ name: KeyName) {
    guard members.insert(name).inserted else { return }
    let used = members.count - 1
    if used == capacity {
      let old = names
      capacity = 3 << GrowingKeyTable.bitLength(used / 3)
      buckets = Array(repeating: nil, count: 4 << GrowingKeyTable.bitLength((capacity - 1) / 3))
      for name in old { place(name) }
    }
    place(name)
  }

  /// Finds a free bucket; there is always one, because a table has more buckets than it may have names.
  private mutating func place(_ name: KeyName) {
    var bucket = Int(name.scrambled) & (buckets.count - 1)
    while buckets[bucket] != nil { bucket = (bucket + 1) % buckets.count }
    buckets[bucket] = name
  }

  private static func bitLength(_ number: Int) -> Int { Int.bitWidth - number.leadingZeroBitCount }
}

/// Table T: all names at once, in a table whose size follows from their number (docs/formats/join-table-names.md,
/// "Table T and the order S").
package enum SizedKeyTable {
  /// The largest number of names for each number of buckets.
  private static let sizes: [(names: Int, buckets: Int)] = [
    (4, 5), (8, 11), (17, 23), (29, 41), (47, 67), (76, 113), (123, 199), (199, 317), (322, 521), (521, 839),
    (843, 1361), (1364, 2207), (2207, 3571), (3571, 5779),
  ]

  /// Returns the names in ascending bucket order; nil for more names than the known sizes allow.
  package static func order(_ names: [KeyName]) -> [KeyName]? {
    guard let size = sizes.first(where: { names.count <= $0.names })?.buckets else { return nil }
    var buckets: [KeyName?] = Array(repeating: nil, count: size)
    for name in names {
      var bucket = Int(name.shortHash % UInt32(size))
      while buckets[bucket] != nil { bucket = (bucket + 1) % size }
      buckets[bucket] = name
    }
    return buckets.compactMap(\.self)
  }
}
