// The rules for the stores of a fleet: one rule for all or, with --config and no --watch, that of the watch that
// contains each store.

import Diagnostics
import HopdConfiguration
import MigrationPipeline
import PersistentStore
import StoreFleet
import StoreReplacement
import SystemPackage

/// The request of each store, without its location and job name.
struct WorkTemplates: Sendable {
  private let common: MigrationRequest?
  private let configuration: Configuration?
  private let byWatch: [String: MigrationRequest]

  /// Prepares the requests; `make` loads the models and rules of the named watch, or of the command line if the name is
  /// nil.
  init(
    for stores: [StoreLine], models: ModelOptions, make: (String?) throws -> MigrationRequest
  ) throws {
    configuration = try models.severalWatches()
    guard let configuration else {
      (common, byWatch) = (try make(nil), [:])
      return
    }
    common = nil
    var found: [String: MigrationRequest] = [:]
    for line in stores {
      guard let path = try? line.path(), let name = Self.watch(around: path, in: configuration), found[name] == nil
      else { continue }
      found[name] = try make(name)
    }
    byWatch = found
  }

  /// Whether every migrated store leaves a backup.
  var keepBackups: Bool { (byWatch.values + [common].compactMap(\.self)).allSatisfy { $0.backup.keep > 0 } }

  /// Returns the request of a store. Throws if no watch or several watches contain it.
  func request(for line: StoreLine) throws -> MigrationRequest {
    let location = try line.location()
    let name = configuration.flatMap { Self.watch(around: location.database, in: $0) }
    guard var request = common ?? name.flatMap({ byWatch[$0] }) else {
      throw HopdError(
        .usage, "the store is in none or several watches of the configuration", at: Place(store: location.database),
        hint: "pass --watch or --models")
    }
    request.location = location
    request.job = RequestOptions.jobName()
    return request
  }

  /// Returns the stores with their versions; stores without a state in the manifest are identified.
  func inspected(_ stores: [StoreLine], threads: Int, stop: StopSignal) throws -> [StoreLine] {
    let unknown = Dictionary(grouping: stores.filter { $0.state == nil }) { line in
      configuration.flatMap { configuration in
        (try? line.path()).flatMap { Self.watch(around: $0, in: configuration) }
      }
    }
    var known: [String: StoreLine] = [:]
    for (watch, lines) in unknown {
      guard let template = common ?? watch.flatMap({ byWatch[$0] }) else { continue }
      let inspector = StoreInspector(catalog: template.catalog, target: template.target, settings: template.settings)
      for line in try FleetScan(inspector: inspector, threads: threads, stop: stop).completed(lines) {
        known[line.store] = line
      }
    }
    return stores.map { known[$0.store] ?? $0 }
  }

  /// Returns inspected stores; those that a restore has pinned have the reason as their error.
  func notingPins(_ stores: [StoreLine]) -> [StoreLine] {
    stores.map { line in (try? request(for: line)).map { line.notingPin($0) } ?? line }
  }

  private static func watch(around store: FilePath, in configuration: Configuration) -> String? {
    let around = configuration.watches(around: store.removingLastComponent())
    return around.count == 1 ? around.first?.name : nil
  }
}
