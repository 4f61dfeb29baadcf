// Random numbers for tests: a failure can be repeated, because a seed gives the same numbers on every machine.

/// SplitMix64 (Steele, Lea, Flood 2014).
package struct Dice: RandomNumberGenerator {
  private var state: UInt64

  /// Starts at a seed.
  package init(seed: UInt64) { state = seed }

  /// The next value.
  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }

  /// Returns true with a probability of `percent`.
  package mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

  /// Returns a number from 0 to `count` - 1; 0 if `count` is not positive.
  package mutating func below(_ count: Int) -> Int { Int.random(in: 0..<max(1, count), using: &self) }

  /// Returns an element of a list that is not empty.
  package mutating func pick<Element>(_ list: [Element]) -> Element { list[below(list.count)] }
}
