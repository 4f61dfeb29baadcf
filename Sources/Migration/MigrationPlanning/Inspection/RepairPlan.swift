// Decides how a store gets the objects that its version has and it lacks, before anything is written. The hashes name
// the objects exactly; values are another matter: a repair gives a column what Core Data's own migration gives an added
// attribute, its default or nil, and refuses where rows would need anything else (docs/decisions/0190).

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

extension HopdError.Code {
  /// A store lacks something that no repair can make without a guess about its rows.
  package static let cannotRepair = HopdError.Code("cannot-repair", exit: .dataError)
}

/// The objects that a repair makes in a store.
package struct RepairPlan: Sendable {
  /// The default of an attribute for the rows of one entity.
  package struct Fill: Sendable, Hashable {
    package let table: String
    package let column: String
    /// Z_ENT of the rows, and their number.
    package let entity: Int64
    package let rows: Int64
    package let value: SQLiteValue
  }

  /// The version that the store claims, and its layout.
  package let version: CatalogedVersion
  package let schema: StoreSchema
  /// What is missing; never empty.
  package let gaps: [SchemaGap]
  /// The values of missing columns that are not NULL.
  package private(set) var fills: [Fill] = []

  /// Plans the repair of a store; nil if it lacks nothing. Throws every reason against it.
  package init?(of store: IdentifiedStore, rules: PlanningRules, reader: StoreReader) throws {
    version = store.version
    schema = try reader.layout(of: store.version.model, frameworkVersion: store.metadata.frameworkVersion)
    gaps = try reader.gaps(in: schema)
    try inspectNumbers(reader)
    guard !gaps.isEmpty else {
      try findings.throwIfAny(at: Place(store: store.location.database))
      return nil
    }
    if rules.cloudKit == .refuse { try MirroringInspection.refuse(reader) }
    var inspection = try StoreInspection(schema: schema, reader: reader, of: store.location.database)
    inspection.inspect(store.metadata)
    findings.add(inspection.findings.errors)
    inspectNames(inspection.objects)
    try inspectHistory(reader)
    try inspectTables(reader)
    for gap in gaps where gap.kind == .column { try inspect(gap, reader) }
    try findings.throwIfAny(at: Place(store: store.location.database))
  }

  /// The number of rows that get a default in a missing column.
  package func rows(with gap: SchemaGap) -> Int64 {
    guard gap.kind == .column else { return 0 }
    return fills.filter { $0.table == gap.table && $0.column == gap.name }.reduce(0) { $0 &+ $1.rows }
  }

  /// Whether the values of a derived attribute or a filtered count are computed again: its column or a trigger of it is
  /// missing, so that nothing has kept them.
  package func computes(_ table: String, _ column: String, keptBy triggers: [SchemaTrigger]) -> Bool {
    gaps.contains { gap in
      gap.kind == .column && gap.table == table && gap.name == column
        || gap.kind == .trigger && triggers.contains { $0.name == gap.name }
    }
  }

  /// The columns that get computed values, by table.
  package var computedColumns: [String: Set<String>] {
    let columns =
      schema.derivations.filter { computes($0.table, $0.column, keptBy: $0.triggers) }.map { ($0.table, $0.column) }
      + schema.filteredCounts.filter { computes($0.table, $0.column, keptBy: $0.triggers) }.map {
        ($0.table, $0.column)
      }
    let marks = gaps.contains { $0.kind == .highestKey } ? [("Z_PRIMARYKEY", "Z_MAX")] : []
    return Dictionary((columns + marks).map { ($0.0, [$0.1]) }, uniquingKeysWith: { $0.union($1) })
  }

  /// The history tables that are made, with their indexes.
  package var historyStatements: [HistoryStatement] {
    let made = HistoryLayout.made(
      byFramework: schema.frameworkVersion, tombstones: HistoryLayout.tombstoneCount(of: schema.model))
    return gaps.compactMap { $0.kind == .table ? HistoryLayout.Table(rawValue: $0.name) : nil }
      .flatMap(made.statements)
  }

  private var findings = Findings()

  // MARK: Numbers and names

  /// Rows name their entity by its number. Where Z_PRIMARYKEY numbers an entity otherwise than the version does, the
  /// tables are those of another version, and nothing can be added to them.
  private mutating func inspectNumbers(_ reader: StoreReader) throws(SQLiteError) {
    let expected = Dictionary(
      schema.primaryKeyEntries.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    for entry in try reader.primaryKeys() where !entry.isReserved {
      let found = entry.name.printableLine
      guard let wanted = expected[entry.number] else {
        refuse("Z_PRIMARYKEY has the entity number \(entry.number) (\(found)), which the version does not have")
        continue
      }
      // Apple's migrations leave the old name of a renamed entity; the name of another entity is a shift.
      if wanted.name != entry.name, let other = schema.number(of: entry.name) {
        refuse(
          "Z_PRIMARYKEY gives \(found) the number \(entry.number), and \(schema.model.name) gives it \(other): the "
            + "rows were written by another version", entity: entry.name)
      } else if wanted.parent != entry.parent {
        refuse(
          "Z_PRIMARYKEY gives entity number \(entry.number) the parent \(entry.parent) in place of \(wanted.parent)",
          entity: wanted.name)
      }
    }
  }

  /// Refuses names that are taken, or that are not certain: nothing in the store shows them.
  private mutating func inspectNames(_ objects: [SchemaObject]) {
    let types = Dictionary(objects.map { ($0.name.uppercased(), $0.type) }, uniquingKeysWith: { first, _ in first })
    for gap in gaps where ![.column, .entityNumber, .highestKey].contains(gap.kind) {
      guard let type = types[gap.name.uppercased()], gap.kind != .index || type != "index" else { continue }
      refuse("\(gap.text) is missing, and the store has the \(type) \(gap.name)", gap)
    }
    let made = Set(gaps.filter { [.table, .joinTable, .column].contains($0.kind) }.map(\.table))
    guard !made.isEmpty else { return }
    findings.add(schema.unsupported.filter { $0.code == .layoutUnsupported })
    for join in schema.joinTables where made.contains(join.name) {
      let isUncertain = schema.uncertainJoinTables.contains { table in
        table.entity == join.entity && [table.computed, table.alternative].contains(join.relationship)
      }
      guard isUncertain else { continue }
      findings.add(
        .joinTableNameUncertain, "the join table \(join.name) is missing, and its name is not certain",
        at: Place(entity: join.entity, property: join.relationship),
        hint: "restore a backup, or open the store with its app")
    }
  }

  /// Refuses history tables that rows of the others need: an empty table would say that nothing was changed.
  private mutating func inspectHistory(_ reader: StoreReader) throws(SQLiteError) {
    let lost = gaps.filter { $0.kind == .table }.compactMap { HistoryLayout.Table(rawValue: $0.name) }
    guard !lost.isEmpty, let history = try HistoryLayout.read(from: reader).layout else { return }
    for table in lost {
      guard schema.frameworkVersion >= HistoryLayout.stringsSince else {
        refuse("the table \(table.rawValue) is missing, and its form in so old a store is not known")
        continue
      }
      // A change without its transaction, a transaction without its texts or without its changes.
      let needs =
        table == .change
        ? history.tables[.transaction].map { [("Z_PK", $0.name)] } ?? []
        : history.references(to: table)
      var rows: Int64 = 0
      for (column, other) in needs {
        rows = max(
          rows,
          try reader.connection.integer(
            "SELECT count(\(SQLiteIdentifier.quoted(column))) FROM \(reader.qualified(other))") ?? 0)
      }
      guard rows > 0, let other = needs.first?.1 else { continue }
      refuse(
        "the table \(table.rawValue) is missing, and \(rows.grouped) row\(rows == 1 ? "" : "s") of \(other) "
          + "belong\(rows == 1 ? "s" : "") to rows that it had")
    }
  }

  // MARK: Tables and columns

  /// Refuses tables of a derived attribute whose triggers are not known.
  private mutating func inspectTables(_ reader: StoreReader) throws(SQLiteError) {
    for derivation in schema.derivations where !derivation.isComputed {
      guard gaps.contains(where: { $0.kind == .table && $0.name == derivation.table }) else { continue }
      refuse(
        "the table \(derivation.table) is missing, and the triggers of a derived attribute in it are unknown",
        entity: derivation.entity, property: derivation.attribute)
    }
  }

  private mutating func inspect(_ gap: SchemaGap, _ reader: StoreReader) throws {
    if let join = schema.joinTable(named: gap.table) {
      guard gap.name == join.ownerColumn || gap.name == join.targetColumn else { return }
      return refuse("\(gap.text) is missing, which has a key of every pair", gap)
    }
    guard let table = schema.table(named: gap.table), let column = table.columns.first(where: { $0.name == gap.name })
    else { return }
    if table.uniqueConstraints.contains(where: { $0.contains(column.name) }) {
      return refuse("\(gap.text) is missing, and a constraint in the text of its table needs it", gap)
    }
    let lacksKeys = gaps.contains { $0.table == table.name && ["Z_PK", "Z_ENT"].contains($0.name) }
    switch column.role {
    case .primaryKey, .entityNumber, .saveCount:
      refuse("\(gap.text) is missing, without which no row can be named", gap)
    case .attribute(_, let name): if !lacksKeys { try inspect(name, in: table, gap, reader) }
    case .toOne(_, let name): if !lacksKeys { try inspectToOne(name, in: table, gap, reader) }
    case .discriminator: try inspectDiscriminator(gap, in: table, reader)
    // The order of objects is lost; Core Data takes objects without a key in any order.
    case .orderKey, .owner, .ownerOrder: break
    }
  }

  /// Decides on the value of an attribute in the rows of each entity that has it.
  private mutating func inspect(
    _ name: String, in table: EntityTable, _ gap: SchemaGap, _ reader: StoreReader
  ) throws(SQLiteError) {
    let derivation = schema.derivations.first { $0.table == table.name && $0.column == gap.name }
    if let derivation {
      if !derivation.isComputed { refuse("\(gap.text) is missing, and the triggers that keep it are unknown", gap) }
      return
    }
    if schema.filteredCounts.contains(where: { $0.table == table.name && $0.column == gap.name }) { return }
    let counts = try reader.rowCounts(of: table.name)
    for entity in table.entities {
      guard schema.column(ofAttribute: name, in: entity) == gap.name, let number = schema.number(of: entity),
        let rows = counts[number], rows > 0,
        let attribute = schema.model.entity(named: entity).flatMap({ schema.model.allAttributes(of: $0)[name] }),
        !attribute.isTransient
      else { continue }
      switch attribute.storedDefault {
      case .null?: if !attribute.isOptional { needsValue("attribute", entity, name, rows) }
      case let value?:
        fills.append(Fill(table: table.name, column: gap.name, entity: number, rows: rows, value: value))
      case nil:
        refuse(
          "\(gap.text) is missing, and its default is an object that only the app can make", entity: entity,
          property: name)
      }
    }
  }

  private mutating func inspectToOne(
    _ name: String, in table: EntityTable, _ gap: SchemaGap, _ reader: StoreReader
  ) throws(SQLiteError) {
    let counts = try reader.rowCounts(of: table.name)
    for entity in table.entities {
      guard schema.storage(ofRelationship: name, in: entity)?.ownColumns?.key == gap.name,
        let number = schema.number(of: entity), let rows = counts[number], rows > 0,
        let relationship = schema.model.entity(named: entity).flatMap({ schema.model.allRelationships(of: $0)[name] }),
        !relationship.isOptional
      else { continue }
      needsValue("relationship", entity, name, rows)
    }
  }

  /// A key alone does not say of which entity its target is.
  private mutating func inspectDiscriminator(
    _ gap: SchemaGap, in table: EntityTable, _ reader: StoreReader
  ) throws(SQLiteError) {
    let keys = table.columns.filter { column in
      guard case .toOne(let entity, let relationship) = column.role else { return false }
      return entity == gap.entity && relationship == gap.property
    }
    for key in keys where !gaps.contains(where: { $0.table == table.name && $0.name == key.name }) {
      let rows = try reader.connection.integer(
        "SELECT count(\(SQLiteIdentifier.quoted(key.name))) FROM \(reader.qualified(table.name))")
      guard let rows, rows > 0 else { continue }
      refuse(
        "\(gap.text) is missing, which names the entity of the target, and \(rows.grouped) "
          + "row\(rows == 1 ? " has" : "s have") one", gap)
    }
  }

  // MARK: Findings

  private mutating func needsValue(_ kind: String, _ entity: String, _ property: String, _ rows: Int64) {
    findings.add(
      .missingRequiredValue,
      "the column of this required \(kind) is missing, it has no default, and \(rows.grouped) "
        + "row\(rows == 1 ? " needs" : "s need") a value", at: Place(entity: entity, property: property),
      hint: "restore a backup; a repair only writes values that are in the model")
  }

  private mutating func refuse(_ message: String, _ gap: SchemaGap) {
    refuse(message, entity: gap.entity, property: gap.property)
  }

  private mutating func refuse(_ message: String, entity: String? = nil, property: String? = nil) {
    findings.add(
      .cannotRepair, message, at: Place(entity: entity, property: property),
      hint: "restore a backup, or repair the store with its app")
  }
}

extension DanglingReferences {
  /// The warning about these references: they are carried as they are.
  package var warning: HopdError {
    HopdError(
      .danglingReferences,
      "\(count.counted("reference")) of this relationship point\(count == 1 ? "s" : "") to rows that do not exist",
      at: Place(entity: entity, property: relationship))
  }
}
