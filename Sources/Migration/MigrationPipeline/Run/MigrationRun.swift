// One run over one store: the state during its stages.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import MigrationPolicy
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage

#if canImport(Glibc)
  import Glibc
#endif

/// The migration path of one store. It stays on the thread that made it.
final class MigrationRun {
  let request: MigrationRequest
  let files: any DurableFileSystem
  let stop: StopSignal
  let observer: (MigrationEvent) -> Void
  let start = ContinuousClock.now
  /// Reports the progress of the whole run.
  let progress: ProgressReporter
  /// Whether the run continues.
  let control: RunControl
  /// The policies of this run, and what they write.
  let policies: (any PolicyProvider)?
  let policyLines = PolicyLines()

  var stage = MigrationStage.identify {
    didSet { stages.leave(oldValue) }
  }
  private var stages = StageClock()
  var facts: StoreFacts?
  var targetName: String?
  /// The cached names of staged stores in directories; nil lists them again for each store.
  var leftovers: LeftoverIndex?
  /// From then on the swap owns the intent record.
  var hasSwapBegun = false
  /// How this store is replaced; final once it is locked.
  var replacement: ReplacementMode
  /// An interrupted job that is continued has its own name.
  var job: String
  /// Its record.
  var interrupted: ReplacementIntent?
  /// Rows of the result by entity, where the plan does not know them.
  var rows: [String: Int64]?
  /// The file of objects that were set aside; nil where none was.
  var quarantine: FilePath?
  /// Files that came too late for the migration before and were set aside: warnings of the report.
  var lateFiles: [HopdError] = []
  /// Row counts of the store from its planning: from then on no program changes it until the run ends.
  let counts = RowCountCache()
  /// The check of the source's pages, while it runs.
  var pages: PageCheck?
  /// Whether this run made the external data directory of a copy.
  var hasMadeExternalData = false

  init(
    request: MigrationRequest, files: any DurableFileSystem, stop: StopSignal,
    observer: @escaping (MigrationEvent) -> Void
  ) {
    self.request = request
    self.files = files
    self.stop = stop
    let control = RunControl(stop) { observer(.alive($0)) }
    self.control = control
    let reporter = ProgressReporter { control.paused }
    progress = reporter
    self.observer = { event in
      observer(event)
      if let progress = reporter.progress(after: event) { observer(progress) }
    }
    job = request.job
    replacement = request.replacement ?? .rename
    policies = request.policies?({ stop.isStopping }, { [policyLines] in policyLines.add($0, $1, $2) })
  }

  func failure(_ error: any Error) -> MigrationFailure {
    MigrationFailure(
      stage: stage, error: HopdError.of(error, at: Place(store: request.name)), from: facts?.version,
      to: targetName, storeUUID: facts?.uuid)
  }

  var seconds: Double { (ContinuousClock.now - start).seconds }

  /// Throws if the caller wants the run to end before it has begun.
  func checkStop() throws(HopdError) {
    if stop.isStopping {
      throw HopdError(.interrupted, "stopped on request", hint: "run the command again")
    }
  }

  // MARK: Identify and plan

  /// The store's version; nil when it is at the target already. Throws where it cannot be migrated at all.
  func identified(_ assessment: StoreAssessment) throws -> IdentifiedStore? {
    if let known = assessment.facts {
      if facts != known { observer(.identified(known)) }
      facts = known
    }
    targetName = assessment.target?.model.name ?? targetName
    return try assessment.storeBehind()
  }

  /// Emits life signs, and asks whether to continue, while SQLite runs a long statement.
  func heartbeat() -> () -> Bool {
    let (control, observer) = (self.control, self.observer)
    return { [unowned self] in
      observer(.alive(self.stage))
      return control.continues(in: self.stage)
    }
  }

  /// The plan and how it is carried out; throws for everything that cannot be done. A trial run needs no policies.
  func plan(
    _ store: IdentifiedStore, reader: StoreReader, needsPolicies: Bool = true, checksSource: Bool = true
  ) throws -> (plan: MigrationPlan, execution: ChainExecution) {
    stage = .plan
    if checksSource { try beginSourceCheck(reader) }
    let counting = StoreReader(connection: reader.connection, tables: reader.tables, rowCountCache: counts)
    let result = try besideSourceCheck { try planned(store, reader: counting, needsPolicies: needsPolicies) }
    // A short plan ends before its statements look for a request to stop.
    try checkStop()
    return result
  }

  private func planned(
    _ store: IdentifiedStore, reader: StoreReader, needsPolicies: Bool
  ) throws -> (plan: MigrationPlan, execution: ChainExecution) {
    counts.forget()
    let plan = try MigrationPlanner.plan(
      store: store, catalog: request.catalog, target: request.target, rules: request.rules, reader: reader)
    if needsPolicies {
      if !request.settings.leavesOutStages { try plan.requireStages() }
      try MigrationRun.requirePolicies(plan, policies)
    }
    // Refuses what no statement can do, before anything is written.
    let execution = try ChainExecution(of: plan, options: request.engine)
    if request.takesNotes {
      // A store that is at the target already keeps what it has.
      if let remark = plan.hops.last.flatMap({ ModelCache.remark(on: $0.destinationSchema) }) {
        observer(.note(.remark(remark.headline)))
      }
      for sentence in MigrationRun.decisions(plan, execution) { observer(.note(.decision(sentence))) }
    }
    var settings = request.settings
    settings.replacement = replacement
    progress.planned(plan, execution, settings: settings, replaces: request.output == nil)
    observer(
      .planned(
        PlanSummary(
          job: job, from: store.version.model.name, to: plan.target.model.name, hops: plan.hops.count,
          rows: execution.estimate.rows,
          bytes: plan.estimate.bytes, warnings: plan.warnings, dropped: plan.drops)))
    return (plan, execution)
  }

  /// The plan's decisions, for a trace.
  private static func decisions(_ plan: MigrationPlan, _ execution: ChainExecution) -> [String] {
    var sentences = [
      "the store has version \(plan.store.version.title) and goes to \(plan.target.title) in \(plan.hops.count) hops"
    ]
    for hop in plan.hops {
      let title = "hop \(hop.index + 1) of \(plan.hops.count), \(hop.title)"
      let rows = Dictionary(hop.entities.map { ($0.mapping, $0.rows) }) { first, _ in first }
      if let mapped = hop.mapped {
        let names = mapped.mappings.map { "\($0.name) (\($0.path.printable))" }.joined(separator: ", then ")
        sentences.append(
          mapped.hook == nil && mapped.mappings.contains { $0.path.isEmpty }
            ? "\(title): inferred, and run as a mapping model, because a rule settles its invalid rows"
            : "\(title): follows \(names)")
        sentences += mapped.entityMappings.map { mapping in
          "\(title): \(mapping.name), \(mapping.type.word), \(mapping.source ?? "no source") → "
            + "\(mapping.destination ?? "nothing"), \(rows[mapping.name] ?? 0) rows"
            + (mapping.policy.map { ", by the policy \($0)" } ?? "")
        }
      } else {
        sentences.append("\(title): inferred, as no mapping model matches it")
        sentences += hop.mapping.entityMappings.map { mapping in
          "\(title): \(mapping.kind.rawValue), \(mapping.sourceEntity ?? "no source") → "
            + "\(mapping.destinationEntity ?? "nothing"), \(rows[mapping.name] ?? 0) rows"
        }
      }
      if MigrationPlanner.beginsSegment(hop.index, of: plan) {
        sentences.append("\(title): its rows are inspected when the previous hop is complete")
      }
    }
    for (hop, decision) in zip(plan.hops, execution.hops) {
      sentences.append("\(hop.title): \(execution.sentence(ofHop: hop.index)): \(decision.reason)")
    }
    return sentences
  }

  /// Throws with every policy that the plan needs and that is bound to no program.
  static func requirePolicies(_ plan: MigrationPlan, _ policies: (any PolicyProvider)?) throws(HopdError) {
    var unbound: [HopdError] = []
    for hop in plan.hops {
      for policy in hop.mapped?.policies ?? [] {
        if let policies, policies.isBound(policy) {
          do {
            try policies.check(policy)
          } catch {
            unbound.append(HopdError.of(error, at: Place(hop: hop.title)))
          }
          continue
        }
        let mappings = hop.mapped?.entityMappings.filter { $0.policy == policy }.map(\.name) ?? []
        unbound.append(
          HopdError(
            .policyNotBound,
            hop.hook == nil
              ? "no program is bound to the policy \(policy) (of \(mappings.joined(separator: ", ")))"
              : "the stage names the program \(policy), and no command is bound to that name",
            at: (hop.hook?.stage.place ?? Place()).filled(from: Place(hop: hop.title)),
            hint: "pass --policy \(policy)=COMMAND, or set it in [policies] of the configuration"))
      }
    }
    guard let first = unbound.first else { return }
    if unbound.count == 1 { throw first }
    throw HopdError(
      .policyNotBound, "no program is bound to \(unbound.count) policies that mapping models or stages name",
      hint: "pass one for each with --policy CLASS=COMMAND, or set it in [policies] of the configuration",
      reasons: unbound)
  }

  /// The chain of a plan, which reads the file `base` in place of the store if there is one. `source` and `boot`
  /// identify the source and the boot of its checkpoints.
  func chain(
    _ plan: MigrationPlan, _ execution: ChainExecution, _ area: StagingArea, _ reader: StoreReader, source: String,
    boot: String, end: Int? = nil, base: FilePath? = nil
  ) -> HopChain {
    HopChain(
      plan: plan, execution: execution, area: area, connection: reader.connection, sourceSchema: reader.schema,
      identity: Checkpoint.Identity(plan: execution.fingerprint, source: source, boot: boot), options: request.engine,
      rules: request.rules, policies: policies, policyLines: policyLines, takesNotes: request.takesNotes, files: files,
      control: control, observer: observer, end: end, base: base, counts: counts,
      references: ReferenceCache(counts: counts))
  }

  func verify(_ staged: FilePath, chain: HopChain) throws -> VerifiedStore {
    stage = .verify
    observer(.verifying)
    // The last hop is complete: the next start verifies it.
    try checkStop()
    let expectation = try chain.expectation()
    let verifier = StoreVerifier(depth: request.verification, keepAlive: heartbeat())
    let verified = try verifier.verify(
      staged: staged, plan: chain.plan, expectation: expectation, staying: chain.execution.staying,
      source: StoreReader(connection: chain.connection, schema: chain.sourceSchema))
    if chain.plan.isMixed { rows = verified.rows }
    observer(.verified(checks: verified.checks.count))
    return verified
  }

  // MARK: Report

  func report(
    _ result: MigrationResult, plan: MigrationPlan? = nil, outcome: HopChain.Outcome? = nil,
    verified: VerifiedStore? = nil,
    backup: FilePath? = nil, warnings: [HopdError] = []
  ) -> MigrationReport {
    let version = facts?.version ?? ""
    return MigrationReport(
      job: job, store: request.output ?? request.name, storeUUID: facts?.uuid ?? "", result: result,
      from: plan?.store.version.model.name ?? version, to: plan?.target.model.name ?? targetName ?? version,
      hops: outcome?.hops ?? [], rows: rows ?? plan?.expectation.rowsByEntity ?? [:],
      dropped: (plan?.drops ?? []) + (outcome?.drops ?? []),
      clearedHistory: plan?.clearedHistory ?? [],
      warnings: lateFiles + (plan?.warnings ?? []) + (outcome?.warnings ?? []) + warnings, backup: backup,
      quarantine: quarantine, seconds: seconds,
      peakMemory: ProgramMemory.peak, checks: verified?.checks ?? [], wasResumed: outcome?.wasResumed ?? false,
      stages: stages.seconds(upTo: stage))
  }
}
