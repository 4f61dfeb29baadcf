// Reports how work on a store ended, and runs the command that its watch has for that: once for each cause, however
// often the store is retried, and not again after a restart.

import Diagnostics
import HopdConfiguration
import MigrationPipeline
import SystemdSupport

extension DaemonCoordinator {
  /// Reports failed work on a store. If an operator must act, it runs the command of `on_failure`.
  func report(
    _ subject: MigrationReporter.Subject, _ failure: MigrationFailure, _ verdict: JobVerdict,
    reported: [String] = [], now: ContinuousClock.Instant
  ) {
    let fields = MigrationReporter(subject, logger: logger).failed(failure, verdict, reported: reported, now: now)
    let before = knownFailures.removeValue(forKey: subject.store.printable)
    guard let fields, before != KnownFailure(failure.error),
      let command = setup.configuration.watch(named: subject.watch)?.commands.onFailure, !command.isEmpty
    else { return }
    commands.run(StoreCommand(key: "on_failure", command: command, store: subject.store, fields: fields))
  }

  /// Runs the command of `on_migrated` after a migration. Its entry was written by the thread of the job.
  func tellMigrated(_ subject: MigrationReporter.Subject, _ report: MigrationReport) {
    knownFailures[subject.store.printable] = nil
    guard report.result != .current,
      let command = setup.configuration.watch(named: subject.watch)?.commands.onMigrated, !command.isEmpty
    else { return }
    let fields = MigrationReporter(subject, logger: logger).fields(of: report)
    commands.run(
      StoreCommand(
        key: "on_migrated", command: command, store: subject.store, fields: fields, backup: report.backup))
  }
}
