// A job of the daemon while it runs on its thread.

import MigrationPipeline

/// A running job.
struct RunningJob {
  let ticket: JobTicket
  let subject: MigrationReporter.Subject
  let monitor: JobMonitor
  /// When it began, in seconds since 1970.
  let began: Int64
  /// Who ordered it.
  var requester: String
  /// Stops this job; its parent stops all jobs.
  let stop: StopSignal
  var isCancelled = false

  /// Whether it migrates a store, and not only inspects it.
  var isMigration: Bool { ticket.step == .migrate }
}
