// Records in the form that the control socket sends: the types of its interface description.

import HopdControl
import ServiceState
import StoreReplacement

extension ControlValue {
  /// A store as the interface's type `Store`; `windows` is the fact of that name.
  init(_ record: StoreRecord, windows: String?) {
    self = .object([
      "store": .string(record.path), "watch": .string(record.watch), "state": .string(record.condition.name),
      "since": .string(BackupRecord.time(record.since)), "version": .optional(record.version),
      "target": .optional(record.target), "waits": .optional(record.waits(windows)),
      "problem": record.failure.map { ControlValue($0) } ?? .null,
    ])
  }

  /// The failure of a store as the interface's type `Problem`.
  init(_ failure: StoreFailure) {
    self = .object([
      "code": .string(failure.code), "reason": .string(failure.reason),
      "since": .string(BackupRecord.time(failure.since)),
      "hint": .optional(failure.hint.isEmpty ? nil : failure.hint),
      "command": .optional(failure.command.isEmpty ? nil : failure.command),
      "attempts": .integer(failure.attempts),
      "nextAttempt": .optional(failure.nextAttempt.map { BackupRecord.time($0) }),
    ])
  }

  /// A job as the interface's type `Job`.
  init(_ job: JobRecord) {
    self = .object([
      "job": .string(job.job), "store": .string(job.path), "watch": .string(job.watch),
      "result": .string(job.result), "from": .optional(job.from), "to": .optional(job.to),
      "rows": .integer(job.rows), "started": .string(BackupRecord.time(job.began)),
      "ended": .string(BackupRecord.time(job.ended)), "seconds": .number(Double(job.microseconds) / 1e6),
      "requestedBy": .string(job.requester), "code": .optional(job.code), "reason": .optional(job.reason),
      "backup": .optional(job.backup),
    ])
  }
}
