// Reload: reads the whole configuration with all models while work continues, and puts it in force only if every part
// is valid.

import ConfigurationInspection
import Diagnostics
import HopdConfiguration
import HopdControl
import Logging
import StoreWatching
import SystemPackage
import SystemdSupport

extension DaemonCoordinator {
  func beginReload() {
    // What was just read is not read again; later changes are, after the start.
    if phase == .recovering || phase == .scanning { reloading.postpone() }
    guard phase == .ready, reloading.begin() else { return }
    notifier.reloading()
    let (source, claims, old) = (surroundings.source, surroundings.claims, setup)
    BlockingWork.run("reload") { [self] in
      do throws(HopdError) {
        var setup = try source.setup()
        setup.keepRoots(of: old)
        guard setup.configuration.isConfigured else { throw ConfigurationInspection.notConfigured(setup.files) }
        try claims?.claim(setup.allDirectories)
        post(.reloaded(.success(setup)))
      } catch {
        post(.reloaded(.failure(error)))
      }
    }
  }

  func reloaded(_ result: Result<DaemonSetup, HopdError>) {
    guard phase == .ready else { return }
    let reply: ControlReply
    switch result {
    case .success(let new):
      note = nil
      apply(new)
      reply = ControlReply(
        .object([
          "files": .strings(new.files.map(\.printable)), "warnings": .strings(new.warnings.map(\.description)),
        ]))
    case .failure(let error):
      // Without the place: the file may be edited, and refused by `systemctl reload` before hopd hears of it.
      note = "configuration refused, the old one remains in use (hopctl check-config)"
      logger.event(
        .reloadFailed, "configuration refused, the old one remains in use: \(error)",
        fields: error.configurationFields)
      // One code for every reason: a client must be able to distinguish a refused configuration from a busy daemon.
      reply = .notPossible(
        HopdError.Code.configurationRefused.name, "\(error)",
        hint: "correct the file and reload again; the old configuration remains in use")
    }
    reloading.end(reply)
    notifier.ready(statusLine().text)
    if reloading.isDue { beginReload() }
  }

  private func apply(_ new: DaemonSetup) {
    setup = new
    settings.apply(to: &setup)
    backups.configured()
    surroundings.threshold?.level = setup.configuration.daemon.logLevel.level
    modelRetry = ModelRetry()
    watches.configure(new.configuration.watches.map(\.name))
    scheduler.configure(
      jobs: setup.configuration.daemon.jobs, rules: new.retryRules, priorities: new.priorities)
    hours = WatchHours()
    throttle.reset()
    modelFolders.forgetAll()
    recordConfiguration()
    resetSuspects(now: .now)
    watcher?.update(watchedDirectories)
    reportLeases()
    throttle.warnIfMissing(setup.configuration.throttle)
    reportWarnings(new)
    logger.event(
      .configurationReloaded,
      "the configuration of \(new.files.map(\.printable).joined(separator: ", ")) is in use",
      fields: [.count: String(new.configuration.watches.count)])
  }

  func reportWarnings(_ setup: DaemonSetup) {
    for warning in setup.warnings {
      logger.event(
        .configurationWarning, "\(warning)",
        fields: [
          .configuration: warning.configurationPlace, .error: warning.code.name, .hint: warning.hint,
        ].compactMapValues { $0 })
    }
  }
}

extension HopdError {
  /// File and line of this error, or of its first reason that has them.
  var configurationPlace: String? {
    if let file = place.file { return file.printable + (place.line.map { ":\($0)" } ?? "") }
    return reasons.lazy.compactMap(\.configurationPlace).first ?? place.key
  }

  /// The fields of a journal entry about this error, with its place in the configuration.
  var configurationFields: [JournalField: String] {
    [.configuration: configurationPlace, .error: code.name, .hint: firstHint].compactMapValues { $0 }
  }

  /// The first hint of this error or of its reasons.
  var firstHint: String? { hint ?? reasons.lazy.compactMap(\.firstHint).first }
}

extension Configuration.LogLevel {
  /// The logger's level.
  package var level: Logger.Level {
    switch self {
    case .trace: .trace
    case .debug: .debug
    case .info: .info
    case .notice: .notice
    case .warning: .warning
    case .error: .error
    }
  }
}
