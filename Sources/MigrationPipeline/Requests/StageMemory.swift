// Between the stages of a migration path the memory of the one before is given back: pages that caches had, and the
// program's own code, which each stage uses another part of. So the peak of a run is that of its largest stage, not
// their sum.

import CLinux
import DurableFiles
import SystemPackage

/// What this process holds of the machine's memory.
package enum ProgramMemory {
  /// Largest resident set so far, in bytes.
  package static var peak: Int64 { clinux_peak_resident_bytes() }

  /// Lets all threads share two heaps, whatever their number: to be called before there are threads.
  package static func limitHeaps() { clinux_limit_heaps(2) }

  /// Gives back free memory, and pages of the program that can be mapped again when they are run. It takes less than a
  /// millisecond, and about as much again until what is used next is back: right at a stage's end and before a rest.
  package static func giveBack() { clinux_give_back_memory() }
}

/// Gives back what the last stage needed. It belongs to the run's thread.
final class StageMemory {
  /// Stores of this size and larger are worth it: below, pages that come back cost more time than the memory is worth.
  static let smallest: Int64 = 1 << 20

  /// Tables that take less time than this share one giving back: of 4,000 empty ones it would take two fifths of a run.
  static let pause = Duration.milliseconds(20)

  private let isWorthIt: Bool
  private var last = ContinuousClock.now

  /// Prepares for a run over `store`.
  init(store: FilePath, files: any DurableFileSystem) {
    isWorthIt = ((try? files.status(store))?.size ?? 0) >= Self.smallest
  }

  /// To be called where a stage ends.
  func giveBack() {
    guard isWorthIt else { return }
    ProgramMemory.giveBack()
    last = .now
  }

  /// To be called where a table is done, however short it was.
  func giveBackAfterTable() {
    if ContinuousClock.now - last >= Self.pause { giveBack() }
  }
}
