// When the last staged store is written to the disk: its rows while the indexes are built, and the rest while it is
// verified. The sync before the replacement then finds little to do, and no step waits for the disk
// (docs/decisions/0037, 0156).

import DurableFiles
import MigrationEngine
import StoreReplacement

/// The writing of one staged store in the background. It keeps the file open until `end`.
final class StagedWriteBack {
  private var file: WriteBack?
  private var hasBegun = false

  /// Begins with the first index after which no rows are written: what was written by then stays as it is.
  func note(_ progress: HopProgress, _ area: StagingArea) {
    guard !hasBegun, let outline = progress.outline, outline.steps.indices.contains(progress.step),
      outline.steps[progress.step].kind == .index,
      outline.steps[progress.step...].allSatisfy({ $0.kind != .rows && $0.kind != .policy })
    else { return }
    begin(area, hop: progress.hop)
  }

  /// The store is complete.
  func sealed(_ area: StagingArea, hop: Int) { begin(area, hop: hop) }

  private func begin(_ area: StagingArea, hop: Int) {
    hasBegun = true
    if file == nil { file = area.writeBack(hop: hop) }
    file?.start()
  }

  /// Waits until the kernel has accepted all of it, and closes the file. The store must be closed.
  func end() {
    file?.end()
    file = nil
  }
}
