// Retries watches that cannot be served, and reports on watches.

import ConfigurationInspection
import Diagnostics
import HopdConfiguration
import Logging
import StoreWatching
import SystemPackage
import SystemdSupport

extension DaemonCoordinator {
  /// The first and the longest pause between attempts to read the models of a watch that is not served.
  private static let modelRetries: (first: Duration, most: Duration) = (.seconds(2), .seconds(30))

  /// Reports the watches that are not served, and schedules the first retry.
  func tellUnserved() {
    for (watch, error) in setup.unserved.sorted(by: { $0.key < $1.key }) {
      log(
        .watchDegraded, watch,
        "the watch \(watch) is not served, the others are; its models are looked for again by themselves", error)
    }
    modelsPause = Self.modelRetries.first
    modelsAt = setup.unserved.isEmpty ? nil : .now.advanced(by: modelsPause)
  }

  /// Tries to read the models of watches that are not served.
  func retryModels(now: ContinuousClock.Instant) {
    guard let at = modelsAt, at <= now, !isReloading else { return }
    modelsAt = nil
    let watches = setup.configuration.watches.filter { setup.unserved[$0.name] != nil }
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
    where setup.unserved[watch.name] != nil && setup.configuration.watch(named: watch.name) == watch {
      guard case .success(let models)? = found[watch.name] else { continue }
      setup.serve(watch.name, models)
      log(.watchRestored, watch.name, "the watch \(watch.name) is served again: its models can be read", nil)
      watcher?.update(watchedDirectories)
    }
    guard !setup.unserved.isEmpty else { return }
    modelsPause = min(modelsPause * 2, Self.modelRetries.most)
    modelsAt = .now.advanced(by: modelsPause)
  }

  /// Names of watches that are not served, for the status.
  var unservedWatches: [String] { Set(setup.unserved.keys).union(degraded).sorted() }

  // MARK: Words

  /// Reports a store that is quiet while a part of it is still being sent.
  func tellIncomplete(_ watch: String, _ path: FilePath, _ transfer: FilePath) {
    logger.event(
      .storeDeferred,
      "deferred: \(path.printable): \(transfer.printable) beside it is still being sent; hopd waits until it is "
        + "complete",
      fields: [
        .store: path.printable, .watch: watch, .result: "deferred", .error: HopdError.Code.storeIncomplete.name,
        .hint: "if no transfer is running, remove \(transfer.printable); it is ignored once it is an hour old",
      ])
  }

  /// Reports symbolic links whose names match.
  func tellLinks(_ watch: String, _ count: Int, _ first: FilePath) {
    let others = count == 1 ? "" : " and \(count - 1) more"
    log(
      .linksLeftAlone, watch,
      "the watch \(watch) leaves symbolic links alone: \(first.printable)\(others); watch the directory that holds "
        + "the stores themselves",
      nil)
  }

  /// Reports once per watch, at the start and after a reload, that hopd cannot safely replace its stores by a rename.
  func tellLeases() {
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
