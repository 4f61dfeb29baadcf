// Applies models that change on disk: the new ones are in force when they are complete, without a reload.

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

  /// Notes that a file among the models of a watch is new, has changed, or is gone.
  func modelsTouched(_ name: String) {
    guard let watch = setup.configuration.watch(named: name), setup.watchModels(name) != nil else { return }
    modelFolders.touched(name, quiet: quiet(watch), now: .now)
  }

  /// Inspects models that have been quiet for long enough.
  func lookAtModels(now: ContinuousClock.Instant) {
    guard !isReloading else { return }
    for name in modelFolders.takeDue(now: now) {
      guard let watch = setup.configuration.watch(named: name), let inForce = setup.watchModels(name) else { continue }
      BlockingWork.run("models") { [self] in
        post(.modelsSeen(watch, ModelFolders.look(at: watch, inForce: inForce)))
      }
    }
  }

  /// Takes in the result of that inspection, unless another configuration is in force by now.
  func modelsSeen(_ watch: Configuration.Watch, _ finding: ModelFolders.Finding) {
    guard setup.configuration.watch(named: watch.name) == watch, let before = setup.watchModels(watch.name) else {
      return
    }
    let isToTell = modelFolders.looked(watch.name, finding, quiet: quiet(watch), now: .now)
    switch finding {
    case .moving, .same(nil): break
    case .same(let models?): setup.replace(watch.name, models)
    case .broken(let error, _):
      guard isToTell else { return }
      log(
        .modelsRefused, watch.name,
        "the changed models of \(watch.name) are not taken, the old ones stay in force", error)
    case .changed(let models):
      setup.replace(watch.name, models)
      let names = Set(before.catalog.versions.map(\.title))
      let new = models.catalog.versions.map(\.title).filter { !names.contains($0) }
      log(
        .modelsChanged, watch.name,
        "changed models of \(watch.name) are in force"
          + (new.isEmpty ? "" : ", new: \(new.joined(separator: ", ").printableLine)")
          + "; its stores are inspected again", nil)
      scheduler.modelsChanged(ofWatch: watch.name)
    }
  }
}
