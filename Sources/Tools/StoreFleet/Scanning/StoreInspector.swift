// The inspection of one store of a fleet: its version, the chain to the target, and its needs. The chain is the same
// for all stores of a version, so it is planned once; no row is counted, so an inspection costs only the pages of the
// metadata.

import Diagnostics
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import Synchronization
import SystemPackage

/// Inspects stores; from any thread.
package final class StoreInspector: Sendable {
  private struct Way: Sendable {
    var hops: [StoreLine.Hop]?
    var drops: [String]?
    var error: LineError?
  }

  private struct Ends: Hashable {
    let from: [String: VersionHash]
    let to: [String: VersionHash]
  }

  private let catalog: ModelCatalog
  private let target: TargetVersion
  private let rules: RouteRules
  private let ways = Mutex<[Ends: Way]>([:])

  /// Inspects stores with these models, under the rules of `settings`.
  package init(catalog: ModelCatalog, target: TargetVersion, settings: MigrationSettings) {
    self.catalog = catalog
    self.target = target
    var rules = RouteRules(infer: settings.infer, renames: settings.renames, route: settings.route)
    rules.allowsOlder = catalog.allowsOlder
    self.rules = rules
  }

  /// The line of a store; the path stays as given. Changes nothing.
  package func line(for file: StoreWalk.Candidate) -> StoreLine {
    let store = file.path
    var line = StoreLine(file)
    guard !line.hasNoPath else { return line }
    do {
      let found = try StoreIdentifier.identify(
        line.location().store, catalog: catalog, target: target, countsRows: false)
      line.state = found.state.rawValue
      line.storeUUID = found.metadata?.uuid
      line.model = found.version?.modelName
      line.version = found.version?.model.name
      line.targetVersion = found.target?.model.name
      line.error = found.explanation.map { LineError($0) }
      if found.state == .current { line.hops = [] }
      if found.state == .behind { addWay(of: found, to: &line) }
    } catch {
      line.state = "unreadable"
      line.error = LineError(HopdError.of(error, at: Place(store: store)))
    }
    return line
  }

  private func addWay(of found: StoreAssessment, to line: inout StoreLine) {
    guard let version = found.version, let target = found.target, let versions = found.line?.versions else { return }
    let ends = Ends(from: version.versionHashes, to: target.versionHashes)
    let way =
      ways.withLock { $0[ends] }
      ?? {
        let made = makeWay(
          from: version, to: target, among: versions, frameworkVersion: found.metadata?.frameworkVersion ?? 0)
        ways.withLock { $0[ends] = made }
        return made
      }()
    line.hops = way.hops
    line.drops = way.drops
    line.error = way.error
    guard let hops = way.hops else { return }
    line.need = Self.need(bytes: line.size ?? 0, hops: hops.count)
  }

  private func makeWay(
    from version: CatalogedVersion, to target: CatalogedVersion, among versions: [CatalogedVersion],
    frameworkVersion: Int64
  ) -> Way {
    do {
      let edges = try MigrationGraph(versions: versions, rules: rules, mappings: catalog.mappings)
        .route(from: version, to: target)
      try catalog.requireStages(on: edges)
      let drops = DropSearch(edges, from: version.model, frameworkVersion: frameworkVersion).losses.map { part in
        [part.entity, part.property].compactMap(\.self).joined(separator: ".")
      }
      return Way(
        hops: edges.map {
          StoreLine.Hop(
            source: $0.source.model.name, destination: $0.destination.model.name,
            kind: $0.mapped == nil ? "inferred" : "mapping")
        }, drops: drops.isEmpty ? nil : drops, error: nil)
    } catch {
      return Way(hops: nil, error: LineError(error))
    }
  }

  /// Rough on purpose: the disk space that the plan needs, and 20 MB a second plus some milliseconds for each store
  /// (docs/PERFORMANCE.md).
  static func need(bytes: Int64, hops: Int) -> StoreLine.Need {
    let disk = Double(bytes) * (hops == 1 ? 1.1 : 2.2) + 1_048_576
    let seconds = 0.008 + Double(bytes) / 20e6
    return StoreLine.Need(
      disk: Int64(exactly: disk.rounded(.up)) ?? .max, seconds: (seconds * 1000).rounded() / 1000)
  }
}
