// The objects that a store's version has and the store lacks. An app that rewrites its metadata, or a migration that
// was cut off, leaves such stores: the hashes claim a version, and a table or a column of it was never made.

import ManagedObjectModel
import SQLite

/// An object of a layout that a store lacks.
package struct SchemaGap: Sendable, Hashable {
  /// The kind of object.
  package enum Kind: String, Sendable, Hashable {
    case table
    case joinTable = "join-table"
    case column
    case index
    case trigger
    /// A row of Z_PRIMARYKEY.
    case entityNumber = "entity-number"
    /// A Z_MAX of Z_PRIMARYKEY that is below a key of its table, or not 0 in a subentity.
    case highestKey = "highest-key"
    /// The table with the copy of the model.
    case modelCache = "model-cache"
  }

  package let kind: Kind
  /// Its name; of a row of Z_PRIMARYKEY that of the entity.
  package let name: String
  /// The table that it is, or belongs to.
  package let table: String
  /// The entity and the property that it stores, as far as it stores one.
  package var entity: String? = nil
  package var property: String? = nil

  /// Whether the store has it with a wrong value.
  package var isWrong: Bool { kind == .highestKey }

  /// The object in words, as "the column ZBOOK.ZTITLE".
  package var text: String {
    switch kind {
    case .table: "the table \(name)"
    case .joinTable: "the join table \(name)"
    case .column: "the column \(table).\(name)"
    case .index: "the index \(name) on \(table)"
    case .trigger: "the trigger \(name) on \(table)"
    case .entityNumber: "the row of \(name) in Z_PRIMARYKEY"
    case .highestKey: "the Z_MAX of \(name) in Z_PRIMARYKEY"
    case .modelCache: "the table \(name)"
    }
  }
}

extension StoreReader {
  /// Returns the objects of the layout that the store lacks, in the order in which they can be made.
  ///
  /// Indexes are found by their effect. R-Trees, and triggers whose form is not known, are left out.
  package func gaps(in layout: StoreSchema) throws(SQLiteError) -> [SchemaGap] {
    let objects = try schemaObjects()
    let tables = Set(objects.filter { $0.type == "table" }.map(\.name))
    var gaps: [SchemaGap] = []
    for table in layout.tables {
      guard tables.contains(table.name) else {
        gaps.append(SchemaGap(kind: .table, name: table.name, table: table.name, entity: table.rootEntity))
        continue
      }
      let present = Set(try shape(of: table.name).columns.map(\.name))
      for column in table.columns where !present.contains(column.name) {
        let owner = column.role.property
        gaps.append(
          SchemaGap(
            kind: .column, name: column.name, table: table.name, entity: owner?.entity ?? table.rootEntity,
            property: owner?.name))
      }
    }
    for join in layout.joinTables {
      guard tables.contains(join.name) else {
        gaps.append(
          SchemaGap(
            kind: .joinTable, name: join.name, table: join.name, entity: join.entity, property: join.relationship))
        continue
      }
      let present = Set(try shape(of: join.name).columns.map(\.name))
      for column in join.columns where !present.contains(column) {
        gaps.append(
          SchemaGap(
            kind: .column, name: column, table: join.name, entity: join.entity, property: join.relationship))
      }
    }
    let effects = Set(try indexEffects(in: layout).values)
    for index in layout.indexes where !effects.contains(index.effect) {
      gaps.append(SchemaGap(kind: .index, name: index.name, table: index.table))
    }
    let triggers = Set(objects.filter { $0.type == "trigger" }.map(\.name))
    for trigger in layout.knownTriggers where !triggers.contains(trigger.name) {
      gaps.append(SchemaGap(kind: .trigger, name: trigger.name, table: trigger.table))
    }
    let lacksKey = Set(gaps.filter { $0.kind == .table || $0.name == "Z_PK" }.map(\.table))
    return try gaps + bookkeepingGaps(in: layout, tables, lacksKey: lacksKey) + historyGaps()
  }

  private func bookkeepingGaps(
    in layout: StoreSchema, _ tables: Set<String>, lacksKey: Set<String>
  ) throws(SQLiteError) -> [SchemaGap] {
    let found = Dictionary(try primaryKeys().map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    var gaps: [SchemaGap] = []
    for entry in layout.primaryKeyEntries {
      func add(_ kind: SchemaGap.Kind) {
        gaps.append(SchemaGap(kind: kind, name: entry.name, table: "Z_PRIMARYKEY", entity: entry.name))
      }
      guard let mark = found[entry.number]?.highWaterMark else {
        add(.entityNumber)
        continue
      }
      // A subentity always has 0 (docs/formats/store-layout.md, "Primary keys").
      if entry.parent != 0 {
        if mark != 0 { add(.highestKey) }
      } else if let table = layout.table(of: entry.name), !lacksKey.contains(table.name),
        try highestKey(in: table.name) > mark
      {
        add(.highestKey)
      }
    }
    if layout.hasModelCache, !tables.contains("Z_MODELCACHE") {
      gaps.append(SchemaGap(kind: .modelCache, name: "Z_MODELCACHE", table: "Z_MODELCACHE"))
    }
    return gaps
  }

  /// Returns what persistent history lacks in a store that has one of its tables: the others, which Core Data makes
  /// together (docs/formats/history-and-cloudkit.md, "History tables"), and their numbers.
  ///
  /// A store without any is not known to lack them: nothing in it says that its app records history.
  package func historyGaps() throws(SQLiteError) -> [SchemaGap] {
    let finding = try HistoryLayout.read(from: self)
    // A table that is not understood is refused elsewhere.
    let present = try schemaObjects().count { $0.type == "table" && HistoryLayout.isHistory(table: $0.name) }
    guard let history = finding.layout, present > 0, history.tables.count == present else { return [] }
    let numbers = Dictionary(try primaryKeys().map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    var gaps: [SchemaGap] = []
    for table in HistoryLayout.Table.allCases {
      guard history.tables[table] != nil else {
        // Transactions of fw 851 have no numbers of strings.
        if table != .transactionString || history.tables[.transaction]?.stringColumns.isEmpty != true {
          gaps.append(SchemaGap(kind: .table, name: table.rawValue, table: table.rawValue))
        }
        continue
      }
      guard let entry = numbers[table.number] else {
        // Rows of Z_PRIMARYKEY come with the first transaction.
        if finding.rows[table] ?? 0 > 0 {
          gaps.append(SchemaGap(kind: .entityNumber, name: table.entityName, table: "Z_PRIMARYKEY"))
        }
        continue
      }
      if entry.name == table.entityName, try highestKey(in: table.rawValue) > entry.highWaterMark {
        gaps.append(SchemaGap(kind: .highestKey, name: table.entityName, table: "Z_PRIMARYKEY"))
      }
    }
    return gaps
  }

  private func highestKey(in table: String) throws(SQLiteError) -> Int64 {
    try connection.integer("SELECT max(Z_PK) FROM \(qualified(table))") ?? 0
  }
}

extension StoreSchema {
  /// The triggers whose form is known, whatever the store shows.
  package var knownTriggers: [SchemaTrigger] {
    derivations.flatMap(\.triggers) + filteredCounts.flatMap(\.triggers)
  }
}

extension StoreSchema {
  /// The columns with keys of a table's rows, each with its own table.
  package func references(to table: EntityTable) -> [(column: String, table: String)] {
    let ends = tables.flatMap { other in
      other.columns.compactMap { column -> (column: String, table: String)? in
        let target: String?
        switch column.role {
        case .toOne(let entity, let name): target = model.ownRelationship(name, of: entity)?.destinationEntityName
        case .owner(let entity, _): target = entity
        case .primaryKey, .entityNumber, .saveCount, .attribute, .discriminator, .orderKey, .ownerOrder: target = nil
        }
        return target.flatMap(self.table(of:))?.name == table.name ? (column.name, other.name) : nil
      }
    }
    return ends
      + joinTables.flatMap { join in
        [(join.ownerColumn, join.entity), (join.targetColumn, join.inverseEntity)].compactMap { column, entity in
          self.table(of: entity)?.name == table.name ? (column, join.name) : nil
        }
      }
  }
}
