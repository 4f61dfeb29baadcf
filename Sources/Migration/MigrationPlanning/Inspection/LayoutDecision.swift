// The layout of the store after each hop: one for every version of the chain, and the facts about the existing store
// that decide the last one (names of tables, triggers, R-Trees, history), which is the one that Core Data will open.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// The layouts along a migration path, from the existing store to the last version.
struct LayoutDecision {
  /// One layout per version, the store's own first.
  private(set) var schemas: [StoreSchema]
  /// The decisions about derived attributes; nil for a migration path without hops.
  private(set) var derivations: DerivationDecision?
  /// Derived attributes whose values each hop computes.
  var computed: [[SchemaDerivation]] { derivations?.computed ?? [] }
  /// How the rows of persistent history are carried into the last store; nil if none are.
  private(set) var historyCarry: HistoryCarry?
  /// Tables of persistent history whose rows are dropped.
  private(set) var clearedHistory: [ClearedTable] = []
  /// The facts that, with its model, decide the last layout; nil for a migration path without hops.
  private(set) var last: MigrationPathCache.LastLayout?
  private(set) var findings = Findings()
  private(set) var warnings: [HopdError] = []

  /// Decides for a migration path of at least one hop, whose inspected source proves `provenNames`.
  init(
    migrationPath: MigrationPath, edges: [MigrationGraph.Edge], store: IdentifiedStore, inspection: StoreInspection,
    provenNames: Set<String>, rules: PlanningRules, reader: StoreReader
  ) throws {
    let framework = migrationPath.sourceSchema.frameworkVersion
    schemas = [migrationPath.sourceSchema]
    guard let last = edges.last?.destination.model else { return }
    let decision = JoinTableDecision(migrationPath: migrationPath, destination: last, given: rules.naming)
    findings.add(decision.findings.errors)
    warnings += decision.warnings
    // Only hopd reads stores between two hops; only the last one must be what Core Data would make.
    schemas += edges.dropLast().map { edge in
      StoreSchema(
        model: edge.destination.model, frameworkVersion: framework,
        observed: .internalStore(of: edge.destination.model))
    }
    var observed = ObservedLayout(provenNames: provenNames, hasRTrees: inspection.rTrees.showsForm)
    func layout() -> StoreSchema {
      StoreSchema(model: last, frameworkVersion: framework, naming: decision.naming, observed: observed)
    }
    let derivations = DerivationDecision(
      migrationPath: migrationPath, schemas: schemas + [layout()], objects: inspection.objects)
    findings.add(derivations.findings.errors)
    self.derivations = derivations
    observed.carriedDerivations = derivations.carried
    observed.carriedTriggers = derivations.triggers
    var final = layout()
    let history = try HistoryInspection(reader: reader, path: migrationPath, final: final, rules: rules)
    findings.add(history.findings.errors)
    // Only the last store is kept: the ones before it need no history.
    final.history = history.layout
    clearedHistory = history.cleared
    historyCarry = history.carry
    warnings += history.warnings
    schemas.append(final)
    self.last = MigrationPathCache.LastLayout(
      naming: decision.naming, observed: observed, historyTables: history.layout?.tables ?? [:],
      historyIndexes: (history.layout?.indexes ?? []) + (history.layout?.mirroring ?? []))
    let autoVacuum = try reader.connection.integer("PRAGMA \(SQLiteIdentifier.quoted(reader.schema)).auto_vacuum")
    warnings += store.metadata.contradictions(autoVacuum: autoVacuum ?? 0)
    if framework > FrameworkVersion.newestKnown {
      warnings += [FrameworkVersion.remark(on: framework)].compactMap(\.self)
    }
    for schema in schemas {
      for error in schema.unsupported where error.code == .layoutUnsupported { findings.add(error) }
    }
  }
}
