// Reports the progress of a run, in addition to its own events: after each event that changes it, and while long
// statements run.

import Diagnostics
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning

/// The model of one run's work, fed with the run's events. It belongs to the run's thread.
final class ProgressReporter {
  private let start = ContinuousClock.now
  private var model: WorkModel?
  private var plan: (from: String, to: String, hops: Int)?
  private var chunk: ChunkProgress?
  /// Rows that earlier runs have written.
  private var rowsBefore: Int64?
  /// Rows that the hops before the current one have written beyond their new ones.
  private var changedBefore: Int64 = 0
  private var lastReported: ContinuousClock.Instant?
  private var lastPart: WorkPart?
  /// How long the run has been paused: that time counts for no pace.
  private let paused: () -> Duration

  /// No more often than this, unless another part begins.
  private static let pause = Duration.milliseconds(50)

  init(paused: @escaping () -> Duration) { self.paused = paused }

  /// Seconds that the run has worked.
  private var elapsed: Double { max(0, (ContinuousClock.now - start - paused()).seconds) }

  /// The plan is complete.
  func planned(_ plan: MigrationPlan, _ execution: ChainExecution, settings: MigrationSettings, replaces: Bool) {
    self.plan = (plan.store.version.model.name, plan.target.model.name, plan.hops.count)
    model = WorkModel(plan, execution: execution, settings: settings, replaces: replaces, at: elapsed)
  }

  /// So much of a replacement in place is done.
  func replaced(share: Double) { model?.advance(.replacing, share: share) }

  /// The progress to report after an event; nil where nothing has changed, or it was reported a moment ago.
  func progress(after event: MigrationEvent) -> MigrationEvent? {
    guard model != nil else { return nil }
    switch event {
    case .progress(let progress):
      if rowsBefore == nil { rowsBefore = progress.rows &- progress.chunkRows }
      if let chunk, chunk.hop != progress.hop { changedBefore &+= chunk.changed }
      chunk = progress
      model?.advance(progress.stage.part, hop: progress.hop, stage: progress.stage, share: progress.share)
    case .verifying: model?.advance(.verifying)
    case .replacing: model?.advance(.replacing)
    case .planned, .hopStarted, .hopFinished, .alive: break
    case .identified, .recovered, .resumed, .note, .verified, .advanced: return nil
    }
    return report(isLast: false)
  }

  /// The run has ended well; nil where it had nothing to do.
  func finished() -> MigrationEvent? {
    guard model != nil else { return nil }
    model?.finish()
    return report(isLast: true)
  }

  private func report(isLast: Bool) -> MigrationEvent? {
    guard var model, let plan else { return nil }
    let now = ContinuousClock.now
    if !isLast, model.part == lastPart, let lastReported, now - lastReported < Self.pause { return nil }
    (lastReported, lastPart) = (now, model.part)
    let elapsed = elapsed
    let fraction = model.fraction()
    let remaining = model.remaining(at: elapsed)
    self.model = model
    let rows = chunk?.rows ?? 0
    let written = rows &- (rowsBefore ?? rows) &+ changedBefore &+ (chunk?.changed ?? 0)
    return .advanced(
      MigrationProgress(
        part: model.part, hop: chunk?.hop ?? 0, hops: plan.hops, from: plan.from, to: plan.to,
        subject: model.part == .copying || model.part == .indexing ? chunk?.subject ?? "" : "", rows: rows,
        totalRows: max(rows, chunk?.totalRows ?? 0),
        rowsPerSecond: model.part == .copying && elapsed > 0.2 && written > 0 ? Double(written) / elapsed : nil,
        elapsed: elapsed, fraction: fraction, remaining: remaining))
  }
}
