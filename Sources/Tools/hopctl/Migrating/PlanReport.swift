// The plan of one store's migration as text and JSON: what `hopctl plan` and `hopctl migrate --dry-run` print.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage

/// Plans a migration and prints the plan; changes nothing.
struct PlanReport {
  /// The store, for the report.
  let store: FilePath
  /// The store as it was typed.
  let text: String
  let request: MigrationRequest
  let loaded: ModelOptions.Loaded
  /// Remarks that were printed already.
  let remarks: [HopdError]
  /// The directory for the trial of a chain with mapping models.
  let scratch: FilePath?
  let notes: NoteWriter.Level
  let output: OutputOptions
  /// Whether work to do is the exit status 10.
  var check = false
  /// Whether a stage without a program is an error, as in a migration; a plan warns.
  var requiresStages = false
  /// Whether the trial is left out.
  var noScan = false
  /// Whether everything is left out that differs from machine to machine.
  var stable = false

  /// Plans and prints; throws what would stop the migration.
  func run() throws {
    let location = request.location
    if request.repairs { return try runRepairing() }
    let (assessment, plan) = try StoreReader.withUnchangedStore(at: location.store) { reader in
      let found = try StoreIdentifier.identify(
        reader: reader, location: location.store, catalog: loaded.catalog, target: request.target, countsRows: false)
      return (
        found,
        try Self.needsPlan(found).map {
          try MigrationPlanner.plan(
            store: $0, catalog: loaded.catalog, target: request.target, rules: request.rules, reader: reader)
        }
      )
    }
    try show(assessment, plan, repaired: [])
  }

  /// Repairs a scratch copy of the store, and plans its migration there.
  private func runRepairing() throws {
    let bar = ProgressBar(output, notes: notes)
    let preview: RepairPreview
    do throws(MigrationFailure) {
      defer { bar.end() }
      preview = try MigrationPipeline().previewRepair(
        request, scratch: scratch, stop: StopOnSignals.start()
      ) { bar.show($0) }
    } catch {
      throw error.error
    }
    output.warn(preview.warnings)
    for object in preview.objects {
      try output.line("would \(object.gap.isWrong ? "correct" : "create") \(object.sentence)")
    }
    try show(preview.assessment, preview.plan, repaired: preview.objects)
  }

  private func show(_ assessment: StoreAssessment, _ plan: MigrationPlan?, repaired: [RepairedObject]) throws {
    let location = request.location
    if let plan {
      let trial = try scan(plan)
      try show(
        plan, trial, pin: PinShape.of(location, assessment, output, rule: request.pinRule), repaired: repaired)
      if let failure = trial.failure { throw Finished(status: failure.code.exit) }
      if check { throw Finished(status: .workToDo) }
    } else {
      let version = assessment.version?.model.name ?? "?"
      try output.line("\(text): \(version), \(repaired.isEmpty ? "nothing to do" : "no hops")")
      let pin = try PinShape.of(location, assessment, output, rule: request.pinRule)
      let nothing = MigrationEstimate(rows: 0, bytes: 0, diskNeeded: 0, memory: 0, seconds: 0)
      try output.object(
        json(
          from: assessment.version, to: assessment.target?.model.name ?? version, hops: [], pin, loaded.warnings,
          nothing, diskNeeded: 0) + Self.json(of: repaired), isForReview: stable)
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

  // MARK: Attempts

  /// The findings that a trial of the chain adds to the plan.
  private struct Trial {
    var drops: [DroppedColumn] = []
    var warnings: [HopdError] = []
    var failure: HopdError?
  }

  /// Runs a chain with mapping models in a scratch folder, so that the rows of its later hops can be inspected.
  private func scan(_ plan: MigrationPlan) throws -> Trial {
    let location = request.location
    if requiresStages {
      do throws(HopdError) { try plan.requireStages() } catch { return Trial(failure: error) }
    }
    // A refusal that a migration finds at its start is reported without a trial.
    if request.output == nil, request.replacement != .inPlace,
      let refusal = try ReplacementMode.refusalOfRename(location)
    {
      return Trial(failure: refusal)
    }
    guard plan.isMixed, !noScan else { return Trial() }
    let bar = ProgressBar(output, notes: notes)
    defer { bar.end() }
    do {
      let found = try MigrationPipeline().scan(
        request, scratch: scratch, stop: StopOnSignals.start()
      ) { bar.show($0) }
      return Trial(drops: found.drops, warnings: found.warnings)
    } catch {
      // An error that would stop the migration is part of the result; an obstacle to the trial alone is not.
      guard error.error.code.exit == .dataError else {
        var hindrance = error.error
        if hindrance.code == .noSpace {
          hindrance.hint = "pass another directory with --scratch DIR, or skip the trial run with --no-scan"
        }
        throw hindrance
      }
      return Trial(failure: error.error)
    }
  }

  // MARK: Display

  private func show(_ plan: MigrationPlan, _ trial: Trial, pin: PinShape?, repaired: [RepairedObject]) throws {
    let drops = plan.drops + trial.drops
    let hops = try plan.hops.map { try PlanShape.Hop($0, plan: plan, drops: drops, isBound: request.isBound) }
    let execution = try ChainExecution(of: plan, options: request.engine)
    let words = PlanText(plan: plan, hops: hops, execution: execution, drops: drops, request: request)
    let title = TerminalText("\(text): \(plan.store.version.title) → \(plan.target.model.name), \(words.count)")
    try output.lines([title] + words.hopLines + words.executionLines)
    for warning in plan.warnings + trial.warnings {
      try output.line(TerminalText("warning:", .attention) + " \(warning)", keepingNewlines: true)
    }
    if let line = words.replacement { try output.line(line) }
    if !stable { try output.line(words.estimate) }
    if let failure = trial.failure { ErrorReport.report(failure) }
    var object = json(
      from: plan.store.version, to: plan.target.model.name, hops: hops, execution: execution.json, pin,
      remarks + plan.warnings + trial.warnings, execution.estimate, diskNeeded: words.diskNeeded)
    object += Self.json(of: repaired)
    // Tables of persistent history whose rows the migration drops; only for stores that have such tables.
    if !plan.clearedHistory.isEmpty {
      object += ["history": plan.clearedHistory.map { ["table": $0.table, "rows": $0.rows] as JSONObject }]
    }
    // The error of the trial that would stop the migration.
    if let failure = trial.failure { object += ["error": reported([failure]).first] }
    try output.object(object, isForReview: stable)
  }

  /// The objects that a repair makes first; only with `--repair`, where there are some.
  private static func json(of repaired: [RepairedObject]) -> JSONObject {
    repaired.isEmpty ? [:] : ["repaired": repaired.map(\.json)]
  }

  private func json(
    from version: CatalogedVersion?, to target: String, hops: [PlanShape.Hop], execution: [JSONObject] = [],
    _ pin: PinShape?, _ warnings: [HopdError], _ estimate: MigrationEstimate, diskNeeded: Int64
  ) -> JSONObject {
    var common: JSONObject = [
      "store": stable ? store.lastComponent?.string : store.string, "from": version?.model.name ?? "?",
      "to": target, "configuration": version?.configuration,
      "modelSource": version.map(MessageFormatter.modelSource), "hops": hops, "execution": execution, "pin": pin,
      "warnings": reported(warnings),
    ]
    if let found = loaded.found { common += ["models": found.json(isForReview: stable)] }
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
    warnings.map { (stable ? PlanReport.withoutFolders($0) : $0).json }
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
