// Repairs a store before its migration: a copy of it gets the objects that its version has and it lacks, is verified,
// and takes the store's part from then on. A store without hops is replaced by it, by the same swap as a migrated one.

import Diagnostics
import DurableFiles
import Glibc
import MigrationEngine
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage

extension HopdError.Code {
  /// Something in a repaired store was wrong before, or is not the model's, and stays.
  package static let leftAsFound = HopdError.Code("left-as-found", severity: .warning)
}

/// A repaired copy of a store, attached to the connection of the store.
struct RepairedStore {
  let plan: RepairPlan
  let path: FilePath
  let reader: StoreReader
  let verified: VerifiedStore
  let warnings: [HopdError]

  /// The schema name of the copy.
  static let schema = "repaired"

  /// Detaches the copy, so that its file can be moved or removed.
  func close() throws(SQLiteError) { try reader.connection.detach(Self.schema) }
}

extension MigrationRun {
  /// Makes the repaired copy of a store in `area`; nil if none is wanted, or if the store lacks nothing.
  func repaired(
    _ reader: StoreReader, _ assessment: StoreAssessment, in area: StagingArea, replaces: Bool = false
  ) throws -> RepairedStore? {
    guard request.repairs, let store = assessment.identified else { return nil }
    stage = .plan
    guard let plan = try RepairPlan(of: store, rules: request.rules, reader: reader) else { return nil }
    try checkSource(reader)
    if request.takesNotes {
      observer(.note(.decision("a copy is repaired: \(plan.gaps.count) objects are missing or wrong")))
    }
    if replaces {
      try requireSpace(try copyEstimate(reader), area: area, hops: 0..<0)
    } else {
      try area.requireSpace(try copyEstimate(reader).diskNeeded)
    }
    let staged = try area.create(hop: nil)
    do {
      return try repaired(staged, reader, plan, isCurrent: assessment.state == .current)
    } catch {
      // A repair is not resumed.
      try? reader.connection.detach(RepairedStore.schema)
      try? area.remove(staged)
      throw error
    }
  }

  /// Copies the store, repairs the copy, verifies and attaches it.
  private func repaired(
    _ staged: FilePath, _ reader: StoreReader, _ plan: RepairPlan, isCurrent: Bool
  ) throws -> RepairedStore {
    stage = .migrate
    let place = Place(store: request.name)
    do {
      try reader.connection.copy(reader.schema, to: staged) { [heartbeat = heartbeat()] _, _ in heartbeat() }
    } catch {
      guard error.isInterrupt else { throw error }
      throw HopdError(.interrupted, "stopped on request", at: place)
    }
    try StoreRepair(plan, keepAlive: heartbeat()).run(on: staged, original: try schemaVersion(of: reader), at: place)
    stage = .verify
    try reader.connection.attach(staged, as: RepairedStore.schema)
    let copy = StoreReader(connection: reader.connection, schema: RepairedStore.schema)
    let (verified, left) = try StoreVerifier(depth: request.verification, keepAlive: heartbeat()).verify(
      repaired: staged, schema: plan.schema, source: reader, copy: copy, computed: plan.computedColumns,
      external: ExternalDataDirectory(of: request.location.store), at: place)
    var warnings = left.filter { $0.name != "relationships" }.map {
      HopdError(.leftAsFound, "\($0.name): \($0.detail)", at: place)
    }
    if isCurrent {
      // The plan of a migration reports the same.
      let dangling = try StoreCensus(schema: plan.schema, reader: copy).danglingReferences()
      warnings += dangling.map { $0.warning.located(place) }
    }
    stage = .plan
    return RepairedStore(plan: plan, path: staged, reader: copy, verified: verified, warnings: warnings)
  }

  private func schemaVersion(of reader: StoreReader) throws(SQLiteError) -> Int64 {
    try reader.connection.integer("PRAGMA \(SQLiteIdentifier.quoted(reader.schema)).schema_version") ?? 0
  }

  /// The cost of a copy of the store.
  private func copyEstimate(_ reader: StoreReader) throws(SQLiteError) -> MigrationEstimate {
    let prefix = "PRAGMA \(SQLiteIdentifier.quoted(reader.schema))."
    let pages = try reader.connection.integer("\(prefix)page_count") ?? 0
    let bytes = pages.multipliedReportingOverflow(by: try reader.connection.integer("\(prefix)page_size") ?? 4096)
    let size = bytes.overflow ? Int64.max : bytes.partialValue
    return MigrationEstimate(
      rows: 0, bytes: size, diskNeeded: size.addingReportingOverflow(1 << 20).partialValue, memory: 24 << 20, seconds: 0
    )
  }

  /// Puts a repaired copy in the place of a store that has no hops to make.
  func replace(
    _ lockedStore: LockedStore, reading source: StoreReader, with repaired: RepairedStore, metadata: StoreMetadata,
    fingerprint: SourceFingerprint, area: StagingArea, environment: ReplacementEnvironment
  ) throws -> MigrationReport {
    try checkStop()
    try repaired.close()
    stage = .replace
    observer(.replacing)
    try area.releaseDiskSpace(for: .commit)
    let mark = StoreVersionMark(repaired.plan.version)
    var intent = ReplacementIntent(
      location: lockedStore.location, job: job, planFingerprint: "repair", source: fingerprint,
      bootIdentifier: try files.bootIdentifier(), staged: repaired.path, journalMode: lockedStore.journalMode,
      from: mark, to: mark, storeUUID: metadata.uuid, startedAt: Int64(time(nil)))
    // The two stores have one version. The copy has another schema version, by which recovery tells them apart also in
    // a copy of the directory.
    intent.schemaVersion = try schemaVersion(of: source)
    hasSwapBegun = true
    let replaced = try swap(environment).replace(
      lockedStore, with: repaired.verified, intent: intent, backup: request.backup, journalMode: request.journalMode,
      now: Int64(time(nil)))
    stage = .report
    rows = repaired.verified.rows
    var report = report(
      .repaired, verified: repaired.verified, backup: replaced.backup, warnings: repaired.warnings + replaced.warnings)
    report.repaired = repaired.plan.objects
    report.fingerprint = replaced.fingerprint
    report.prunedBackups = replaced.removedBackups
    try? environment.intents.remove(lockedStore.location, afterSuccess: true)
    return report
  }
}

extension MigrationRun {
  /// Reports what was made before the hops.
  func add(_ repaired: RepairedStore?, to report: inout MigrationReport) {
    guard let repaired else { return }
    report.repaired = repaired.plan.objects
    report.warnings = repaired.warnings + report.warnings
  }
}

/// What a repair would make, and the plan of the migration after it.
package struct RepairPreview {
  package let assessment: StoreAssessment
  /// Empty if the store lacks nothing.
  package let objects: [RepairedObject]
  package let warnings: [HopdError]
  /// The plan of a store that is behind its target.
  package let plan: MigrationPlan?
}

extension MigrationPipeline {
  /// Repairs a scratch copy of the store and plans its migration on it; the store is only read.
  package func previewRepair(
    _ request: MigrationRequest, scratch parent: FilePath?, stop: StopSignal,
    observer: @escaping (MigrationEvent) -> Void
  ) throws(MigrationFailure) -> RepairPreview {
    let run = MigrationRun(request: request, files: files, stop: stop, observer: observer)
    do {
      let scratch = try ScratchDirectory(in: parent, files: files)
      defer { try? scratch.remove() }
      return try run.previewRepair(in: scratch.path)
    } catch {
      throw run.failure(error)
    }
  }
}

extension MigrationRun {
  fileprivate func previewRepair(in scratch: FilePath) throws -> RepairPreview {
    try StoreReader.withUnchangedStore(at: request.location.store, attachedAs: "store") { reader in
      reader.connection.setProgressHandler(every: 200_000, self.heartbeat())
      let assessment = try StoreIdentifier.identify(
        reader: reader, location: self.request.location.store, catalog: self.request.catalog,
        target: self.request.target, countsRows: false)
      let store = try self.identified(assessment)
      let area = try StagingArea(
        location: CanonicalStoreLocation(
          resolving: scratch.appending(self.request.location.fileName), files: self.files),
        job: self.job, files: self.files)
      let repaired = try self.repaired(reader, assessment, in: area)
      let plan = try store.map {
        try MigrationPlanner.plan(
          store: $0, catalog: self.request.catalog, target: self.request.target, rules: self.request.rules,
          reader: repaired?.reader ?? reader)
      }
      try repaired?.close()
      return RepairPreview(
        assessment: assessment, objects: repaired?.plan.objects ?? [], warnings: repaired?.warnings ?? [], plan: plan)
    }
  }
}
