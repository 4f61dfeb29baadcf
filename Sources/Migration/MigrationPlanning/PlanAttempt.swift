// One attempt at a plan: the chain by one set of rules, and everything that is checked in the store before it runs. The
// checks are in the order in which they run; each throws all of its findings.

import Diagnostics
import Expressions
import Glibc
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite
import SystemPackage

/// The plan for one store by one chain.
struct PlanAttempt {
  let store: IdentifiedStore
  let catalog: ModelCatalog
  let target: CatalogedVersion
  let rules: PlanningRules
  let routing: RouteRules
  private let reader: StoreReader
  private let place: Place

  /// The chain, and the layout of the store at its beginning.
  private let routeKey: RouteKey?
  let edges: [MigrationGraph.Edge]
  private let sourceNaming: JoinTableNaming
  private let provenNames: Set<String>
  private let sourceSchema: StoreSchema
  private let migrationPath: MigrationPath
  /// Counts are shared with the inspection of the ways around this one.
  let census: StoreCensus

  private var warnings: [HopdError] = []

  /// Finds the chain; throws if there is none.
  init(
    _ store: IdentifiedStore, _ catalog: ModelCatalog, _ targetVersion: TargetVersion, _ rules: PlanningRules,
    _ routing: RouteRules, _ reader: StoreReader
  ) throws {
    self.store = store
    self.catalog = catalog
    self.rules = rules
    self.routing = routing
    self.reader = reader
    place = Place(store: store.location.database)
    target = try store.line.target(targetVersion, for: store.version)
    try store.line.requireNoGap(from: store.version, to: target)
    if !store.version.isSameVersion(as: target), rules.cloudKit == .refuse {
      try MirroringInspection.refuse(reader)
    }
    routeKey = RouteKey(of: store, to: target, rules: routing)
    edges = try catalog.route(of: store, to: target, rules: routing, key: routeKey)
    let (model, framework) = (store.version.model, store.metadata.frameworkVersion)
    sourceNaming = try reader.joinTableNaming(for: model, frameworkVersion: framework)
    provenNames = try reader.provenNames(
      in: StoreSchema(model: model, frameworkVersion: framework, naming: sourceNaming))
    sourceSchema = StoreSchema(
      model: model, frameworkVersion: framework, naming: sourceNaming,
      observed: ObservedLayout(provenNames: provenNames))
    migrationPath = MigrationPath(sourceSchema: sourceSchema, edges: edges)
    census = StoreCensus(schema: sourceSchema, reader: reader)
  }

  /// Rows are checked for the inferred hops at the beginning; rows made by mapping models are checked in the staged
  /// store that holds them (`SegmentInspection`).
  private var leading: Int { edges.prefix { $0.mapped == nil }.count }
  private var isMixed: Bool { leading < edges.count }
  /// The inferred hops at the beginning of the chain.
  var lead: MigrationPath { migrationPath.prefix(leading) }
  /// The inferred hops at the beginning, and the first mapped hop.
  private var counted: MigrationPath { migrationPath.prefix(leading + 1) }

  /// Inspects the store step by step. Warnings are collected in the order in which a plan shows them.
  mutating func plan() throws -> MigrationPlan {
    remarkOnVersions()
    // Layout and tables first: rows can only be checked in tables of the expected form.
    var inspection = try StoreInspection(schema: sourceSchema, reader: reader, of: store.location.database)
    let layout = try inspectTables(&inspection)
    let schemas = layout?.schemas ?? [sourceSchema]
    let (lead, counted) = (lead, counted)
    let rows = try inspectRows(lead: lead, counted: counted)
    let dangling = try census.danglingReferences()
    let finalSchema = schemas.last ?? sourceSchema
    let external = try ExternalDataInspection(
      migrationPath: lead, reader: reader, location: store.location, rows: rows,
      finalSchema: schemas.indices.contains(leading) ? schemas[leading] : finalSchema, memoryLimit: rules.memoryLimit)
    try external.findings.throwIfAny(at: place)
    let hops = try hops(schemas: schemas, layout: layout, lead: lead, rows: rows)
    let drops = try DropCounting(migrationPath: counted, census: census, rows: rows)
    let expectation =
      isMixed
      ? StoreExpectation.unknown(droppedRows: drops.droppedRows, storeUUID: store.metadata.uuid)
      : try ExpectationCounting(
        migrationPath: migrationPath, census: census, rows: rows, finalSchema: finalSchema, dangling: dangling,
        externalData: external.expectations
      ).expectation(droppedRows: drops.droppedRows, storeUUID: store.metadata.uuid)
    for hop in hops where hop.isMapped {
      warnings += UncheckedPatterns.remarks(on: hop.destination, hop: hop.title)
    }
    warnings += inspection.warnings + drops.warnings
    warnings += try remarksOnDirectWay(drops, rows: rows)
    warnings += try ClearedReferences(migrationPath: lead, reader: reader, rows: rows).warnings()
    if !isMixed { warnings += try layout?.derivations?.replacedValues(census: census, rows: rows) ?? [] }
    warnings += external.warnings
    if !edges.isEmpty { warnings += Self.remarks(schemas: schemas, dangling: dangling) }
    let pathCache = pathCache(of: hops, layout: layout)
    let name = PlanFingerprint.of(
      migrationPath: pathCache.name, history: finalSchema.history, carry: hops.last?.history)
    return MigrationPlan(
      store: store, target: target, hops: hops, drops: drops.drops, clearedHistory: layout?.clearedHistory ?? [],
      warnings: warnings.map { $0.located(place) },
      estimate: Self.estimate(hops: hops, location: store.location, moved: external.movedBytes),
      expectation: expectation, migrationPath: name, cache: pathCache.cache,
      fingerprint: PlanFingerprint.of(migrationPath: name, storeUUID: store.metadata.uuid),
      found: try FoundFile(reader: reader, objects: inspection.objects))
  }

  // MARK: Stages

  /// Adds the warnings about models and versions.
  private mutating func remarkOnVersions() {
    warnings += edges.flatMap(\.warnings)
    warnings += routeKey.map { catalog.cache.value(for: PassedOver(route: $0), passedOver) } ?? passedOver()
    warnings += catalog.warnings.filter { warning in
      store.line.paths.contains { warning.place.file?.starts(with: $0) ?? false }
    }
    if store.version.isFromStoreItself {
      warnings.add(
        .ownModelUsed,
        "none of the models has the version of the store; using the model in the store",
        hint: "compare the result with a store that the app created; this hop drops nothing")
    }
    warnings += sourceSchema.joinTableRemarks
  }

  /// Names the remarks on mapping models that the chain passes over.
  private struct PassedOver: Hashable, Sendable {
    let route: RouteKey
  }

  /// Returns remarks on mapping models that join a version of the chain to a later one while the chain passes through
  /// the versions between: their author meant a hop that is not made.
  private func passedOver() -> [HopdError] {
    guard edges.count > 1, !catalog.mappings.isEmpty else { return [] }
    let versions = [edges[0].source] + edges.map(\.destination)
    let hops = catalog.mappings.hops(among: store.line.versions)
    return hops.pairs.compactMap { source, destination in
      guard let first = versions.firstIndex(where: { $0.isSameVersion(as: source) }),
        let last = versions.firstIndex(where: { $0.isSameVersion(as: destination) }), last - first > 1,
        let hop = (try? hops.hop(from: source, to: destination)) ?? nil
      else { return nil }
      let names = hop.hop.mappings.map { "“\($0.name.printableLine)”" }.joined(separator: ", ")
      let between = versions[(first + 1)..<last].map(\.model.name.printableLine).joined(separator: ", ")
      return HopdError(
        .mappingRemark,
        "the mapping model \(names) leads from \(source.model.name.printableLine) to "
          + "\(destination.model.name.printableLine) at once and is not used: the way goes through \(between)",
        at: Place(file: hop.hop.mappings.first?.path),
        hint: "pass --route shortest (`route` in the watch), or write a mapping model for each hop")
    }
  }

  /// Checks the existing tables, and decides on those of the new store; nil if the store is at the target.
  private mutating func inspectTables(_ inspection: inout StoreInspection) throws -> LayoutDecision? {
    var findings = Findings()
    inspection.inspect(store.metadata)
    try inspection.inspectSchema(takesMirroring: rules.cloudKit == .migrate)
    // A store at the target may have anything in addition to its tables: nothing is written.
    for error in inspection.findings.errors where !edges.isEmpty || error.code == .schemaMismatch {
      findings.add(error)
    }
    let layout =
      edges.isEmpty
      ? nil
      : try LayoutDecision(
        migrationPath: migrationPath, edges: edges, store: store, inspection: inspection, provenNames: provenNames,
        rules: rules, reader: reader)
    findings.add(layout?.findings.errors ?? [])
    warnings += layout?.warnings ?? []
    try findings.throwIfAny(at: place)
    return layout
  }

  /// The filters of a mapped hop that reads the store itself: `MappedRowCounts` needs their counts.
  private var filters: [String: [String]] {
    guard leading == 0, let mapped = edges.first?.mapped else { return [:] }
    return SourceFilters(mapped, model: sourceSchema.model, schema: sourceSchema, tables: reader.tables).plain
  }

  /// Returns the rows per entity, after all checks that the inferred hops at the beginning need.
  private mutating func inspectRows(lead: MigrationPath, counted: MigrationPath) throws -> [String: Int64] {
    let filters = filters
    if !filters.isEmpty { try ExpressionFunctions.register(on: reader.connection) }
    // One pass counts everything that needs no earlier result.
    try census.take(
      edges.isEmpty ? [.rows, .references] : isMixed ? [.rows, .references, .discriminators] : .all,
      values: counted.countRequests(expectsValues: !isMixed), filters: filters)
    var rows = RowInspection(migrationPath: lead, census: census)
    try rows.countRows()
    if !edges.isEmpty {
      try rows.checkInferredHops(rules.invalidRows)
      try rows.findings.throwIfAny(at: place)
      warnings += rows.remarks
    }
    return rows.rows
  }

  /// Returns the hops. The drops of the first mapped hop can be counted already: names continue up to there.
  private mutating func hops(
    schemas: [StoreSchema], layout: LayoutDecision?, lead: MigrationPath, rows: [String: Int64]
  ) throws -> [Hop] {
    var hops = hops(schemas: schemas, computed: layout?.computed ?? [], rows: rows)
    if let last = hops.indices.last { hops[last].history = layout?.historyCarry }
    guard isMixed else { return hops }
    let mapped = MappedHopInspection(
      hop: hops[leading], rows: lead.rows(rows, at: leading), rule: rules.unmappedEntities)
    try mapped.findings.throwIfAny(at: place)
    let counts = try MappedRowCounts(
      hop: hops[leading], rows: lead.rows(rows, at: leading), reader: leading == 0 ? reader : nil)
    warnings += counts.warnings
    hops[leading] = hops[leading].reading(counts.taken)
    return hops
  }

  /// Returns remarks on values that this chain drops and one direct hop would keep.
  private func remarksOnDirectWay(_ drops: DropCounting, rows: [String: Int64]) throws -> [HopdError] {
    guard rules.route == .progressive, edges.count > 1, !isMixed else { return [] }
    var direct = routing
    direct.route = .direct
    let route = try? catalog.route(
      of: store, to: target, rules: direct, key: RouteKey(of: store, to: target, rules: direct))
    return try DirectWay(
      drops: drops, direct: route?.first, sourceSchema: sourceSchema, census: census, rows: rows
    ).warnings
  }

  /// Returns the cached facts about these hops that do not depend on a store's rows; the stores of one app share them.
  private func pathCache(of hops: [Hop], layout: LayoutDecision?) -> MigrationPathCache {
    func known() -> MigrationPathCache {
      MigrationPathCache(
        name: PlanFingerprint.migrationPath(hops: hops, source: store.version, target: target, rules: rules))
    }
    guard let routeKey else { return known() }
    let key = MigrationPathCache.Key(
      route: routeKey, rules: rules, frameworkVersion: store.metadata.frameworkVersion, sourceNaming: sourceNaming,
      provenNames: provenNames, last: layout?.last, computed: layout?.computed ?? [])
    return catalog.cache.value(for: key, known)
  }

  // MARK: Parts

  private func hops(schemas: [StoreSchema], computed: [[SchemaDerivation]], rows: [String: Int64]) -> [Hop] {
    zip(edges, zip(schemas, schemas.dropFirst())).enumerated().map { index, part in
      let (edge, (source, destination)) = part
      return Hop(
        index: index, source: source.model, destination: destination.model, sourceSchema: source,
        destinationSchema: destination, mapping: edge.mapping, mapped: edge.mapped,
        entities: (edge.mapped?.entityMappings.map { ($0.name, $0.source) }
          ?? edge.mapping.entityMappings.map { ($0.name, $0.sourceEntity) }).map { name, source in
            let stored = source.flatMap { migrationPath.sourceEntity(of: $0, at: index) }
            return EntityCost(mapping: name, rows: stored.flatMap { rows[$0] } ?? 0)
          }, computed: computed.indices.contains(index) ? computed[index] : [])
    }
  }

  /// Warnings for the operator in addition to the drops.
  private static func remarks(schemas: [StoreSchema], dangling: [DanglingReferences]) -> [HopdError] {
    var warnings: [HopdError] = []
    if let model = schemas.last?.model {
      warnings += model.uncertainHashes.map {
        HopdError(
          .hashUncertain, $0.description, at: Place(entity: $0.entity, property: $0.property),
          hint: "test the migrated store with the app before you use it")
      }
    }
    warnings += (schemas.last?.unsupported ?? []).filter { $0.code.severity != .error }
    return warnings + dangling.map(\.warning)
  }

  /// A rough estimate: 150,000 rows a second, or 300 MB a second if the rows are long, and disk space for two staged
  /// stores in addition to the source (for one if there is one hop).
  private static func estimate(hops: [Hop], location: StoreLocation, moved: Int64) -> MigrationEstimate {
    let rows = hops.flatMap { hop in
      // Rows of a dropped entity are not read.
      hop.mapped != nil
        ? hop.entities.map(\.rows)
        : zip(hop.mapping.entityMappings, hop.entities).filter { $0.0.kind != .remove }.map(\.1.rows)
    }.reduce(Int64(0)) { $0 &+ $1 }
    let bytes = size(of: location.database) &+ size(of: location.writeAheadLog)
    let factor = hops.isEmpty ? 0 : hops.count == 1 ? 1.1 : 2.2
    let disk = Int64(exactly: ((Double(bytes) + Double(moved)) * factor).rounded(.up)) ?? .max
    return MigrationEstimate(
      rows: rows, bytes: bytes, diskNeeded: hops.isEmpty ? 0 : disk.addingReportingOverflow(1 << 20).partialValue,
      memory: 24 << 20,
      seconds: hops.isEmpty ? 0 : max(Double(rows) / 150_000, Double(bytes) / 300e6))
  }

  private static func size(of path: FilePath) -> Int64 {
    path.linkStatus().map { Int64($0.st_size) } ?? 0
  }
}
