// The assignment of stores to workers. It depends on the store's name and the number of workers alone: the same on
// every machine, in every release, in any order.

/// A hash that never changes.
package enum StableHash {
  /// FNV-1a with 64 bits, its bits mixed by the finalizer of MurmurHash3: FNV alone leaves the high bits of short texts
  /// alike.
  package static func of(_ text: String) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
    hash ^= hash >> 33
    hash &*= 0xff51_afd7_ed55_8ccd
    hash ^= hash >> 33
    hash &*= 0xc4ce_b9fe_1a85_ec53
    return hash ^ hash >> 33
  }

  /// A number below `count` for a hash, by jump consistent hashing (Lamping and Veach, 2014): with one more worker each
  /// store keeps its number or gets the new one.
  package static func bucket(of hash: UInt64, among count: Int) -> Int {
    var (key, bucket, next): (UInt64, Int64, Int64) = (hash, 0, 0)
    while next < count {
      bucket = next
      key = key &* 2_862_933_555_777_941_757 &+ 1
      let leap = Double(bucket + 1) * (Double(Int64(1) << 31) / Double((key >> 33) + 1))
      next = leap < Double(Int64.max) ? Int64(leap) : .max
    }
    return Int(bucket)
  }
}
