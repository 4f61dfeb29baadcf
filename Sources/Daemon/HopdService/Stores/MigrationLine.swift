// Decides which store is migrated next. Each watch has its own queue, so that a watch with ten thousand stores does not
// block one with a single store.

import DequeModule

/// Stores that wait for their migration. Stores that an operator put first come first. Then comes the watch with the
/// highest priority; among watches of one priority, the one served longest ago; within a watch, the store that came
/// first. Every eighth store is the one that has waited longest, whatever its priority, so that none waits forever.
struct MigrationLine: Sendable {
  typealias Item = JobScheduler.Item

  /// What to do with the first item of a queue.
  enum Verdict {
    /// It may begin.
    case ready
    /// Its store's state has changed since it was queued.
    case stale
    /// It is parked until something changes.
    case halted
  }

  /// The number of starts after which the oldest has its turn.
  static let oldestEvery: UInt64 = 8

  /// Priorities of watches; 0 for those that are not named.
  var priorities: [String: Int] = [:]
  private var front: Deque<Item> = []
  private var lines: [String: Deque<Item>] = [:]
  /// The number of the start at which each watch was last served.
  private var served: [String: UInt64] = [:]
  private var starts: UInt64 = 0
  /// Parked items with their watch; nil for those that were put first.
  private(set) var parked: [(item: Item, watch: String?)] = []

  /// Appends an item to its watch's queue.
  mutating func append(_ item: Item, of watch: String) { lines[watch, default: []].append(item) }

  /// Puts an item before all others.
  mutating func putFirst(_ item: Item) { front.prepend(item) }

  /// Takes the next item. Skips watches that are `closed`.
  mutating func next(closed: (String) -> Bool, judge: (Item) -> Verdict) -> Item? {
    while let item = front.popFirst() {
      switch judge(item) {
      case .ready: return item
      case .stale: break
      case .halted: parked.append((item, nil))
      }
    }
    front = []  // Frees the memory of a long queue.
    guard let watch = nextWatch(closed, judge), let item = lines[watch]?.popFirst() else { return nil }
    starts += 1
    served[watch] = starts
    return item
  }

  /// The watch whose turn it is; nil if no watch has an item that may begin.
  private mutating func nextWatch(_ closed: (String) -> Bool, _ judge: (Item) -> Verdict) -> String? {
    var best: (watch: String, turn: UInt64)?
    let wantsOldest = (starts + 1) % Self.oldestEvery == 0
    for watch in lines.keys.sorted() where !closed(watch) {
      guard let turn = firstTurn(of: watch, judge) else { continue }
      guard let known = best else {
        best = (watch, turn)
        continue
      }
      if wantsOldest ? turn < known.turn : isBefore(watch, turn, known.watch, known.turn) { best = (watch, turn) }
    }
    return best?.watch
  }

  private func isBefore(_ watch: String, _ turn: UInt64, _ other: String, _ otherTurn: UInt64) -> Bool {
    let (mine, theirs) = (priorities[watch] ?? 0, priorities[other] ?? 0)
    if mine != theirs { return mine > theirs }
    let (last, otherLast) = (served[watch] ?? 0, served[other] ?? 0)
    return last == otherLast ? turn < otherTurn : last < otherLast
  }

  /// The turn of the first item of a watch's queue that may begin.
  private mutating func firstTurn(of watch: String, _ judge: (Item) -> Verdict) -> UInt64? {
    while let item = lines[watch]?.first {
      switch judge(item) {
      case .ready: return item.turn
      case .stale: break
      case .halted: parked.append((item, watch))
      }
      lines[watch]?.removeFirst()
    }
    lines[watch] = nil
    return nil
  }

  /// Returns parked items to their places.
  mutating func unpark() {
    for (item, watch) in parked.reversed() {
      if let watch { lines[watch, default: []].prepend(item) } else { front.prepend(item) }
    }
    parked = []
  }

  /// The number of items that may not begin now, at most.
  func halted(closed: (String) -> Bool) -> Int {
    parked.count + lines.reduce(0) { $0 + (closed($1.key) ? $1.value.count : 0) }
  }

  /// Watches with an item that may begin, as `judge` decides.
  mutating func watches(judge: (Item) -> Verdict) -> Set<String> {
    Set(lines.keys.filter { firstTurn(of: $0, judge) != nil })
  }
}
