// One 128-bit id per kind of journal entry. They were made once by `systemd-id128 new` and never change: people filter
// by them and systemd/hopd.catalog explains them (`journalctl -x`). The id of a removed kind stays unused.

import Logging

/// A kind of journal entry; the raw value is its MESSAGE_ID.
package enum JournalMessage: String, CaseIterable, Sendable {
  /// The process runs and has read its configuration.
  case serviceStarted = "ab4c62832b184a66aebf2f07019dd006"
  /// Recovery is done, directories are watched, and the first scan is complete.
  case serviceReady = "43839b9fb9734abf93b78a2531680f8a"
  /// A changed configuration is in force.
  case configurationReloaded = "727dd16747994bd689318944c569c724"
  /// A changed configuration was refused; the old one stays.
  case reloadFailed = "3e6be33949554d489b3f6b1a573d1954"
  /// The service finishes its chunk and ends.
  case serviceStopping = "631aa06fe0da431795b32c1d852a47ae"
  /// The service ends because of an error.
  case serviceFailed = "865200b4e4ce40c4913429ebb65e20c8"
  /// A store needs a migration and is queued.
  case storeQueued = "41f72f1615eb476581a75d7c9d696c91"
  /// The migration of a store begins or resumes.
  case migrationStarted = "9908c600c39d40b28eeac1a6e0ce61cb"
  /// One hop is complete.
  case hopFinished = "369d8b0f582d4137a9e849e595475463"
  /// The migrated store is in place.
  case storeMigrated = "9735ed25eef641aa986fe0c248926067"
  /// The store is at its target.
  case storeCurrent = "71ed19cd15a448b79a4576eaf3a413c5"
  /// The store cannot be migrated until its file, its surroundings, the models or the configuration change.
  case storeRefused = "dd199816da97476ba5057528b28849a5"
  /// The store is in use; hopd retries later.
  case storeDeferred = "1b2948fdd66547b3a0eabe81e2e6c5e1"
  /// The migration failed; the store is unchanged.
  case migrationFailed = "19da6beefb9447d0a9330f4c04549413"
  /// The migration stopped at a checkpoint and will resume.
  case migrationInterrupted = "511d78e6a77346ca863c71ee9ce8afe0"
  /// Recovery cleaned up after a crash.
  case crashRecovered = "7911b4a051154d41bd14d496d5ce1bcb"
  /// A backup older than the configuration keeps is deleted.
  case backupPruned = "20f4b7a237c54bfda520f7c3c622041a"
  /// The sweep removed a backup that the configuration no longer keeps.
  case backupExpired = "f1649a9747cc49949b73fd29683fd713"
  /// A restored store is not migrated until it is unpinned.
  case storePinned = "4e5cce90a5534ec7bb8b87ceea4c4cec"
  /// The migration of a restored store removed its pin.
  case pinReleased = "302326cb70c14d53b096fd6f1ee6bee8"
  /// A directory cannot currently be watched.
  case watchDegraded = "ff1e1aa09ac0484f8d7bb67d6a074f12"
  /// The directory is watched again.
  case watchRestored = "80c6a4043f574831acb914de240d00f6"
  /// The kernel's limit of watched directories is reached; the rescan finds changes in the others.
  case watchLimitReached = "8f01a0d48bfe49cc860e82b799147596"
  /// The kernel's event queue overflowed; everything is scanned again.
  case eventsLost = "c21899be065041519f71916f14366fa0"
  /// A migration policy wrote a line.
  case policyOutput = "5236561bcf2c4d3c819d0fae79096f85"
  /// A command of `on_failure` or `on_migrated` wrote a line.
  case commandOutput = "98bdac40622649f7ba0c3438fd0447ed"
  /// A command of `on_failure` or `on_migrated` cannot be started, failed, was ended, or was dropped.
  case commandFailed = "eb538397900b4d8d8f316e318c15942b"
  /// Rows broke the rules of their new version and were handled as `invalid_rows` says.
  case invalidRows = "50b5f340b1674a1ba4c9025081252bab"
  /// The configuration is accepted with a warning.
  case configurationWarning = "cce15cdcd50f4425844b4f1cdf24b639"

  /// A client of the control socket exceeded a limit and was disconnected.
  case controlProblem = "370b964c1d5d487ab35ed988d111ba6f"
  /// An operator gave the daemon an order.
  case commandReceived = "20f40c0ded9f4ed8bd10c31137381e39"
  /// The metrics cannot be written.
  case metricsUnwritable = "f984d430a7e94bfca589732c0c3c498a"
  /// The record of stores and jobs was lost or damaged and is rebuilt.
  case stateReplaced = "ab9b3a22f01c4745819770a94e3554ee"
  /// The record of stores and jobs cannot currently be written.
  case stateUnwritable = "88a58772327842f19d7ea30f75326f49"
  /// Migrations halt because of the machine's pressure, or continue.
  case workThrottled = "9fa7fe30f1634723a4d7899dfea8f793"
  /// Models of a watch have changed on disk, and the new ones are in force.
  case modelsChanged = "57915dee79b54c36a7bf20c8947ccad8"
  /// Models of a watch have changed on disk and cannot be read; the old ones stay in force.
  case modelsRefused = "cfb66634324948f9b9db38ecd97aa503"
  /// A watched directory contains symbolic links; they are not followed.
  case linksIgnored = "8bd40e00250d4334a949c96f62f55933"

  /// The default level of such an entry.
  package var level: Logger.Level {
    switch self {
    case .serviceFailed, .storeRefused, .migrationFailed, .reloadFailed: .error
    case .watchDegraded, .watchLimitReached, .eventsLost, .configurationWarning, .invalidRows, .stateReplaced,
      .stateUnwritable, .controlProblem, .metricsUnwritable, .modelsRefused, .commandFailed:
      .warning
    case .storePinned, .pinReleased, .serviceReady, .configurationReloaded, .storeMigrated, .crashRecovered,
      .migrationInterrupted, .watchRestored, .linksIgnored, .commandReceived, .workThrottled, .modelsChanged,
      .commandOutput:
      .notice
    case .serviceStarted, .serviceStopping, .storeDeferred, .backupPruned, .backupExpired, .policyOutput: .info
    case .storeCurrent, .storeQueued, .migrationStarted, .hopFinished: .debug
    }
  }
}

extension Logger {
  /// Logs an entry of this kind with its fields. All journal entries with a MESSAGE_ID come from here.
  package func event(
    _ kind: JournalMessage, _ text: @autoclosure () -> String, level: Logger.Level? = nil,
    fields: @autoclosure () -> [JournalField: String] = [:]
  ) {
    detail(level ?? kind.level, text(), fields: fields().merging([.messageID: kind.rawValue]) { $1 })
  }

  /// Logs an entry without a documented kind, with fields: detail for finding the cause of a problem.
  package func detail(
    _ level: Logger.Level, _ text: @autoclosure () -> String, fields: @autoclosure () -> [JournalField: String]
  ) {
    guard level >= logLevel else { return }
    var metadata: Logger.Metadata = [:]
    for (field, value) in fields() { metadata[field.rawValue] = .string(value) }
    log(level: level, "\(text())", metadata: metadata)
  }
}
