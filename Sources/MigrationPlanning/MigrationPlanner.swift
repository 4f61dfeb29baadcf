// The planner: from an identified store to the whole migration path, or to every reason why it cannot be made. All
// models, mappings and layouts are ready and all rows are checked before a byte is written anywhere.

import Diagnostics
import Glibc
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite
import SystemPackage

/// Makes plans.
package enum MigrationPlanner {
  /// The plan that brings `store` to `target`; it has no hops when the store is there already.
  ///
  /// `reader` reads the store, unchanged or under the migration's lock. Throws `no-route`, or a refusal with every
  /// reason: layout, tables, rows.
  package static func plan(
    store: IdentifiedStore, catalog: ModelCatalog, target: TargetVersion = .current,
    rules: PlanningRules = PlanningRules(), reader: StoreReader
  ) throws -> MigrationPlan {
    do {
      return try possiblePlan(store, catalog, target, rules, reader)
    } catch let error as HopdError {
      throw error.located(Place(store: store.location.database))
    } catch let error as SQLiteError {
      throw StoreReader.explained(error, location: store.location)
    }
  }

  /// The names of self many-to-many tables in a store that the app made at the wanted version.
  package static func naming(
    fromReference reference: StoreLocation, catalog: ModelCatalog, target: TargetVersion = .current
  ) throws -> JoinTableNaming {
    try StoreReader.withUnchangedStore(at: reference) { reader in
      let found = try StoreIdentifier.identify(
        reader: reader, location: reference, catalog: catalog, target: target)
      guard found.state == .current, let wanted = found.target, let metadata = found.metadata else {
        throw HopdError(
          .referenceMismatch,
          "the reference store has \(found.version.map { "version \($0.model.name)" } ?? "an unknown version"), not "
            + (found.target?.model.name ?? "the wanted one"),
          at: Place(store: reference.database),
          hint: "give a store that the app made with the version to reach",
          reasons: found.explanation.map { [$0] } ?? [])
      }
      return try reader.joinTableNaming(for: wanted.model, frameworkVersion: metadata.frameworkVersion)
    }
  }

  /// The plan by the first route that the rows allow: where they forbid an inferred hop, a way round it is tried.
  private static func possiblePlan(
    _ store: IdentifiedStore, _ catalog: ModelCatalog, _ target: TargetVersion, _ rules: PlanningRules,
    _ reader: StoreReader
  ) throws -> MigrationPlan {
    var routing = rules.routing
    var first: HopdError?
    while true {
      do {
        return try plan(store, catalog, target, rules, routing, reader)
      } catch let error as HopdError {
        // The first refusal is about the way that the versions lead; it says most.
        first = first ?? error
        let reasons = error.reasons.isEmpty ? [error] : error.reasons
        guard let next = wayRound(reasons, routing, of: store, rules) else { throw first ?? error }
        routing = next
      }
    }
  }

  /// What to try after a refusal: to settle rows as the operator said, or a way round the hops that are impossible; nil
  /// where nothing is left.
  private static func wayRound(
    _ reasons: [HopdError], _ routing: RouteRules, of store: IdentifiedStore, _ rules: PlanningRules
  ) -> RouteRules? {
    var next = routing
    // Only where nothing else is wrong: a hop that runs as a mapping model is asked no other question.
    if !routing.settlesInvalidRows, reasons.allSatisfy({ isSettled($0, rules.invalidRows) }) {
      next.settlesInvalidRows = true
      return next
    }
    guard rules.route == .progressive else { return nil }
    next.forbidden.formUnion(reasons.filter(\.isAboutRows).compactMap(\.place.hop))
    if reasons.contains(where: { $0.code == .layoutUnsupported }) {
      let framework = store.metadata.frameworkVersion
      next.unusable = Set(
        store.line.versions.filter { version in
          StoreSchema(model: version.model, frameworkVersion: framework).unsupported
            .contains { $0.code == .layoutUnsupported }
        }.map(\.model.name))
    }
    return next == routing ? nil : next
  }

  /// Does the operator's rule say what becomes of the rows?
  private static func isSettled(_ error: HopdError, _ rules: InvalidRowsRules) -> Bool {
    [.missingRequiredValue, .uniquenessViolation].contains(error.code)
      && error.place.entity.map { rules.rule(for: $0) != .fail } ?? false
  }

  private static func plan(
    _ store: IdentifiedStore, _ catalog: ModelCatalog, _ targetVersion: TargetVersion, _ rules: PlanningRules,
    _ routing: RouteRules, _ reader: StoreReader
  ) throws -> MigrationPlan {
    let place = Place(store: store.location.database)
    let target = try store.line.target(targetVersion, for: store.version)
    try store.line.checkWay(from: store.version, to: target)
    if !store.version.isSameVersion(as: target), rules.cloudKit == .refuse {
      try MirroringInspection.refuse(reader)
    }
    let routeKey = RouteKey(of: store, to: target, rules: routing)
    let edges = try catalog.route(of: store, to: target, rules: routing, key: routeKey)
    let framework = store.metadata.frameworkVersion
    let sourceNaming = try reader.joinTableNaming(for: store.version.model, frameworkVersion: framework)
    let provenNames = try reader.provenNames(
      in: StoreSchema(model: store.version.model, frameworkVersion: framework, naming: sourceNaming))
    let sourceSchema = StoreSchema(
      model: store.version.model, frameworkVersion: framework, naming: sourceNaming,
      observed: ObservedLayout(provenNames: provenNames))
    let migrationPath = MigrationPath(sourceSchema: sourceSchema, edges: edges)

    // Layout and tables first: rows can only be asked when the tables are what they should be.
    var inspection = try StoreInspection(schema: sourceSchema, reader: reader)
    var findings = Findings()
    var warnings = edges.flatMap(\.warnings)
    warnings += catalog.warnings.filter { warning in
      store.line.paths.contains { warning.place.file?.starts(with: $0) ?? false }
    }
    if store.version.isFromStoreItself {
      warnings.append(
        HopdError(
          .ownModelUsed,
          "no model given has the version of the store; it is read from the model that the store itself holds",
          hint: "nothing is dropped by this hop; compare the result with a store that the app made"))
    }
    warnings += sourceSchema.joinTableRemarks
    inspection.inspect(store.metadata)
    try inspection.inspectSchema(takesMirroring: rules.cloudKit == .migrate)
    // A store that is at the target already may have whatever it likes beside its tables: nothing is written.
    for error in inspection.findings.errors where !edges.isEmpty || error.code == .schemaMismatch {
      findings.add(error)
    }
    var layout: LayoutDecision?
    if !edges.isEmpty {
      let decision = try LayoutDecision(
        migrationPath: migrationPath, edges: edges, store: store, inspection: inspection, provenNames: provenNames,
        rules: rules,
        reader: reader)
      for error in decision.findings.errors { findings.add(error) }
      warnings += decision.warnings
      layout = decision
    }
    let schemas = layout?.schemas ?? [sourceSchema]
    try findings.throwIfAny(at: place)

    // Rows are judged as far as inference leads; what mapping models make of them is judged where it lies (segments).
    let leading = edges.prefix { $0.mapped == nil }.count
    let isMixed = leading < edges.count
    let lead = MigrationPath(sourceSchema: sourceSchema, edges: Array(edges.prefix(leading)))
    let counted = MigrationPath(sourceSchema: sourceSchema, edges: Array(edges.prefix(leading + 1)))
    let census = StoreCensus(schema: sourceSchema, reader: reader)
    // All that can be asked before anything is known of the rows is asked in one pass.
    try census.take(
      edges.isEmpty ? [.rows, .references] : isMixed ? [.rows, .references, .discriminators] : .all,
      values: counted.questions(expectsValues: !isMixed))
    var rows = RowInspection(migrationPath: lead, census: census)
    try rows.countRows()
    if !edges.isEmpty {
      rows.checkAbstractEntities()
      try rows.checkRequiredValues()
      try rows.checkUniqueness()
      try rows.checkNumbers()
      try rows.checkConditions()
      try rows.checkDiscriminators()
      try rows.findings.throwIfAny(at: place)
    }

    let dangling = try census.danglingReferences()
    let finalSchema = schemas.last ?? sourceSchema
    let external = try ExternalDataInspection(
      migrationPath: lead, reader: reader, location: store.location, rows: rows.rows,
      finalSchema: schemas.indices.contains(leading) ? schemas[leading] : finalSchema, memoryLimit: rules.memoryLimit)
    try external.findings.throwIfAny(at: place)
    var hops = hops(
      edges: edges, schemas: schemas, computed: layout?.computed ?? [], migrationPath: migrationPath, rows: rows.rows)
    if let last = hops.indices.last { hops[last].history = layout?.historyCarry }
    // The first hop with mapping models can be asked already what it leaves behind: names go on up to there.
    if isMixed {
      let mapped = MappedHopInspection(
        hop: hops[leading], rows: lead.rows(rows.rows, at: leading), rule: rules.unmappedEntities)
      try mapped.findings.throwIfAny(at: place)
      let counts = try MappedRowCounts(
        hop: hops[leading], rows: lead.rows(rows.rows, at: leading), reader: leading == 0 ? reader : nil)
      warnings += counts.warnings
      hops[leading] = hops[leading].reading(counts.taken)
    }
    let drops = try DropCounting(migrationPath: counted, census: census, rows: rows.rows)
    let expectation =
      isMixed
      ? StoreExpectation.unknown(droppedRows: drops.droppedRows, storeUUID: store.metadata.uuid)
      : try ExpectationCounting(
        migrationPath: migrationPath, census: census, rows: rows.rows, finalSchema: finalSchema, dangling: dangling,
        externalData: external.expectations
      ).expectation(droppedRows: drops.droppedRows, storeUUID: store.metadata.uuid)
    for hop in hops where hop.isMapped {
      warnings += UncheckedPatterns.remarks(on: hop.destination, hop: hop.title)
    }
    warnings += inspection.warnings + drops.warnings
    if rules.route == .progressive, edges.count > 1, !isMixed {
      var direct = routing
      direct.route = .direct
      let way = try? catalog.route(
        of: store, to: target, rules: direct, key: RouteKey(of: store, to: target, rules: direct))
      warnings += try DirectWay(
        drops: drops, direct: way?.first, sourceSchema: sourceSchema, census: census, rows: rows.rows
      ).warnings
    }
    warnings += try ClearedReferences(migrationPath: lead, reader: reader, rows: rows.rows).warnings()
    if !isMixed { warnings += try layout?.derivations?.replacedValues(census: census, rows: rows.rows) ?? [] }
    warnings += external.warnings
    if !edges.isEmpty { warnings += remarks(schemas: schemas, dangling: dangling) }
    let pathKey = routeKey.map {
      MigrationPathCache.Key(
        route: $0, rules: rules, frameworkVersion: framework, sourceNaming: sourceNaming, provenNames: provenNames,
        last: layout?.last, computed: layout?.computed ?? [])
    }
    func known() -> MigrationPathCache {
      MigrationPathCache(
        name: PlanFingerprint.migrationPath(hops: hops, source: store.version, target: target, rules: rules))
    }
    let memory = pathKey.map { catalog.memo.fact($0, known) } ?? known()
    let name = PlanFingerprint.of(
      migrationPath: memory.name, history: finalSchema.history, carry: hops.last?.history)
    return MigrationPlan(
      store: store, target: target, hops: hops, drops: drops.drops, clearedHistory: layout?.clearedHistory ?? [],
      warnings: warnings.map { $0.located(place) },
      estimate: estimate(hops: hops, location: store.location, moved: external.movedBytes), expectation: expectation,
      migrationPath: name, memo: memory.memo,
      fingerprint: PlanFingerprint.of(migrationPath: name, storeUUID: store.metadata.uuid),
      found: try FoundFile(reader: reader, objects: inspection.objects))
  }

  private static func hops(
    edges: [MigrationGraph.Edge], schemas: [StoreSchema], computed: [[SchemaDerivation]], migrationPath: MigrationPath,
    rows: [String: Int64]
  ) -> [Hop] {
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

  /// What the operator should know beside the drops.
  private static func remarks(schemas: [StoreSchema], dangling: [DanglingReferences]) -> [HopdError] {
    var warnings: [HopdError] = []
    if let model = schemas.last?.model {
      warnings += model.uncertainHashes.map {
        HopdError(
          .hashUncertain, $0.description, at: Place(entity: $0.entity, property: $0.property),
          hint: "try the migrated store with the app before you rely on it")
      }
    }
    warnings += (schemas.last?.unsupported ?? []).filter {
      $0.code == .indexLeftOut || $0.code == .nameLengthUnproven
    }
    warnings += dangling.map {
      HopdError(
        .danglingReferences,
        "\($0.count) reference\($0.count == 1 ? "" : "s") of this relationship point\($0.count == 1 ? "s" : "") to "
          + "rows "
          + "that do not exist", at: Place(entity: $0.entity, property: $0.relationship))
    }
    return warnings
  }

  /// Rough numbers: 150,000 rows a second, and as much disk as two staged stores beside the source.
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
      memory: 24 << 20, seconds: Double(rows) / 150_000)
  }

  private static func size(of path: FilePath) -> Int64 {
    var status = stat()
    return path.withPlatformString { lstat($0, &status) } == 0 ? Int64(status.st_size) : 0
  }
}

extension HopdError {
  /// Is it about rows that forbid a hop which the models allow?
  fileprivate var isAboutRows: Bool {
    [.rowsForbidInference, .numberDoesNotFit, .missingRequiredValue, .uniquenessViolation].contains(code)
  }
}
