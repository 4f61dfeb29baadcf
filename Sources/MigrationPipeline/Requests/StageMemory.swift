// Releases memory between the stages of a migration: pages in caches, and the program's own code, of which each stage
// uses another part. So the peak of a run is that of its largest stage, not their sum.

import CLinux
import DurableFiles
import Synchronization
import SystemPackage

/// The memory of this process.
package enum ProgramMemory {
  /// Largest resident set so far, in bytes.
  package static var peak: Int64 { clinux_peak_resident_bytes() }

  /// Lets all threads share that many heaps, whatever their number: to be called before there are threads. Each heap
  /// keeps free memory of its own. Threads that share one wait for each other.
  package static func limitHeaps(to count: Int32) { clinux_limit_heaps(count) }

  /// Releases free memory, and pages of the program that can be mapped again when they are run. It takes less than a
  /// millisecond, and about one more until the pages used next are mapped: right at a stage's end and before a rest.
  package static func giveBack() { clinux_give_back_memory() }
}

/// Releases the memory that the last stage needed. It belongs to the run's thread.
final class StageMemory {
  /// Stores of this size and larger are worth it, and the first store of the process: for others, pages that come back
  /// cost more time than the memory is worth.
  static let smallest: Int64 = 1 << 20

  /// Stages that take less time than this share one release: one for each took a fifth of a run over 10,000 objects.
  static let shortestStage = Duration.milliseconds(5)

  /// Tables that take less time than this share one release: for 4,000 empty ones it would take two fifths of a run.
  static let pause = Duration.milliseconds(20)

  /// Whether this process has not run over a store yet: what it needed to start is still mapped, and the code of each
  /// stage will be mapped for the first time. So a program for one small store stays below 24 MiB, for 2 ms of its 50.
  private static let isFirst = Atomic(true)

  private let isWorthIt: Bool
  private var last = ContinuousClock.now
  /// Whether a stage or a table has begun, and nothing was released since: the code that prepares it is mapped, and the
  /// long statements that follow need little of it.
  private var isDue = false

  /// Prepares for a run over `store`: releases what the program needed to start and to read its models.
  init(store: FilePath, files: any DurableFileSystem) {
    let isFirst = Self.isFirst.exchange(false, ordering: .relaxed)
    isWorthIt = isFirst || ((try? files.status(store))?.size ?? 0) >= Self.smallest
    giveBack()
  }

  /// Call it at the end of a stage.
  func giveBackAfterStage() {
    if ContinuousClock.now - last >= Self.shortestStage { giveBack() }
    isDue = true
  }

  private func giveBack() {
    guard isWorthIt else { return }
    ProgramMemory.giveBack()
    last = .now
    isDue = false
  }

  /// Call it at the end of a table, however short it was.
  func giveBackAfterTable() {
    isDue = true
    giveBackIfDue()
  }

  /// Call it now and then while a stage or a table goes on.
  func giveBackIfDue() {
    if isDue, ContinuousClock.now - last >= Self.pause { giveBack() }
  }
}
