// The trial of one version: a store of it is migrated to the target at once and hop by hop, the pipeline verifies both
// results, and then they are compared with each other. If rows stop it, rows with fewer demands show whether every
// store is stopped or only some.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SQLite
import StoreReplacement
import Synchronization
import SystemPackage

extension HopdError.Code {
  /// The same rows migrated at once and hop by hop gave different results: a bug of hopd.
  package static let waysDisagree = HopdError.Code("ways-disagree", exit: .software)
}

/// Tries stores in a scratch folder.
struct StoreTrial: Sendable {
  let request: CheckRequest
  let scratch: FilePath
  let files: LinuxFileSystem
  let stop: StopSignal
  let deadline: ContinuousClock.Instant?
  /// Failures that stop every store, whatever its rows are.
  let stubborn = KnownFailures()

  // MARK: Versions

  /// Tries a version; `way` is its chain according to the models alone.
  func check(
    _ version: CatalogedVersion, to target: CatalogedVersion, way: Result<[HopStep], HopdError>
  ) throws(HopdError) -> VersionCheck {
    var check = VersionCheck(version.model.name, at: version.position, .passed)
    switch way {
    case .success(let steps): check.steps = steps
    case .failure(let error):
      check.fail(Self.leaves(of: error).map { CheckFinding($0) })
      return check
    }
    if let deadline, ContinuousClock.now >= deadline {
      check.leaveUntried("the budget is spent; according to the models it reaches the current version")
      return check
    }
    return try withinFolder { (folder) throws(HopdError) in
      let sample = SampleStore(
        model: version.model, enumValues: request.catalog.enumValues(of: version),
        frameworkVersion: request.frameworkVersion, files: files)
      try self.tried(sample, &check, to: target, in: folder)
      return check
    }
  }

  private func tried(
    _ sample: SampleStore, _ check: inout VersionCheck, to target: CatalogedVersion, in folder: FilePath
  ) throws(HopdError) {
    let first: Attempt
    do throws(HopdError) {
      first = try attempt(sample, .everyKind, isUnhappy: false, in: folder)
    } catch  where Self.limits.contains(error.code) {
      // Only the making of the store throws these; what a migration refuses is the result of the attempt.
      return check.leaveUntried("hopd cannot make a store of it: \(error.message)", Self.leaves(of: error))
    }
    (check.objects, check.bytes) = (first.objects, first.bytes)
    var tried = first
    switch first.result {
    case .failure(let error):
      guard let other = try fail(&check, error, sample, in: folder) else { return }
      tried = other
    case .success(let report): note(report, in: &check)
    }
    guard let output = tried.output else { return }
    let naming = self.naming(sample)
    let schema = StoreSchema(model: target.model, frameworkVersion: request.frameworkVersion, naming: naming)
    if check.steps.count > 1 {
      try compareHopByHop(tried.location, output, schema, naming, &check, in: folder)
      if check.verdict == .passed { try compareDirect(tried.location, output, schema, naming, &check, in: folder) }
    }
    guard request.isUnhappy, check.verdict == .passed else { return }
    let unhappy = try attempt(sample, .everyKind, isUnhappy: true, in: folder)
    if case .failure(let error) = unhappy.result {
      check.fail(
        Self.leaves(of: error).map { CheckFinding($0, isOfRows: true) },
        note: "with rows that break the rules of their own version")
    }
  }

  /// Migrates the same store with every row written: the result must be the same.
  private func compareHopByHop(
    _ store: StoreLocation, _ output: FilePath, _ schema: StoreSchema, _ naming: JoinTableNaming,
    _ check: inout VersionCheck, in folder: FilePath
  ) throws(HopdError) {
    var settings = request.settings
    settings.engine.altering = .never
    let slow = folder.appending("hop-by-hop.sqlite")
    switch try migrate(store, to: slow, settings, naming) {
    case .failure(let error):
      check.fail(
        Self.leaves(of: error).map { CheckFinding($0) },
        note: "the migration at once works, and the one hop by hop does not")
    case .success:
      let differences = try compare(schema, output, slow)
      // Programs may make anything, and different objects each time.
      guard !differences.isEmpty, !check.steps.contains(where: { $0.kind == .policy }) else { return }
      check.fail(
        differences.map { place in
          CheckFinding(
            HopdError(
              .waysDisagree,
              "\(place.count) \(place.property == nil ? "rows" : "values") differ between the migration at once and "
                + "the one hop by hop", at: Place(entity: place.entity, property: place.property),
              hint: "report this bug with the model: both migrations must produce the same store"))
        })
    }
  }

  /// Migrates by one direct hop, as Core Data does in an app without a migrator of its own: different rows are
  /// reported.
  private func compareDirect(
    _ store: StoreLocation, _ output: FilePath, _ schema: StoreSchema, _ naming: JoinTableNaming,
    _ check: inout VersionCheck, in folder: FilePath
  ) throws(HopdError) {
    guard request.settings.route == .progressive else { return }
    var settings = request.settings
    settings.route = .direct
    let direct = folder.appending("direct.sqlite")
    switch try migrate(store, to: direct, settings, naming) {
    case .failure: check.hasDirectHop = false
    case .success:
      check.hasDirectHop = true
      check.directDifferences = try compare(schema, output, direct)
    }
  }

  private func compare(
    _ schema: StoreSchema, _ first: FilePath, _ second: FilePath
  ) throws(HopdError) -> [StoreDisagreement] {
    do {
      return try StoreComparison(schema: schema).differences(first, second)
    } catch {
      throw HopdError(.internalError, "two results cannot be compared", at: Place(file: first), cause: error)
    }
  }

  private func note(_ report: MigrationReport, in check: inout VersionCheck) {
    check.warnings = report.warnings
    check.drops = Self.drops(report)
  }

  /// Records a failed attempt; returns the attempt with everyday rows, if that succeeded.
  private func fail(
    _ check: inout VersionCheck, _ error: HopdError, _ sample: SampleStore, in folder: FilePath
  ) throws(HopdError) -> Attempt? {
    let leaves = Self.leaves(of: error)
    if leaves.allSatisfy({ $0.code == .policyNotBound }) {
      check.verdict = .policy
      check.findings = leaves.map { Self.policyFinding($0) }
      if try scan(sample, .everyKind, in: folder) != nil, let stopped = try scan(sample, .everyday, in: folder) {
        check.fail(Self.leaves(of: stopped).map { CheckFinding($0) })
      } else if request.allowsUnboundPolicies {
        check.verdict = .passed
        check.note = "tried as far as the first policy without a program"
        check.findings = []
      }
      return nil
    }
    // A failure that stops every store of a nearer version on the same hop stops this one too, with any rows.
    if stubborn.hold(leaves) {
      check.fail(leaves.map { CheckFinding($0) })
      return nil
    }
    let everyday = try attempt(sample, .everyday, isUnhappy: false, in: folder)
    switch everyday.result {
    case .success(let report):
      // Only rows at the limits, or equal rows where they must differ, are stopped.
      check.extremes = leaves.map { CheckFinding($0, isOfRows: true) }
      if request.isUnhappy {
        check.fail(check.extremes)
        return nil
      }
      note(report, in: &check)
      return everyday
    case .failure(let error):
      let ordinary = try attempt(sample, .ordinary, isUnhappy: false, in: folder)
      var always: [HopdError] = []
      if case .failure(let error) = ordinary.result { always = Self.leaves(of: error) }
      check.fail(
        Self.leaves(of: error).map { leaf in
          CheckFinding(
            leaf, isOfRows: !always.contains { $0.code == leaf.code && $0.place.isSameThing(as: leaf.place) })
        })
      stubborn.note(check.findings.filter { !$0.isOfRows }.map(\.error))
      return nil
    }
  }

  private static func policyFinding(_ error: HopdError) -> CheckFinding {
    var finding = CheckFinding(error)
    if let hint = error.hint { finding.remedies = [Remedy(.other, hint)] }
    return finding
  }

  /// Runs a chain up to its first policy; returns what stops it before.
  private func scan(_ sample: SampleStore, _ kind: SampleRows, in folder: FilePath) throws(HopdError) -> HopdError? {
    let location = StoreLocation(database: folder.appending("policy-\(kind.rawValue).sqlite"))
    try make(sample, at: location, kind)
    let wanted = migration(of: location, to: nil, request.settings, naming(sample))
    do {
      _ = try MigrationPipeline(files: files).scan(wanted, scratch: folder, stop: stop) { _ in }
      return nil
    } catch {
      if Self.isOfTheMachine(error.error) { throw error.error }
      return error.error
    }
  }

  // MARK: User stores

  /// Migrates a copy of a user's store.
  func check(storeAt path: FilePath) throws(HopdError) -> StoreCheck {
    let start = ContinuousClock.now
    var check = StoreCheck(path: path, version: nil, verdict: .passed)
    if let deadline, ContinuousClock.now >= deadline {
      check.verdict = .untested
      return check
    }
    check.bytes = ((try? files.status(path)) ?? nil)?.size ?? 0
    try withinFolder { (folder) throws(HopdError) in
      let wanted = migration(
        of: StoreLocation(database: path), to: folder.appending("migrated.sqlite"), request.settings, JoinTableNaming())
      do throws(MigrationFailure) {
        let report = try MigrationPipeline(files: files).run(wanted, stop: stop) { _ in }
        check.version = report.from
        check.verdict = report.result == .current ? .current : .passed
        check.drops = Self.drops(report)
        check.objects = report.rows.values.reduce(0, &+)
      } catch {
        if Self.isOfTheMachine(error.error) { throw error.error }
        check.version = error.from
        let leaves = Self.leaves(of: error.error, isOfTrial: false)
        check.verdict =
          error.error.code == .storeNewer
          ? .later : leaves.allSatisfy { $0.code == .policyNotBound } ? .policy : .failed
        check.findings = leaves.map { CheckFinding($0) }
      }
    }
    check.seconds = ModelChecker.seconds(since: start)
    return check
  }

  // MARK: Attempts

  private struct Attempt {
    let location: StoreLocation
    let objects: Int64
    let bytes: Int64
    let result: Result<MigrationReport, HopdError>
    /// The migrated store.
    let output: FilePath?
  }

  /// Creates a store and migrates it at once.
  private func attempt(
    _ sample: SampleStore, _ kind: SampleRows, isUnhappy: Bool, in folder: FilePath
  ) throws(HopdError) -> Attempt {
    let name = isUnhappy ? "unhappy" : kind.rawValue
    let location = StoreLocation(database: folder.appending("\(name).sqlite"))
    let objects = try make(sample, at: location, kind)
    if isUnhappy {
      do { try UnhappyRows(schema: sample.schema).spoil(location.database) } catch {
        throw HopdError(.internalError, "a trial store cannot be changed", cause: error)
      }
    }
    let output = folder.appending("\(name)-migrated.sqlite")
    let result = try migrate(location, to: output, request.settings, naming(sample))
    let bytes = ((try? files.status(location.database)) ?? nil)?.size ?? 0
    return Attempt(
      location: location, objects: objects, bytes: bytes, result: result,
      output: (try? result.get()) == nil ? nil : output)
  }

  @discardableResult
  private func make(_ sample: SampleStore, at location: StoreLocation, _ kind: SampleRows) throws(HopdError) -> Int64 {
    do {
      return try sample.make(at: location, objectsEach: request.objectsEach, kind: kind, seed: request.seed)
    } catch let error as HopdError {
      throw error
    } catch let error as SQLiteError {
      throw StoreReader.explained(error, location: location)
    } catch {
      throw HopdError(.internalError, "a trial store cannot be made", cause: error)
    }
  }

  private func migrate(
    _ store: StoreLocation, to output: FilePath, _ settings: MigrationSettings, _ naming: JoinTableNaming
  ) throws(HopdError) -> Result<MigrationReport, HopdError> {
    let wanted = migration(of: store, to: output, settings, naming)
    do throws(MigrationFailure) {
      return .success(try MigrationPipeline(files: files).run(wanted, stop: stop) { _ in })
    } catch {
      if Self.isOfTheMachine(error.error) { throw error.error }
      return .failure(error.error)
    }
  }

  private func migration(
    of store: StoreLocation, to output: FilePath?, _ settings: MigrationSettings, _ naming: JoinTableNaming
  ) -> MigrationRequest {
    var wanted = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: store.database), catalog: request.catalog, target: request.target,
      naming: naming, output: output,
      settings: settings, stateDirectory: "", job: String(UInt64.random(in: .min ... .max), radix: 16))
    wanted.policies = request.policies
    return wanted
  }

  /// Returns the names of tables that cannot be computed, chosen for the whole chain as for the store itself: the check
  /// is about the model, and no store of an app is at risk.
  private func naming(_ sample: SampleStore) -> JoinTableNaming {
    var naming = sample.naming
    for version in request.catalog.versions where version.model.name != sample.model.name {
      let schema = StoreSchema(model: version.model, frameworkVersion: request.frameworkVersion)
      for table in schema.uncertainJoinTables
      where !naming.namingRelationships.contains("\(table.entity).\(table.alternative)") {
        naming.namingRelationships.insert("\(table.entity).\(table.computed)")
      }
    }
    return naming
  }

  private func withinFolder<Answer>(_ body: (FilePath) throws(HopdError) -> Answer) throws(HopdError) -> Answer {
    let folder = try ScratchDirectory(in: scratch, files: files)
    defer { try? folder.remove() }
    return try body(folder.path)
  }
}

// The meaning of errors in a trial: a mistake in the model, a limit of hopd, or an exhausted machine.

extension StoreTrial {
  /// Parts of a version without which no store of it can be made for a trial. Core Data makes them, so they prove no
  /// mistake in the model.
  static let limits: Set<HopdError.Code> = [.layoutUnsupported, .derivationUnsupported]

  /// Whether the error is about this machine, so that it proves nothing about the model.
  static func isOfTheMachine(_ error: HopdError) -> Bool {
    switch error.code.exit {
    case .temporaryFailure, .inputOutput, .noPermission, .unavailable: true
    default: false
    }
  }

  /// Returns the single causes of an error, each with all that is known of its place.
  static func leaves(of error: HopdError, isOfTrial: Bool = true, depth: Int = 0) -> [HopdError] {
    guard !error.reasons.isEmpty, depth < 8 else {
      var leaf = error
      // The trial's store no longer exists, nor do its rows.
      leaf.place.store = nil
      if isOfTrial { leaf.place.row = nil }
      return [leaf]
    }
    return error.reasons.flatMap { reason in
      var reason = reason
      reason.place = reason.place.filled(from: Place(hop: error.place.hop))
      return leaves(of: reason, isOfTrial: isOfTrial, depth: depth + 1)
    }
  }

  /// Returns what a run has dropped, by the hops of its report.
  static func drops(_ report: MigrationReport) -> [CheckDrop] {
    report.dropped.filter { $0.nonNull > 0 }.map { drop in
      let hop = report.hops.indices.contains(drop.hop) ? report.hops[drop.hop] : nil
      return CheckDrop(
        hop: hop.map { "\($0.source) → \($0.destination)" } ?? "", entity: drop.entity, property: drop.property,
        count: drop.nonNull)
    }
  }
}

extension Place {
  /// Whether two places name the same part of a model.
  func isSameThing(as other: Place) -> Bool {
    hop == other.hop && entity == other.entity && property == other.property
  }
}

/// Failures that stop every store of a version, whatever its rows are: found once, for all versions whose chain has the
/// same hop.
final class KnownFailures: Sendable {
  private struct Key: Hashable {
    let code: HopdError.Code
    let hop, entity, property: String?

    init(_ error: HopdError) {
      code = error.code
      (hop, entity, property) = (error.place.hop, error.place.entity, error.place.property)
    }
  }

  private let keys = Mutex<Set<Key>>([])

  /// Records failures.
  func note(_ errors: [HopdError]) {
    let found = errors.filter { $0.place.hop != nil }.map(Key.init)
    keys.withLock { $0.formUnion(found) }
  }

  /// Whether all of these failures are recorded.
  func hold(_ errors: [HopdError]) -> Bool {
    let found = errors.map(Key.init)
    return !found.isEmpty && keys.withLock { $0.isSuperset(of: found) }
  }
}
