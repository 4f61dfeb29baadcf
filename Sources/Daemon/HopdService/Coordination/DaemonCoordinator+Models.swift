// Applies models that change on disk: the new ones are in force when they are complete, without a reload. Retries
// watches that cannot be served, and reports on watches.

import ConfigurationInspection
import Diagnostics
import HopdConfiguration
import Logging
import ManagedObjectModel
import MigrationPlanning
import StoreWatching
import SystemPackage
import SystemdSupport

extension DaemonCoordinator {
  /// The directories to watch: those of stores, and the folders of their models.
  var watchedDirectories: [WatchedDirectory] {
    setup.directories
      + setup.configuration.watches.filter { setup.watchModels($0.name) != nil }.flatMap(ModelFolders.directories)
  }

  /// How long the models of a watch must be quiet.
  private func quiet(_ watch: Configuration.Watch) -> Duration { max(watch.settle, .milliseconds(100)) }

  /// Records that a file among the models of a watch was added, changed or removed.
  func modelsTouched(_ name: String) {
    guard let watch = setup.configuration.watch(named: name), setup.watchModels(name) != nil else { return }
    modelFolders.touched(name, quiet: quiet(watch), now: .now)
  }

  /// Inspects models that have been quiet for long enough.
  func inspectModels(now: ContinuousClock.Instant) {
    guard !reloading.isRunning else { return }
    for name in modelFolders.takeDue(now: now) {
      guard let watch = setup.configuration.watch(named: name), let inForce = setup.watchModels(name) else { continue }
      BlockingWork.run("models") { [self] in
        post(.modelsSeen(watch, ModelFolders.inspect(watch, inForce: inForce)))
      }
    }
  }

  /// Takes in the result of that inspection, unless another configuration is in force by now.
  func modelsSeen(_ watch: Configuration.Watch, _ finding: ModelFolders.Finding) {
    guard setup.configuration.watch(named: watch.name) == watch, let before = setup.watchModels(watch.name) else {
      return
    }
    let mustReport = modelFolders.inspected(watch.name, finding, quiet: quiet(watch), now: .now)
    switch finding {
    case .moving, .same(nil): break
    case .same(let models?): setup.replace(watch.name, models)
    case .broken(let error, _):
      guard mustReport else { return }
      log(
        .modelsRefused, watch.name,
        "cannot read the changed models of \(watch.name), the old ones remain in use", error)
    case .changed(let models):
      setup.replace(watch.name, models)
      let names = Set(before.catalog.versions.map(\.title))
      let new = models.catalog.versions.map(\.title).filter { !names.contains($0) }
      log(
        .modelsChanged, watch.name,
        "changed models of \(watch.name) are in use"
          + (new.isEmpty ? "" : ", new: \(new.joined(separator: ", ").printableLine)")
          + "; inspecting its stores again", nil)
      scheduler.modelsChanged(ofWatch: watch.name)
    }
  }

  // MARK: Watches

  /// Reports the watches that are not served, and schedules the first retry.
  func reportUnserved() {
    for (watch, error) in setup.unavailable.sorted(by: { $0.key < $1.key }) {
      log(
        .watchDegraded, watch,
        "the watch \(watch) is unavailable; hopd retries to read its models automatically", error)
    }
    if !setup.unavailable.isEmpty { modelRetry.schedule() }
  }

  /// Tries to read the models of watches that are not served.
  func retryModels(now: ContinuousClock.Instant) {
    guard !reloading.isRunning, modelRetry.take(now: now) else { return }
    let watches = setup.configuration.watches.filter { setup.unavailable[$0.name] != nil }
    BlockingWork.run("models") { [self] in
      var found: [String: Result<WatchModels, HopdError>] = [:]
      for watch in watches {
        do throws(HopdError) {
          found[watch.name] = .success(try WatchModels.load(watch))
        } catch {
          found[watch.name] = .failure(error)
        }
      }
      post(.models(found, of: watches))
    }
  }

  /// Takes in the result of that attempt, unless another configuration is in force by now.
  func loaded(_ found: [String: Result<WatchModels, HopdError>], of watches: [Configuration.Watch]) {
    for watch in watches
    where setup.unavailable[watch.name] != nil && setup.configuration.watch(named: watch.name) == watch {
      guard case .success(let models)? = found[watch.name] else { continue }
      setup.serve(watch.name, models)
      log(.watchRestored, watch.name, "the watch \(watch.name) is available again: its models can be read", nil)
      watcher?.update(watchedDirectories)
    }
    if !setup.unavailable.isEmpty { modelRetry.schedule() }
  }

  /// Names of watches that are not served, for the status.
  var unavailableWatches: [String] { unavailable.keys.sorted() }

  /// Watches that are not served, each with its reason in one line.
  var unavailable: [String: String] {
    setup.unavailable.merging(watches.degraded) { models, _ in models }.mapValues { error in
      let text = error.headline + (error.firstHint.map { "; hint: \($0)" } ?? "")
      return text.printableLine
    }
  }

  // MARK: Messages

  /// Reports a store that is quiet while a part of it is still being sent.
  func reportIncomplete(_ watch: String, _ path: FilePath, _ transfer: FilePath) {
    logger.event(
      .storeDeferred,
      "deferred: \(path.printable): \(transfer.printable) next to it is still being sent; hopd waits until it is "
        + "complete",
      fields: [
        .store: path.printable, .watch: watch, .result: "deferred", .error: HopdError.Code.storeIncomplete.name,
        .hint: "remove \(transfer.printable) if no transfer is running; it is ignored once it is an hour old",
      ])
  }

  /// Reports symbolic links whose names match.
  func reportLinks(_ watch: String, _ count: Int, _ first: FilePath?) {
    watches.found(links: count, first, in: watch)
    guard let first else { return }
    let others = count == 1 ? "" : " and \(count - 1) more"
    log(
      .linksIgnored, watch,
      "watch \(watch): ignoring symbolic link \(first.printable)\(others); watch the directory that contains the "
        + "stores instead",
      nil)
  }

  /// Reports once per watch, at the start and after a reload, that hopd cannot safely replace its stores by a rename.
  func reportLeases() {
    let (setup, logger) = (setup, logger)
    BlockingWork.run("leases") {
      for error in LeaseOutlook.warnings(setup.configuration) {
        logger.event(
          .configurationWarning, "\(error)",
          fields: [.error: error.code.name, .hint: error.hint, .directory: error.place.file?.printable].compactMapValues
          { $0 })
      }
    }
  }
}
