// The progress of a run and its remaining time: one model over all its work. Pure: times come from outside.
//
// The work is a list of parts with their cost on an imagined machine. The finished parts, the plan among them, show how
// fast the real machine is; the finished share of a part shows that part's pace. Programs and disks have a speed of
// their own. The share is that of time, so that half of it is half of the time; it never falls, and is 1 only at the
// end.

import MigrationEngine

/// The current part of a run's work.
package enum WorkPart: String, Sendable, Hashable, CaseIterable {
  case planning, copying, indexing, verifying, replacing, done
}

/// The work of one run.
struct WorkModel: Sendable {
  /// The worker whose speed a part depends on.
  enum Worker: Sendable, Hashable, CaseIterable {
    case machine, program, disk
  }

  /// One part of it.
  struct Piece: Sendable, Hashable {
    var part: WorkPart
    /// The hop whose store it writes, and the step of its program; nil where that is not known yet. A replacement has
    /// steps, too.
    var hop: Int?
    var step: Int?
    /// Seconds on the imagined machine.
    var seconds: Double
    var worker = Worker.machine
    /// Whether its shares take different times. Then they only show the recent pace.
    var isUneven = false
  }

  /// The observed work of a worker: seconds that it took, and its cost on the imagined machine.
  private struct Seen {
    var spent = 0.0
    var cost = 0.0
  }

  private(set) var pieces: [Piece]
  /// The hop whose result is verified, and whether all of it is checked.
  private let verified: (hop: Int, isFull: Bool)?
  private var result: HopOutline.Result?
  /// The current piece, when it began, and its share then and now.
  private var current = 0
  private var began: Double
  private var shareAtStart = 0.0
  private var share = 0.0
  private var shareTime: Double
  /// Whether progress of the current piece was reported, and whether its program was seen at work.
  private var isSeen = false
  private var hasStarted = false
  /// Recent pace, in shares a second; it forgets slowly.
  private var pace: Double?
  /// The pieces that ran from beginning to end in this run, by worker.
  private var seen: [Worker: Seen] = [:]
  /// Cost of the work of earlier runs.
  private var credit = 0.0
  private var told = 0.0
  private var isDone = false
  /// The revision of each hop's outline that the pieces are made of.
  private var revisions: [Int: Int] = [:]

  /// The machine counts as the imagined one until it has been observed for so long.
  private static let trust = 0.01

  /// A run that is about to begin its first piece at a time, in seconds. `planning` is what the time so far costs on
  /// the imagined machine. `verified` names the hop whose result is verified, and how.
  init(_ pieces: [Piece], at time: Double, planning: Double = 0, verified: (hop: Int, isFull: Bool)? = nil) {
    self.pieces = pieces.isEmpty ? [Piece(part: .replacing, hop: nil, step: nil, seconds: WorkCost.least)] : pieces
    self.verified = verified
    (began, shareTime) = (time, time)
    if planning > 0 { seen[.machine] = Seen(spent: max(0, time), cost: planning) }
  }

  // MARK: Events

  /// A part has begun, or a step of it; everything before it is done, by this run or by an earlier one.
  mutating func begin(_ part: WorkPart, step: Int? = nil, at time: Double) {
    let found = pieces.firstIndex { $0.part == part && (step == nil || $0.step == step) }
    guard let index = found, index > current else { return }
    move(to: index, at: time)
  }

  /// SQLite's own full check of the result has made so many steps. It makes none while it checks the pages, and then
  /// some for each row and each index lookup.
  mutating func advanceVerification(steps: Int, at time: Double) {
    guard steps > 0, verified?.isFull == true, pieces[current].part == .verifying else { return }
    if pieces[current].step == 0 {
      begin(.verifying, step: 1, at: time)
      isSeen = true
    }
    guard let result, result.rows > 0 else { return }
    note(Double(steps) / WorkCost.verificationSteps(result), at: time)
  }

  /// Reports the share of a step of a hop's program. The outline replaces the former one of the hop.
  mutating func advance(hop: Int, step: Int, share: Double, outline: HopOutline?, at time: Double) {
    if let outline, revisions[hop] != outline.revision { take(outline, of: hop, at: time) }
    let index =
      pieces.firstIndex { $0.hop == hop && $0.step == step }
      ?? pieces.lastIndex { $0.hop == hop && ($0.step ?? 0) <= step }
    guard let index else { return }
    if index > current { move(to: index, at: time) }
    guard index == current else { return }
    note(share, at: time)
  }

  /// The run has ended.
  mutating func finish() { isDone = true }

  private mutating func move(to index: Int, at time: Double) {
    let wasWhole = pieces[current].seconds * (1 - shareAtStart)
    // A piece that took almost no time was done before.
    if time - began > pieces[current].seconds * 0.02 || share > shareAtStart {
      let worker = pieces[current].worker
      seen[worker, default: Seen()].spent += max(0, time - began)
      seen[worker, default: Seen()].cost += wasWhole
      credit += pieces[current].seconds * shareAtStart
    } else {
      credit += pieces[current].seconds
    }
    for skipped in pieces[(current + 1)..<max(current + 1, index)] { credit += skipped.seconds }
    current = index
    (began, shareTime, shareAtStart, share, pace) = (time, time, 0, 0, nil)
    (isSeen, hasStarted) = (false, false)
  }

  private mutating func note(_ new: Double, at time: Double) {
    let new = min(max(new.isFinite ? new : 0, 0), 1)
    guard isSeen else {
      // Where an earlier run stopped: it shows nothing of today's pace.
      isSeen = true
      (shareAtStart, share, shareTime) = (new, new, time)
      return
    }
    guard new > share else { return }
    if pieces[current].worker == .program, !hasStarted {
      // Until then the program was starting.
      hasStarted = true
      (began, shareAtStart, share, shareTime) = (time, new, new, time)
      return
    }
    let span = time - shareTime
    // Short spans are noise.
    guard span > 0.02 else { return }
    let now = (new - share) / span
    pace = pace.map { 0.75 * $0 + 0.25 * now } ?? now
    (share, shareTime) = (new, time)
  }

  /// Replaces a hop that was one piece by the steps of its program, or updates the steps to come.
  private mutating func take(_ outline: HopOutline, of hop: Int, at time: Double) {
    guard !outline.steps.isEmpty else { return }
    revisions[hop] = outline.revision
    if let first = pieces.indices.first(where: { pieces[$0].hop == hop && pieces[$0].step == nil }), first >= current {
      let steps = outline.steps.enumerated().map { step, work in
        Piece(
          part: work.kind == .rows || work.kind == .policy ? .copying : .indexing, hop: hop, step: step,
          seconds: work.seconds, worker: work.kind == .policy ? .program : .machine)
      }
      pieces.replaceSubrange(first...first, with: steps)
      // The time to prepare the program belongs to no step.
      if first == current { (began, shareTime) = (time, time) }
    } else {
      let isUntouched = share == shareAtStart
      for index in pieces.indices where pieces[index].hop == hop && (index > current || index == current && isUntouched)
      {
        guard let step = pieces[index].step, outline.steps.indices.contains(step) else { continue }
        pieces[index].seconds = outline.steps[step].seconds
      }
    }
    guard let verified, verified.hop == hop, let result = outline.result else { return }
    self.result = result
    for index in pieces.indices where index > current && pieces[index].part == .verifying {
      pieces[index].seconds =
        pieces[index].step == 1 ? WorkCost.lookUps(result) : WorkCost.verification(result, isFull: verified.isFull)
    }
  }

  // MARK: Results

  /// The current part of the work.
  var part: WorkPart { isDone ? .done : pieces[current].part }

  /// How much slower a worker is than the imagined one.
  private func slowness(of worker: Worker) -> Double {
    var known = seen[worker] ?? Seen()
    if pieces[current].worker == worker, !pieces[current].isUneven {
      let doneHere = pieces[current].seconds * (share - shareAtStart)
      if doneHere > 0 {
        known.spent += max(0, shareTime - began)
        known.cost += doneHere
      }
    }
    // A program or the disk that was not observed yet counts as slow as everything else.
    let usual = worker == .machine ? 1 : slowness(of: .machine)
    return (known.spent + Self.trust * usual) / (known.cost + Self.trust)
  }

  /// Seconds to go.
  func remaining(at time: Double) -> Double {
    if isDone { return 0 }
    var left = 0.0
    for worker in Worker.allCases {
      let cost = pieces[(current + 1)...].reduce(0) { $1.worker == worker ? $0 + $1.seconds : $0 }
      if cost > 0 { left += cost * slowness(of: worker) }
    }
    return left + remainingOfCurrent(slowness(of: pieces[current].worker), at: time)
  }

  private func remainingOfCurrent(_ slowness: Double, at time: Double) -> Double {
    let expected = pieces[current].seconds * slowness
    let elapsed = max(0, time - began)
    let done = share - shareAtStart
    guard done > 0, shareTime > began else {
      // Only its time is known. One that takes longer than expected is assumed to last a while.
      let left = expected * (1 - shareAtStart) - elapsed
      return left > 0 ? left : 0.02 * elapsed - 0.1 * left
    }
    let mean = done / (shareTime - began)
    let rate = pace.map { (mean + $0) / 2 } ?? mean
    let byPace = (1 - share) / rate - (time - shareTime)
    guard !pieces[current].isUneven else {
      // The last steps take the time; only near the end does their pace show that of the rest.
      let byTime = expected * (1 - shareAtStart) - elapsed
      let late = pace.map { (1 - share) / $0 - (time - shareTime) } ?? byPace
      let weight = byTime > 0 ? share * share * share * share : 1
      return max(0, weight * late + (1 - weight) * byTime)
    }
    // The first shares are few rows: the plan still counts.
    let weight = min(1, done / 0.1)
    return max(0, weight * byPace + (1 - weight) * (expected * (1 - share)))
  }

  /// Share of the time, 0 to 1; it never falls. It is 1 only for a run that has ended.
  mutating func fraction(at time: Double) -> Double {
    if isDone { return 1 }
    let done = credit * slowness(of: .machine) + max(0, time)
    let whole = done + remaining(at: time)
    let now = whole > 0 ? done / whole : 0
    told = max(told, min(now.isFinite ? now : 0, 0.999))
    return told
  }
}
