// When has a file come to rest? A store that is being copied into the directory must not be opened halfway. The machine
// has no clock and no disk: it is told what was seen and when, says when it wants to look again, and answers whether a
// file that was inspected may be reported. One small value per file; only files in motion carry a deadline.

import HeapModule

/// What lstat tells of a file and of the side files that belong to it.
package struct FileObservation: Hashable, Sendable {
  /// Size in bytes.
  package var size: Int64
  /// Time of the last change in nanoseconds; compared for equality only, so that a clock that jumps does no harm.
  package var modified: Int64
  /// Inode number.
  package var inode: UInt64
  /// Sizes and times of the side files, folded into one number.
  package var sides: UInt64 = 0
}

/// The states of all files of one directory tree: in motion, or at rest and reported.
package struct SettleMachine<Name: Hashable & Sendable>: Sendable {
  /// A file at rest. There may be a hundred thousand of them, so it is kept in 16 bytes.
  private struct Rest: Sendable {
    /// What lstat told, as a keyed hash: of 2^64 changes it misses one.
    var digest: Int
    /// The scan that saw it last.
    var scan: UInt32
  }

  /// A file in motion.
  private struct State: Sendable {
    /// As of a file at rest.
    var digest: Int
    /// When to look again; nil for one that is being inspected.
    var deadline: ContinuousClock.Instant?
    /// Was the file reported to the caller at some time?
    var isReported = false
    /// Has the file changed since it was reported, as far as looking at it showed?
    var hasChanged = true
    /// Which entry of the heap is its own, if any: at most one per file, however often it moves.
    var ticket: UInt64?
    /// The scan that saw it last.
    var scan: UInt32
  }

  /// How long a file must be quiet.
  package let settle: Duration
  private var states: [Name: State] = [:]
  private var resting: [Name: Rest] = [:]
  private var heap = Heap<DueFile<Name>>()
  private var scan: UInt32 = 0
  private var lastTicket: UInt64 = 0

  /// An empty machine.
  package init(settle: Duration) { self.settle = settle }

  /// Number of files known.
  package var count: Int { states.count + resting.count }
  /// Number of files in motion: those that take more than a few bytes.
  package var unsettledCount: Int { states.count }
  /// When `due` will have something, nil while everything is at rest.
  package var nextDeadline: ContinuousClock.Instant? { heap.min?.deadline }

  /// Is the file known?
  package func knows(_ name: Name) -> Bool { states[name] != nil || resting[name] != nil }

  /// Something happened to the file, nobody has looked what. Unknown files are not made known by this.
  package mutating func touched(_ name: Name, now: ContinuousClock.Instant) {
    guard var state = states[name] ?? aroused(name) else { return }
    move(name, &state, now: now)
    states[name] = state
  }

  /// A side file changed that mere readers change too (-shm): a file in motion stays so for longer, a file at rest
  /// stays at rest.
  package mutating func nudged(_ name: Name, now: ContinuousClock.Instant) {
    if states[name]?.deadline != nil { touched(name, now: now) }
  }

  /// Somebody inspected the file; nil says that it is not there, or is none we may touch.
  ///
  /// True says that a file which was reported before has gone.
  @discardableResult
  package mutating func observed(
    _ name: Name, _ observation: FileObservation?, now: ContinuousClock.Instant
  ) -> Bool {
    guard let observation else {
      if resting.removeValue(forKey: name) != nil { return true }
      return states.removeValue(forKey: name)?.isReported ?? false
    }
    let digest = observation.hashValue
    if let known = resting[name], known.digest == digest {
      resting[name]?.scan = scan
      return false
    }
    guard var state = states[name] ?? aroused(name) else {
      var state = State(digest: digest, scan: scan)
      move(name, &state, now: now)
      states[name] = state
      return false
    }
    state.scan = scan
    _ = noticesChange(name, &state, digest, now: now)
    states[name] = state
    return false
  }

  /// Notes what a look at a file showed; true where the file has changed, so that it moves again.
  private mutating func noticesChange(
    _ name: Name, _ state: inout State, _ digest: Int, now: ContinuousClock.Instant
  ) -> Bool {
    guard state.digest != digest else { return false }
    state.digest = digest
    state.hasChanged = true
    move(name, &state, now: now)
    return true
  }

  /// Files whose time has come, at most `limit`; the caller inspects each and tells `looked`.
  package mutating func due(now: ContinuousClock.Instant, limit: Int = .max) -> [Name] {
    var names: [Name] = []
    while names.count < limit, let first = heap.min, first.deadline <= now, let entry = heap.popMin() {
      // An entry without its file is left from one that was deleted; the file of that name now has its own.
      guard var state = states[entry.name], state.ticket == entry.ticket else { continue }
      state.ticket = nil
      if let deadline = state.deadline {
        if deadline <= now {
          names.append(entry.name)
        } else {
          enqueue(entry.name, &state, at: deadline)  // It moved while it waited.
        }
      }
      states[entry.name] = state
    }
    // The memory of a burst of files is not kept.
    if heap.isEmpty { heap = [] }
    return names
  }

  /// What a file answered that was due: report it, wait on, or forget it.
  package enum Verdict: Sendable, Hashable {
    /// At rest, and changed since it was last reported: the caller reports it, once.
    case settled
    /// At rest, and nothing changed but the noise.
    case unchanged
    /// Still in motion.
    case moving
    /// Gone, and it had been reported before.
    case vanished
    /// Gone before it was ever reported.
    case forgotten
  }

  /// Takes in what a look at a due file showed.
  package mutating func looked(
    _ name: Name, _ observation: FileObservation?, now: ContinuousClock.Instant
  ) -> Verdict {
    guard var state = states[name] else { return .forgotten }
    guard let observation else {
      states[name] = nil
      return state.isReported ? .vanished : .forgotten
    }
    let digest = observation.hashValue
    if noticesChange(name, &state, digest, now: now) {
      states[name] = state
      return .moving
    }
    if let deadline = state.deadline, deadline > now { return .moving }
    resting[name] = Rest(digest: digest, scan: state.scan)
    states[name] = nil
    if states.isEmpty { states = [:] }  // Gives the table's memory back.
    return state.hasChanged ? .settled : .unchanged
  }

  /// Begins a scan: every file seen from now on is marked.
  package mutating func beginScan() { scan &+= 1 }

  /// Ends a scan: files that it did not see are gone; those are returned that had been reported.
  package mutating func endScan() -> [Name] {
    var vanished: [Name] = []
    for (name, state) in states where state.scan != scan {
      if state.isReported { vanished.append(name) }
      states[name] = nil
    }
    for (name, state) in resting where state.scan != scan {
      vanished.append(name)
      resting[name] = nil
    }
    return vanished
  }

  /// Forgets everything and returns the files that had been reported: the directory itself is gone.
  package mutating func forgetAll() -> [Name] {
    let vanished = states.filter { $0.value.isReported }.map(\.key) + resting.keys
    states = [:]
    resting = [:]
    heap = []
    return vanished
  }

  /// A file at rest that something happens to, taken out of rest.
  private mutating func aroused(_ name: Name) -> State? {
    guard let rest = resting.removeValue(forKey: name) else { return nil }
    return State(digest: rest.digest, isReported: true, hasChanged: false, scan: rest.scan)
  }

  private mutating func move(_ name: Name, _ state: inout State, now: ContinuousClock.Instant) {
    let deadline = now.advanced(by: settle)
    state.deadline = deadline
    if state.ticket == nil { enqueue(name, &state, at: deadline) }
  }

  private mutating func enqueue(_ name: Name, _ state: inout State, at deadline: ContinuousClock.Instant) {
    lastTicket &+= 1
    state.ticket = lastTicket
    heap.insert(DueFile(deadline: deadline, ticket: lastTicket, name: name))
  }
}

/// A file that is due at some time; the smaller one is due earlier.
private struct DueFile<Name: Sendable>: Comparable, Sendable {
  var deadline: ContinuousClock.Instant
  /// Unique, and greater for a later entry.
  var ticket: UInt64
  var name: Name

  static func == (left: DueFile, right: DueFile) -> Bool { left.ticket == right.ticket }
  static func < (left: DueFile, right: DueFile) -> Bool {
    (left.deadline, left.ticket) < (right.deadline, right.ticket)
  }
}
