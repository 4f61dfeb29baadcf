// Makes every image that a power cut could leave of a recorded run, without duplicates: at each moment between two
// operations the unsynced ones are kept, dropped, torn, each alone, and in seeded mixes; if there are few of them, in
// every combination.

import CSimulatedDisk
import SeededRandom
import SystemPackage

/// One image, and its moment.
package struct DiskImage {
  /// The disk after the power cut, or after the kill.
  package let disk: SimulatedDisk
  /// The number of operations that had been made.
  package let moment: Int
  /// The fate of the unsynced operations, in words and with a seed that reproduces it.
  package let kind: String
}

/// How thoroughly the images of a run are made.
package struct CutPlan: Sendable {
  /// Seed of mixes and tears.
  package var seed: UInt64
  /// Mixes at each moment.
  package var mixes = 6
  /// The most unsynced operations for which every combination is made.
  package var exhaustiveBelow = 5
  /// The number of newest operations that are lost and kept alone; all of them by default.
  package var alone = Int.max
  /// Whether a kill of the process, which loses nothing, is an image too.
  package var withKills = true
  /// Only these moments; all by default.
  package var moments: ClosedRange<Int> = 0...Int.max

  /// Makes a plan.
  package init(seed: UInt64) { self.seed = seed }
}

/// The images of one recorded run.
package struct PowerCuts {
  /// The number of images made.
  package private(set) var made = 0
  /// The number of distinct ones; each of them was passed on once.
  package private(set) var distinct = 0
  private var seen: Set<UInt64> = []
  private let plan: CutPlan

  /// Starts without images; several runs can share one value, and thus the set of seen images.
  package init(_ plan: CutPlan) { self.plan = plan }

  /// Reads the log of `disk` and passes every new image to `body`; if `body` returns false, it ends.
  ///
  /// From the moment `reported` on, when success was reported, the same image must fulfil more: images that were seen
  /// before are passed on once more.
  package mutating func forEach(
    of disk: SimulatedDisk, reported: Int = .max, _ body: (DiskImage) throws -> Bool
  ) rethrows {
    let walk = sd_walk_make(disk.disk)
    defer { sd_walk_free(walk) }
    var moment = 0
    var random = Dice(seed: plan.seed)
    repeat {
      if moment == reported { seen.removeAll() }
      if plan.moments.contains(moment) {
        if plan.withKills, try !hand(sd_walk_killed(walk), moment, "killed", body) { return }
        for (kind, choices) in choices(walk, &random) {
          let seed = random.next()
          let image = sd_walk_image(walk, choices, seed)
          if try !hand(image, moment, kind, body) { return }
        }
      }
      moment += 1
    } while sd_walk_step(walk) != 0 && moment <= plan.moments.upperBound
  }

  private mutating func hand(
    _ image: OpaquePointer?, _ moment: Int, _ kind: String, _ body: (DiskImage) throws -> Bool
  ) rethrows -> Bool {
    guard let image else { return false }
    made += 1
    guard seen.insert(sd_digest(image)).inserted else {
      sd_free(image)
      return true
    }
    distinct += 1
    return try body(DiskImage(disk: SimulatedDisk(image), moment: moment, kind: kind))
  }

  /// Returns the possible fates of the operations that are not safe at this moment of the log.
  private func choices(_ walk: OpaquePointer?, _ random: inout Dice) -> [(String, [UInt8])] {
    let count = sd_walk_pending(walk)
    let dropped = UInt8(SD_DROPPED)
    let kept = UInt8(SD_KEPT)
    let isName = (0..<count).map { sd_walk_kind(walk, $0) == SD_IS_NAME }
    var all: [(String, [UInt8])] = [
      ("all kept", Array(repeating: kept, count: count)), ("all lost", Array(repeating: dropped, count: count)),
    ]
    guard count > 0 else { return all }
    all.append(("names only", isName.map { $0 ? kept : dropped }))
    all.append(("contents only", isName.map { $0 ? dropped : kept }))
    all.append(("names, and sizes with zeros", isName.map { $0 ? kept : UInt8(SD_ZEROED) }))
    all.append(("names, and torn contents", isName.map { $0 ? kept : UInt8(SD_TORN) }))
    if count <= plan.exhaustiveBelow {
      for bits in 0..<(1 << count) {
        all.append(("combination \(bits)", (0..<count).map { bits >> $0 & 1 == 1 ? kept : dropped }))
      }
    } else {
      for index in max(0, count - min(count, plan.alone))..<count {
        var choice = Array(repeating: kept, count: count)
        choice[index] = dropped
        all.append(("\(index) lost alone", choice))
        choice = Array(repeating: dropped, count: count)
        choice[index] = kept
        all.append(("\(index) kept alone", choice))
      }
    }
    // Each file and each directory as a whole: they are written back in any order.
    let objects = (0..<count).map { sd_walk_object(walk, $0) }
    for object in Set(objects).sorted() where Set(objects).count > 1 {
      all.append(("#\(object) lost", objects.map { $0 == object ? dropped : kept }))
      all.append(("#\(object) kept", objects.map { $0 == object ? kept : dropped }))
    }
    for index in 0..<count where !isName[index] && index >= count - min(count, 3) {
      var choice = Array(repeating: kept, count: count)
      choice[index] = UInt8(SD_TORN)
      all.append(("\(index) torn", choice))
    }
    for mix in 0..<plan.mixes {
      all.append(
        (
          "mix \(mix) of seed \(plan.seed)",
          (0..<count).map {
            let choice = UInt8(truncatingIfNeeded: random.next() >> 33 & 3)
            return isName[$0] ? choice & 1 : choice
          }
        ))
    }
    return all
  }
}
