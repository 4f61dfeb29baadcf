import ArgumentParser
import Diagnostics
import HopdConfiguration
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl plan STORE`.
struct PlanCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan", abstract: "Says what a migration would do; changes nothing.",
    discussion: "Exit status with --check: 0 nothing to do, 10 work to do, 65 cannot be migrated.")

  @OptionGroup var store: StoreArgument
  @OptionGroup var models: ModelOptions
  @OptionGroup var options: RequestOptions

  @OptionGroup var replacement: ReplaceOptions

  @Flag(help: "Exit with 10 if there is work to do.")
  var check = false

  @Flag(
    name: .customLong("no-scan"),
    help: ArgumentHelp(
      "Leave out the trial of a chain with mapping models.",
      discussion: """
        Such a chain is run up to its first policy into a scratch folder, because only then its rows can be looked at.
        """))
  var noScan = false
  @OptionGroup var scratch: ScratchOptions

  @Flag(
    help: ArgumentHelp(
      "Leave out what differs from machine to machine: sizes, times, folders.",
      discussion:
        "With --json the same plan is the same text, spread over lines, fit to be kept and compared in reviews."))
  var stable = false

  @OptionGroup var output: OutputOptions

  func execute() throws {
    let location = try store.location()
    // The plan's own warnings include the catalog's remarks on this model.
    let (loaded, remarks) = try options.load(models, for: location.store, output, search: .everywhere) {
      $0.code != .modelRemark
    }
    var request = try options.request(location, loaded, stateDirectory: "")
    if let chosen = replacement.replace { request.replacement = chosen }
    let wanted = request.target
    let (assessment, plan) = try StoreReader.withUnchangedStore(at: location.store) { reader in
      let found = try StoreIdentifier.identify(
        reader: reader, location: location.store, catalog: loaded.catalog, target: wanted, countsRows: false)
      return (
        found,
        try PlanCommand.needsPlan(found).map {
          try MigrationPlanner.plan(
            store: $0, catalog: loaded.catalog, target: wanted, rules: request.rules, reader: reader)
        }
      )
    }
    if let plan {
      let trial = try scan(plan, location, request)
      try show(
        plan, trial, request: request, loaded.found, remarks: remarks,
        pin: PinShape.of(location, assessment, output, rule: request.pinRule))
      if let failure = trial.failure { throw Finished(status: failure.code.exit) }
      if check { throw Finished(status: .workToDo) }
    } else {
      let version = assessment.version?.model.name ?? "?"
      try output.line("\(store.text): \(version), nothing to do")
      let pin = try PinShape.of(location, assessment, output, rule: request.pinRule)
      let nothing = MigrationEstimate(rows: 0, bytes: 0, diskNeeded: 0, memory: 0, seconds: 0)
      try output.object(
        json(
          location.store, from: assessment.version, to: assessment.target?.model.name ?? version, hops: [], pin,
          loaded.found, loaded.warnings, nothing, diskNeeded: 0), isForReview: stable)
    }
  }

  /// Returns a store that is behind; nil if the store is current. Any other state is thrown.
  private static func needsPlan(_ found: StoreAssessment) throws(HopdError) -> IdentifiedStore? {
    switch found.state {
    case .current: return nil
    case .behind where found.identified != nil: return found.identified
    case .behind, .newer, .unknown, .notAStore, .damaged, .encrypted, .xmlStore, .binaryStore:
      throw found.explanation ?? HopdError(.internalError, "the store is \(found.state.rawValue), without a reason")
    }
  }

  // MARK: Trying

  /// The findings that a trial of the chain adds to the plan.
  private struct Trial {
    var drops: [DroppedColumn] = []
    var warnings: [HopdError] = []
    var failure: HopdError?
  }

  /// Runs a chain with mapping models in a scratch folder, so that the rows of its later hops can be inspected.
  private func scan(_ plan: MigrationPlan, _ location: CanonicalStoreLocation, _ request: MigrationRequest) throws
    -> Trial
  {
    // A refusal that a migration finds at its start is reported without a trial.
    if request.replacement != .inPlace, let refusal = try ReplacementMode.refusalOfRename(location) {
      return Trial(failure: refusal)
    }
    guard plan.isMixed, !noScan else { return Trial() }
    let bar = ProgressBar(output, notes: options.verbose.level)
    defer { bar.end() }
    do {
      let found = try MigrationPipeline().scan(
        request, scratch: scratch.directory, stop: StopOnSignals.start()
      ) { bar.show($0) }
      return Trial(drops: found.drops, warnings: found.warnings)
    } catch {
      // An error that would stop the migration is part of the result; an obstacle to the trial alone is not.
      guard error.error.code.exit == .dataError else {
        var hindrance = error.error
        if hindrance.code == .noSpace {
          hindrance.hint = "name another folder for the trial with --scratch DIR, or leave it out with --no-scan"
        }
        throw hindrance
      }
      return Trial(failure: error.error)
    }
  }

  // MARK: Showing

  private func show(
    _ plan: MigrationPlan, _ trial: Trial, request: MigrationRequest, _ found: FoundModels?, remarks: [HopdError],
    pin: PinShape?
  ) throws {
    let drops = plan.drops + trial.drops
    let hops = try plan.hops.map { try PlanShape.Hop($0, plan: plan, drops: drops, isBound: request.isBound) }
    let execution = try ChainExecution(of: plan, options: request.engine)
    let text = PlanText(plan: plan, hops: hops, execution: execution, drops: drops, request: request)
    let title = TerminalText("\(store.text): \(plan.store.version.title) → \(plan.target.model.name), \(text.count)")
    try output.lines([title] + text.hopLines + text.executionLines)
    for warning in plan.warnings + trial.warnings {
      try output.line(TerminalText("warning:", .attention) + " \(warning)", keepingNewlines: true)
    }
    if let line = text.replacement { try output.line(line) }
    if !stable { try output.line(text.estimate) }
    if let failure = trial.failure { ErrorReport.report(failure) }
    var object = json(
      request.location.store, from: plan.store.version, to: plan.target.model.name, hops: hops,
      execution: execution.json, pin, found, remarks + plan.warnings + trial.warnings,
      execution.estimate, diskNeeded: text.diskNeeded)
    // Tables of persistent history whose rows the migration drops; only for stores that have such tables.
    if !plan.clearedHistory.isEmpty {
      object += ["history": plan.clearedHistory.map { ["table": $0.table, "rows": $0.rows] as JSONObject }]
    }
    // The error of the trial that would stop the migration.
    if let failure = trial.failure { object += ["error": reported([failure]).first] }
    try output.object(object, isForReview: stable)
  }

  private func json(
    _ location: StoreLocation, from version: CatalogedVersion?, to target: String, hops: [PlanShape.Hop],
    execution: [JSONObject] = [], _ pin: PinShape?, _ found: FoundModels?, _ warnings: [HopdError],
    _ estimate: MigrationEstimate, diskNeeded: Int64
  ) -> JSONObject {
    var common: JSONObject = [
      "store": stable ? location.fileName : location.database.string, "from": version?.model.name ?? "?",
      "to": target, "configuration": version?.configuration,
      "modelSource": version.map(MessageFormatter.modelSource), "hops": hops, "execution": execution, "pin": pin,
      "warnings": reported(warnings),
    ]
    if let found { common += ["models": found.json(isForReview: stable)] }
    // Sizes and times differ from machine to machine.
    if stable { return common }
    let sizes: JSONObject = [
      "rows": estimate.rows, "bytes": estimate.bytes, "diskNeeded": diskNeeded, "memory": estimate.memory,
      "seconds": estimate.seconds,
    ]
    return common + ["estimate": sizes]
  }

  /// Warnings as JSON; without folders under `--stable`.
  private func reported(_ warnings: [HopdError]) -> [JSONObject] {
    warnings.map { (stable ? PlanCommand.withoutFolders($0) : $0).json }
  }

  private static func withoutFolders(_ error: HopdError) -> HopdError {
    var error = error
    error.place.store = nil
    error.place.file = error.place.file?.lastComponent.map { FilePath($0.string) }
    error.reasons = error.reasons.map(withoutFolders)
    return error
  }
}

extension ChainExecution {
  /// One object for each hop; `tables` only where a file is altered.
  fileprivate var json: [JSONObject] {
    hops.enumerated().map { index, decision in
      let hop: JSONObject = [
        "hop": index + 1, "action": decision.word, "copies": decision.program != nil && !staysInStore(index),
        "reason": decision.reason,
      ]
      guard let changes = decision.program?.changes else { return hop }
      let tables = changes.map { ["table": $0.table, "action": $0.action.rawValue, "reason": $0.reason] as JSONObject }
      return hop + ["tables": tables]
    }
  }
}

extension PlanShape.Hop {
  /// Describes a hop of a plan; `drops` are those of the whole plan.
  init(_ hop: Hop, plan: MigrationPlan, drops: [DroppedColumn], isBound: (String) -> Bool) throws(HopdError) {
    func dropped(_ entity: String?) -> [PlanShape.Drop] {
      // An entity that goes is an entity of type "remove" with its rows.
      drops.filter { $0.hop == hop.index && $0.entity == entity }.compactMap { drop in
        guard let property = drop.property, let column = drop.column else { return nil }
        return PlanShape.Drop(column: column, property: property, nonNull: drop.nonNull)
      }
    }
    (source, destination) = (hop.source.name, hop.destination.name)
    guard let mapped = hop.mapped else {
      kind = "inferred"
      (mappings, self.policies) = ([], [])
      entities = zip(hop.mapping.entityMappings, hop.entities).map { mapping, cost in
        PlanShape.Entity(
          source: mapping.sourceEntity, destination: mapping.destinationEntity, type: mapping.kind.rawValue,
          mapping: nil, rows: cost.rows, execution: "sql", reasons: [], drops: dropped(mapping.sourceEntity))
      }
      return
    }
    kind = hop.kind
    mappings = mapped.mappings.map(\.name)
    self.policies = mapped.policies.map { PlanShape.Policy(name: $0, bound: isBound($0)) }
    let executions = try MigrationPipeline.executions(of: hop)
    var reported: Set<String> = []
    entities =
      zip(mapped.entityMappings, zip(hop.entities, executions)).map { mapping, known in
        PlanShape.Entity(
          source: mapping.source, destination: mapping.destination, type: mapping.typeWord, mapping: mapping.name,
          rows: known.0.rows, execution: known.1.kind, reasons: known.1.reasons,
          drops: mapping.source.map { reported.insert($0).inserted } == true ? dropped(mapping.source) : [])
      }
      // Entities that no entity mapping reads, if the plan has their number of rows.
      + hop.mapping.entityMappings.filter { $0.kind == .remove }.compactMap { entity in
        guard let name = entity.sourceEntity, !reported.contains(name),
          let rows = plan.expectation.droppedRowsByEntity[name]
        else { return nil }
        return PlanShape.Entity(
          source: name, destination: nil, type: "remove", mapping: nil, rows: rows, execution: "sql", reasons: [],
          drops: [])
      }
  }
}

extension PlanShape.Entity {
  /// "Book", "Book → Volume", or the name of the mapping.
  var subject: String {
    switch (source, destination) {
    case (let source?, let destination?): source == destination ? source : "\(source) → \(destination)"
    case (let source?, nil): source
    case (nil, let destination?): destination
    case (nil, nil): mapping ?? ""
    }
  }
}
