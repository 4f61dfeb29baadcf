// Runs that leave nothing behind: the chain into a scratch folder, for findings that only the rows of later hops can
// give, and the whole migration with its verification as a rehearsal. The store is only read.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import SystemPackage

/// The result of a trial of a plan's chain.
package struct ScanReport: Sendable {
  /// Hops that were run; a hop with policies and what follows it is not.
  package let hops: [HopReport]
  /// Columns that hops behind mapping models drop, and other findings.
  package let drops: [DroppedColumn]
  package let warnings: [HopdError]
}

extension MigrationPipeline {
  /// Runs the chain of a store up to the first hop with policies and discards the result: an error here would stop the
  /// migration too.
  package func scan(
    _ request: MigrationRequest, scratch parent: FilePath?, stop: StopSignal,
    observer: @escaping (MigrationEvent) -> Void
  ) throws(MigrationFailure) -> ScanReport {
    let run = MigrationRun(request: request, files: files, stop: stop, observer: observer)
    do {
      let scratch = try ScratchDirectory(in: parent, files: files)
      defer { try? scratch.remove() }
      return try run.scan(in: scratch.path)
    } catch {
      throw run.failure(error)
    }
  }

  /// Migrates and verifies a copy of a store and discards it; the report is that of the migration.
  package func rehearse(
    _ request: MigrationRequest, scratch parent: FilePath?, stop: StopSignal,
    observer: @escaping (MigrationEvent) -> Void
  ) throws(MigrationFailure) -> MigrationReport {
    var request = request
    let scratch: ScratchDirectory
    do throws(HopdError) {
      scratch = try ScratchDirectory(in: parent, files: files)
    } catch {
      throw MigrationFailure(
        stage: .plan, error: error.located(Place(store: request.name)), from: nil, to: nil, storeUUID: nil)
    }
    defer { try? scratch.remove() }
    request.output = scratch.path.appending(request.location.fileName)
    var report = try run(request, stop: stop, observer: observer)
    report.store = request.name
    // The file is removed with the scratch folder.
    report.quarantine = nil
    return report
  }
}

extension MigrationRun {
  fileprivate func scan(in scratch: FilePath) throws -> ScanReport {
    try StoreReader.withUnchangedStore(at: request.location.store, attachedAs: "store") { reader in
      defer { self.cancelSourceCheck() }
      reader.connection.setProgressHandler(every: 200_000, self.heartbeat())
      let assessment = try StoreIdentifier.identify(
        reader: reader, location: self.request.location.store, catalog: self.request.catalog,
        target: self.request.target,
        countsRows: false)
      guard let store = try self.identified(assessment) else { return ScanReport(hops: [], drops: [], warnings: []) }
      let area = try StagingArea(
        location: CanonicalStoreLocation(
          resolving: scratch.appending(self.request.location.fileName), files: self.files),
        job: self.job, files: self.files)
      let repaired = try self.repaired(reader, assessment, in: area)
      let source = repaired?.reader ?? reader
      let (plan, execution) = try self.plan(
        store, reader: source, needsPolicies: false, checksSource: repaired == nil)
      let end = plan.hops.firstIndex { $0.mapped?.policies.isEmpty == false }
      try area.requireSpace(execution.estimate.diskNeeded)
      self.stage = .migrate
      let chain = self.chain(
        plan, execution, area, source, source: self.job, boot: try self.files.bootIdentifier(), end: end,
        base: repaired?.path)
      let outcome = try self.reportingSourceDamage(source) { try chain.run() }
      return ScanReport(hops: outcome.hops, drops: outcome.drops, warnings: outcome.warnings)
    }
  }
}
