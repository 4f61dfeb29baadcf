// The start: recovery first, then watches.

import ConfigurationInspection
import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import Logging
import MigrationPipeline
import PersistentStore
import StoreReplacement
import StoreWatching
import SystemPackage
import SystemdSupport

extension DaemonCoordinator {
  func begin() {
    logger.event(
      .serviceStarted,
      "\(HopdVersion.text) starting with \(setup.files.map(\.printable).joined(separator: ", "))",
      fields: [.count: String(setup.configuration.watches.count)])
    recordStart()
    reportWarnings(setup)
    reportUnserved()
    countCrashes()
    notifier.status("recovering interrupted migrations")
    let (work, directory) = (surroundings.work, surroundings.stateDirectory)
    let setup = setup
    let (notes, suspects, hasRecord) = (notes, suspects, surroundings.recorder != nil)
    BlockingWork.run("recovery") { [self] in
      if hasRecord { post(.failuresKnown(KnownFailure.recorded(in: directory))) }
      do throws(HopdError) {
        setup.openRoots()
        let stores = try work.recover(
          stateDirectory: directory,
          backup: { path in
            // For a store without a watch, no rule limits the backups, so all are kept.
            setup.watch(around: path)?.migration.backup ?? BackupRule(keep: .max)
          },
          around: { store, recover in
            // A suspect is recovered when its turn comes: every migration begins with recovery.
            if suspects.contains(store) {
              return RecoveredStore(store: store, continues: true)
            }
            let slot = notes?.begin(store, .migrate)
            defer { if let slot { notes?.end(slot) } }
            return recover()
          })
        post(.recovered(.success(stores)))
      } catch {
        post(.recovered(.failure(error)))
      }
    }
    setTimer(now: .now)
  }

  func recovered(_ stores: [RecoveredStore]) {
    for store in stores {
      let watch = setup.watch(around: store.store)?.name ?? ""
      let subject = MigrationReporter.Subject(store: store.store, watch: watch, job: "")
      if let sentence = store.sentence { MigrationReporter(subject, logger: logger).recovered(sentence) }
      if let failure = store.failure { report(subject, failure, .refused(isNews: true), now: .now) }
      if store.continues { interrupted.insert(store.store) }
    }
  }

  func watch() throws {
    phase = .scanning
    // The watcher's thread reads the file's status from the disk, so that the loop need not.
    let watcher = try DirectoryWatcher(
      watchedDirectories, ignores: { DaemonSetup.ignores($0) },
      onEvent: { [self] event in
        if let watch = ModelFolders.watch(of: event) { return post(.modelsTouched(watch)) }
        switch event {
        case .settled(let file): post(.watch(event, FoundStore(file)))
        case .vanished(_, _, let key): post(.vanished(key))
        default: post(.watch(event, nil))
        }
      })
    try watcher.start()
    self.watcher = watcher
    becomeReadyIfScanned()  // if no watch can be served yet, there is no scan to wait for
  }

  func handle(_ event: WatchEvent, _ store: FoundStore?) {
    switch event {
    case .settled:
      guard let store else { return }
      admit(store, now: .now)
    case .vanished: break
    case .incomplete(let watch, let path, let transfer): reportIncomplete(watch, path, transfer)
    case .linksIgnored(let watch, let count, let first): reportLinks(watch, count, first)
    case .scanned(let watch, let files):
      watches.scanned(watch, files: files)
      keepBackups(ofWatch: watch)
    case .degraded(let watch, let error):
      watches.degrade(watch, error)
      log(.watchDegraded, watch, "the watch \(watch) is unavailable", error)
    case .restored(let watch):
      watches.restore(watch)
      log(.watchRestored, watch, "the watch \(watch) is available again", nil)
    case .watchLimitReached(let watch, let error):
      log(.watchLimitReached, watch, "the watch \(watch) relies on its rescan", error)
    case .eventsLost:
      metrics.counts.overflowed()
      logger.event(.eventsLost, "inotify queue overflowed; rescanning all directories")
    }
    becomeReadyIfScanned()
  }

  private func becomeReadyIfScanned() {
    guard phase == .scanning, setup.directories.allSatisfy({ watches.isScanned($0.name) }) else { return }
    phase = .ready
    reportLeases()
    throttle.warnIfMissing(setup.configuration.throttle)
    let text = statusLine().text
    // From now on the record shows that this daemon runs.
    surroundings.recorder?.flush(within: .seconds(1))
    logger.event(.serviceReady, "ready: \(text)", fields: [.count: String(watches.fileCount)])
    notifier.ready(text)
    // One that was ordered during the start.
    if reloading.isDue { beginReload() }
  }
}
