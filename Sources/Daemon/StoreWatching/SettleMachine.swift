// Decides when a file has settled: a store that is being copied into the directory must not be opened halfway. The
// machine uses no clock and no disk: its input is observations with their times; its output is the time of the next
// inspection, and whether an inspected file may be reported. One small value per file; only files in motion have a
// deadline.

import HeapModule

/// The status of a file and of its side files, by lstat(2).
package struct FileObservation: Hashable, Sendable {
  /// Size in bytes.
  package var size: Int64
  /// Time of the last modification in nanoseconds; compared for equality only, so that a jump of the clock does no
  /// harm.
  package var modified: Int64
  /// Inode number.
  package var inode: UInt64
  /// Sizes, times and inodes of the side files, hashed into one number.
  package var sides: UInt64 = 0
}

/// The states of all files of one directory tree: in motion, or at rest.
package struct SettleMachine<Name: Hashable & Sendable>: Sendable {
  /// A file at rest. There may be a hundred thousand of them, so each takes only 16 bytes.
  private struct Rest: Sendable {
    /// The observation as a keyed hash: of 2^64 changes it misses one.
    var digest: Int
    /// The scan that saw it last.
    var scan: UInt32
  }

  /// A file in motion.
  private struct State: Sendable {
    /// The observation as a keyed hash, as in `Rest`.
    var digest: Int
    /// Time of the next inspection; nil until `move` sets it.
    var deadline: ContinuousClock.Instant?
    /// Whether the file was ever reported to the caller.
    var isReported = false
    /// Whether an inspection has shown a change since the file was reported.
    var hasChanged = true
    /// Ticket of the file's heap entry, if any: at most one per file, however often it changes.
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
  /// When `due` has its next file; nil while everything is at rest.
  package var nextDeadline: ContinuousClock.Instant? { heap.min?.deadline }

  /// Whether the file is known.
  package func knows(_ name: Name) -> Bool { states[name] != nil || resting[name] != nil }

  /// Notes that an event named the file, which has not been inspected since. Does not add unknown files.
  package mutating func touched(_ name: Name, now: ContinuousClock.Instant) {
    guard var state = states[name] ?? reactivated(name) else { return }
    move(name, &state, now: now)
    states[name] = state
  }

  /// Notes a change of a side file that readers change too (-shm): it extends the settle time of a file in motion; a
  /// file at rest stays at rest.
  package mutating func sideFileChanged(_ name: Name, now: ContinuousClock.Instant) {
    if states[name]?.deadline != nil { touched(name, now: now) }
  }

  /// Takes in an inspection of the file; nil if the file is not there or not a regular file.
  ///
  /// Returns true if the file was removed and had been reported before.
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
    guard var state = states[name] ?? reactivated(name) else {
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

  /// Compares an inspection with the last one; if the file has changed, puts it in motion again and returns true.
  private mutating func noticesChange(
    _ name: Name, _ state: inout State, _ digest: Int, now: ContinuousClock.Instant
  ) -> Bool {
    guard state.digest != digest else { return false }
    state.digest = digest
    state.hasChanged = true
    move(name, &state, now: now)
    return true
  }

  /// Returns the files that are due, at most `limit`; the caller must inspect each and call `inspected`.
  package mutating func due(now: ContinuousClock.Instant, limit: Int = .max) -> [Name] {
    var names: [Name] = []
    while names.count < limit, let first = heap.min, first.deadline <= now, let entry = heap.popMin() {
      // An entry without its file is left over from a deleted file; a new file of that name has its own entry.
      guard var state = states[entry.name], state.ticket == entry.ticket else { continue }
      state.ticket = nil
      if let deadline = state.deadline {
        if deadline <= now {
          names.append(entry.name)
        } else {
          enqueue(entry.name, &state, at: deadline)  // It changed while it waited.
        }
      }
      states[entry.name] = state
    }
    // Frees the memory that a burst of files needed.
    if heap.isEmpty { heap = [] }
    return names
  }

  /// What to do with a due file after its inspection: report it, wait on, or forget it.
  package enum Verdict: Sendable, Hashable {
    /// At rest, and changed since it was last reported: the caller reports it, once.
    case settled
    /// At rest, and unchanged since it was last reported.
    case unchanged
    /// Still in motion.
    case moving
    /// Gone, after it had been reported.
    case vanished
    /// Gone before it was ever reported.
    case forgotten
  }

  /// Takes in the inspection of a due file.
  package mutating func inspected(
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
    if states.isEmpty { states = [:] }  // Frees the table's memory.
    return state.hasChanged ? .settled : .unchanged
  }

  /// Begins a scan: marks every file that is observed from now on.
  package mutating func beginScan() { scan &+= 1 }

  /// Ends a scan: forgets files that it did not see, and returns those of them that had been reported.
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

  /// Forgets everything, because the directory itself was removed, and returns the files that had been reported.
  package mutating func forgetAll() -> [Name] {
    let vanished = states.filter { $0.value.isReported }.map(\.key) + resting.keys
    states = [:]
    resting = [:]
    heap = []
    return vanished
  }

  /// Puts a file at rest back in motion, because an event named it.
  private mutating func reactivated(_ name: Name) -> State? {
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

/// A heap entry: a file and when it is due; the smaller entry is due earlier.
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
