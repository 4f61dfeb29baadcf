// Whose turn it is. Each watch has a line of its own, so that a watch with ten thousand stores and one with a single
// store both move.

import DequeModule

/// Stores that wait for their migration. The rule: those that an operator put in front come first. Then comes the watch
/// with the highest priority; among watches of one priority the one that was served the longest ago; within a watch the
/// store that came first. Every eighth store is the one that has waited longest of all, whatever its priority, so that
/// none waits for ever.
struct MigrationLine: Sendable {
  typealias Item = JobScheduler.Item

  /// What is to be done with the first of a line.
  enum Verdict {
    /// It may begin.
    case ready
    /// It is no longer where it was when it was put in line.
    case stale
    /// It waits aside until something changes.
    case held
  }

  /// Every so many starts the oldest has its turn.
  static let oldestEvery: UInt64 = 8

  /// Priorities of watches; 0 for those that are not named.
  var priorities: [String: Int] = [:]
  private var front: Deque<Item> = []
  private var lines: [String: Deque<Item>] = [:]
  /// At which start a watch was last served.
  private var served: [String: UInt64] = [:]
  private var starts: UInt64 = 0
  /// Those that wait aside, with their watch; nil for those of the front.
  private(set) var parked: [(item: Item, watch: String?)] = []

  /// Puts one at the end of its watch's line.
  mutating func append(_ item: Item, of watch: String) { lines[watch, default: []].append(item) }

  /// Puts one in front of all.
  mutating func putFirst(_ item: Item) { front.prepend(item) }

  /// Takes the next one. Lines of watches that are `closed` stand still.
  mutating func next(closed: (String) -> Bool, judge: (Item) -> Verdict) -> Item? {
    while let item = front.popFirst() {
      switch judge(item) {
      case .ready: return item
      case .stale: break
      case .held: parked.append((item, nil))
      }
    }
    front = []  // The memory of a long queue is not kept.
    guard let watch = nextWatch(closed, judge), let item = lines[watch]?.popFirst() else { return nil }
    starts += 1
    served[watch] = starts
    return item
  }

  /// Whose turn it is, where any has one that may begin.
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

  /// The turn of the first in a watch's line that may begin.
  private mutating func firstTurn(of watch: String, _ judge: (Item) -> Verdict) -> UInt64? {
    while let item = lines[watch]?.first {
      switch judge(item) {
      case .ready: return item.turn
      case .stale: break
      case .held: parked.append((item, watch))
      }
      lines[watch]?.removeFirst()
    }
    lines[watch] = nil
    return nil
  }

  /// Those that wait aside go back to their places.
  mutating func unpark() {
    for (item, watch) in parked.reversed() {
      if let watch { lines[watch, default: []].prepend(item) } else { front.prepend(item) }
    }
    parked = []
  }

  /// How many wait that may not begin now, at most.
  func held(closed: (String) -> Bool) -> Int {
    parked.count + lines.reduce(0) { $0 + (closed($1.key) ? $1.value.count : 0) }
  }

  /// Watches with somebody in line.
  mutating func watches(judge: (Item) -> Verdict) -> Set<String> {
    Set(lines.keys.filter { firstTurn(of: $0, judge) != nil })
  }
}
