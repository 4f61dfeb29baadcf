import ArgumentParser
import Diagnostics
import HopdConfiguration
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SystemPackage

/// `hopctl plan STORE`.
struct PlanCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan", abstract: "Says what a migration would do; changes nothing.",
    discussion: "With --check the exit status tells: 0 nothing to do, 10 work to do, 65 cannot be migrated.")

  @OptionGroup var store: StoreArgument
  @OptionGroup var models: ModelOptions
  @OptionGroup var target: TargetOptions

  @Flag(help: "Exit with 10 where there is work to do.")
  var check = false

  @OptionGroup var output: OutputOptions

  func execute() throws {
    let location = try store.location()
    let loaded = try models.load(for: location)
    // What the catalog says of this model is among the plan's own warnings.
    let remarks = loaded.warnings.filter { $0.code != .modelRemark }
    output.warn(remarks)
    let naming = try target.naming(loaded)
    let wanted = target.target(loaded.watch)
    let (assessment, plan) = try StoreReader.withUnchangedStore(at: location) { reader in
      let found = try StoreIdentifier.identify(
        reader: reader, location: location, catalog: loaded.catalog, target: wanted)
      return (
        found,
        try PlanCommand.needsPlan(found).map {
          try MigrationPlanner.plan(
            store: $0, catalog: loaded.catalog, target: wanted,
            rules: PlanningRules(
              infer: loaded.watch?.infer ?? true, naming: naming, history: target.history(loaded.watch),
              memoryLimit: loaded.memoryLimit ?? 64 << 20), reader: reader)
        }
      )
    }
    if let plan {
      try show(plan, location: location, remarks: remarks)
      if check { throw Finished(status: .workToDo) }
    } else {
      let version = assessment.version?.model.name ?? "?"
      try output.line("\(store.text): \(version), nothing to do")
      try output.object(
        PlanShape(
          store: location.database.string, from: version, to: assessment.target?.model.name ?? version,
          configuration: OrNull(wrappedValue: assessment.version?.configuration),
          modelSource: OrNull(wrappedValue: assessment.version.map(Wording.modelSource)), hops: [],
          estimate: PlanShape.Estimate(rows: 0, bytes: 0, diskNeeded: 0, memory: 0, seconds: 0),
          warnings: loaded.warnings.map(ErrorShape.init)))
    }
  }

  /// The store where it is behind; nil where it is current. Anything else is thrown.
  private static func needsPlan(_ found: StoreAssessment) throws(HopdError) -> IdentifiedStore? {
    switch found.state {
    case .current: return nil
    case .behind where found.identified != nil: return found.identified
    case .behind, .newer, .unknown, .notAStore, .damaged, .encrypted:
      throw found.explanation ?? HopdError(.internalError, "the store is \(found.state.rawValue), without a reason")
    }
  }

  // MARK: Showing

  private func show(_ plan: MigrationPlan, location: StoreLocation, remarks: [HopdError]) throws {
    let from = plan.store.version.title
    try output.line(
      "\(store.text): \(from) → \(plan.target.model.name), "
        + Wording.count(Int64(plan.hops.count), "hop", "hops"))
    for hop in plan.hops {
      try output.line("hop \(hop.index + 1)/\(plan.hops.count)  \(hop.title)  (inferred)")
      let rows = zip(hop.mapping.entityMappings, hop.entities).map { mapping, cost in
        ["\(PlanCommand.subject(mapping))", mapping.kind.rawValue, Wording.count(cost.rows, "row", "rows")]
      }
      for line in Wording.table(rows, right: [2]) { try output.line(line) }
      for drop in plan.drops where drop.hop == hop.index {
        try output.line(
          "  drops \(drop.entity).\(drop.property) (\(drop.column)): \(Wording.count(drop.nonNull, "value", "values"))")
      }
    }
    for table in plan.clearedHistory where table.rows > 0 {
      try output.line("clears \(table.table) (persistent history): \(Wording.count(table.rows, "row", "rows"))")
    }
    for warning in plan.warnings { try output.line("warning: \(warning)") }
    let estimate = plan.estimate
    try output.line(
      "estimate: \(Wording.count(estimate.rows, "row", "rows")), \(Wording.bytes(estimate.bytes)) to read, "
        + "\(Wording.bytes(estimate.diskNeeded)) of free disk, \(Wording.bytes(estimate.memory)) of memory, about "
        + Wording.duration(estimate.seconds))
    try output.object(shape(plan, location: location, warnings: remarks + plan.warnings))
  }

  private static func subject(_ mapping: EntityMapping) -> String {
    switch (mapping.sourceEntity, mapping.destinationEntity) {
    case (let source?, let destination?): source == destination ? source : "\(source) → \(destination)"
    case (let source?, nil): source
    case (nil, let destination?): destination
    case (nil, nil): mapping.name
    }
  }

  private func shape(_ plan: MigrationPlan, location: StoreLocation, warnings: [HopdError]) -> PlanShape {
    PlanShape(
      store: location.database.string, from: plan.store.version.model.name, to: plan.target.model.name,
      configuration: OrNull(wrappedValue: plan.store.version.configuration),
      modelSource: OrNull(wrappedValue: Wording.modelSource(plan.store.version)),
      hops: plan.hops.map { hop in
        PlanShape.Hop(
          source: hop.source.name, destination: hop.destination.name, kind: "inferred", mappings: [], policies: [],
          entities: zip(hop.mapping.entityMappings, hop.entities).map { mapping, cost in
            PlanShape.Entity(
              source: OrNull(wrappedValue: mapping.sourceEntity),
              destination: OrNull(wrappedValue: mapping.destinationEntity), type: mapping.kind.rawValue,
              rows: cost.rows, execution: "sql",
              drops: plan.drops.filter { $0.hop == hop.index && $0.entity == mapping.sourceEntity }.map {
                PlanShape.Drop(column: $0.column, property: $0.property, nonNull: $0.nonNull)
              })
          })
      },
      history: plan.clearedHistory.isEmpty
        ? nil : plan.clearedHistory.map { HistoryShape(table: $0.table, rows: $0.rows) },
      estimate: PlanShape.Estimate(
        rows: plan.estimate.rows, bytes: plan.estimate.bytes, diskNeeded: plan.estimate.diskNeeded,
        memory: plan.estimate.memory, seconds: plan.estimate.seconds), warnings: warnings.map(ErrorShape.init))
  }
}
