// Checks that the store has the tables that its hashes claim. A store opened with NSIgnorePersistentStoreVersioning may
// claim a version whose tables it lacks (docs/formats/migration-semantics.md, "Options and metadata"), and all content
// that no entity explains would be lost in a migration.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import SystemPackage

struct StoreInspection {
  let schema: StoreSchema
  let reader: StoreReader
  let objects: [SchemaObject]
  /// The store as a shell word, for suggested commands.
  private let name: String
  private(set) var findings = Findings()
  private(set) var warnings: [HopdError] = []
  /// The R-Tree tables of the store.
  let rTrees: RTreeInspection

  init(schema: StoreSchema, reader: StoreReader, of store: FilePath) throws(SQLiteError) {
    self.schema = schema
    name = store.quotedForShell
    self.reader = reader
    objects = try reader.schemaObjects()
    rTrees = try RTreeInspection(schema: schema, objects: objects, reader: reader)
  }

  // MARK: Metadata

  mutating func inspect(_ metadata: StoreMetadata) {
    if metadata.hasDeferredMigration {
      findings.add(
        .deferredMigration, "a lightweight migration of Core Data's own was begun and is not finished",
        hint: "open the store once with its app to finish the deferred migration")
    }
    let hashing = metadata.versionHashesVersion
    if hashing != 3 {
      findings.add(
        .metadataNotSupported,
        "the version hashes are of kind \(hashing.map(String.init) ?? "unknown"), and only kind 3 is known",
        hint: "open the store with its app; hopd cannot write hashes of this kind")
    }
    if metadata.frameworkVersion <= 0 {
      findings.add(
        .metadataNotSupported, "the metadata do not say which version of Core Data made the store",
        hint: "open the store once with its app, which writes NSPersistenceFrameworkVersion")
    }
  }

  // MARK: Tables and columns

  /// With `takesMirroring`, `MirroringInspection` inspects CloudKit's tables.
  mutating func inspectSchema(takesMirroring: Bool = false) throws(SQLiteError) {
    let tables = objects.filter { $0.type == "table" }
    let present = Set(tables.map(\.name))
    let predicted = Set(schema.tables.map(\.name)).union(schema.joinTables.map(\.name))
    for table in tables {
      if rTrees.shadowTables.contains(table.name) {
        continue
      } else if let sql = table.sql, sql.uppercased().hasPrefix("CREATE VIRTUAL") {
        try inspectVirtualTable(table)
      } else if HistoryLayout.isHistory(table: table.name)
        || takesMirroring && MirroringLayout.isMirroring(table.name)
      {
        continue
      } else if !predicted.contains(table.name), !StoreSchema.bookkeeping.contains(table.name) {
        refuse(
          .unknownTable, "the table \(table.name), which no entity of \(schema.model.name) explains",
          "move the table to another database; hopd would lose a table that is not Core Data's")
      }
    }
    for object in objects where object.type == "trigger" { inspect(trigger: object) }
    for object in objects where object.type == "index" && predicted.contains(object.table) { inspect(index: object) }
    for object in objects where object.type == "view" {
      refuse(.unknownView, "the view \(object.name)", "Core Data makes no views; drop it if it is not needed")
    }
    for table in schema.tables {
      guard present.contains(table.name) else {
        missing("the table \(table.name) is missing", entity: table.rootEntity)
        continue
      }
      try inspectColumns(of: table.name, predicted: table.columns.map(\.name), entity: table.rootEntity) { name in
        table.columns.first { $0.name == name }?.role
      }
      try inspectKey(of: table)
    }
    for join in schema.joinTables {
      guard present.contains(join.name) else {
        missing("the join table \(join.name) is missing", entity: join.entity, property: join.relationship)
        continue
      }
      try inspectColumns(of: join.name, predicted: join.columns, entity: join.entity, property: join.relationship) {
        _ in nil
      }
      try inspectKey(of: join)
    }
    try inspectNumbers()
  }

  // MARK: Indexes, triggers and R-Trees

  /// Core Data's names begin with Z, also those of indexes that its migrations left behind. SQLite's own have no text.
  private mutating func inspect(index: SchemaObject) {
    guard index.sql != nil, !index.name.hasPrefix("Z") else { return }
    warnings.add(
      .indexLeftOut,
      "the index \(index.name) on \(index.table) is not Core Data's; it is left behind, and no data with it")
  }

  private mutating func inspect(trigger: SchemaObject) {
    if rTrees.owns(trigger: trigger.name) || isOfFilteredCount(trigger) { return }
    let owner = SchemaDerivation.owner(ofTrigger: trigger.name, on: trigger.table, among: schema.derivations)
    guard let derivation = owner else {
      return refuse(
        .unknownTrigger, "the trigger \(trigger.name), which no derived attribute of \(schema.model.name) explains",
        "triggers that are not Core Data's do not belong in a store: drop it, or keep it out of this store")
    }
    if !derivation.isComputed, SchemaTrigger(name: trigger.name, table: trigger.table, text: trigger.sql ?? "") == nil {
      return refuse(
        .unknownTrigger,
        "the trigger \(trigger.name) of \(derivation.entity).\(derivation.attribute), whose text is not one that "
          + "SQLite keeps for it", "the schema was edited by hand: restore a backup, or make the trigger again")
    }
    if derivation.isComputed,
      !derivation.triggers.contains(where: { $0.name == trigger.name && $0.text == trigger.sql })
    {
      warnings.add(
        .triggerRewritten,
        "the trigger \(trigger.name) has different text than the one that is known for it; what is migrated gets the "
          + "known one", at: Place(entity: derivation.entity, property: derivation.attribute))
    }
  }

  /// Whether a filtered count explains the trigger; an unknown text is reported.
  private mutating func isOfFilteredCount(_ trigger: SchemaObject) -> Bool {
    for count in schema.filteredCounts {
      guard let known = count.triggers.first(where: { $0.name == trigger.name }) else { continue }
      if known.text != trigger.sql {
        warnings.add(
          .triggerRewritten,
          "the trigger \(trigger.name) has different text than the one that is known for it; what is migrated gets the "
            + "known one", at: Place(entity: count.entity, property: count.attribute))
      }
      return true
    }
    return false
  }

  private mutating func inspectVirtualTable(_ table: SchemaObject) throws(SQLiteError) {
    if let location = schema.locations.first(where: { $0.name == table.name }), rTrees.isStale(table.name) {
      warnings.add(
        .indexLeftOut,
        "the R-Tree table \(table.name), which only Apple's apps have, is left behind; a fetch by this location may "
          + "fail until the app creates it", at: Place(entity: location.entity, property: location.index))
    } else if rTrees.isStale(table.name) {
      warnings.add(
        .indexLeftOut, "no R-Tree index of \(schema.model.name) explains the table \(table.name); it is left behind")
    } else if !rTrees.tables.contains(table.name) {
      refuse(
        .unknownTable, "the virtual table \(table.name)",
        "Core Data makes virtual tables for R-Tree indexes only; hopd would lose a table that is not Core Data's")
    }
  }

  private mutating func inspectColumns(
    of table: String, predicted: [String], entity: String, property: String? = nil,
    role: (String) -> SchemaColumn.Role?
  ) throws(SQLiteError) {
    let present = try reader.shape(of: table).columns.map(\.name)
    for name in predicted where !present.contains(name) {
      let owner = role(name)?.property
      missing(
        "the column \(table).\(name) is missing", entity: owner?.entity ?? entity, property: owner?.name ?? property)
    }
    for name in present where !predicted.contains(name) {
      let count =
        try reader.connection.integer(
          "SELECT count(\(SQLiteIdentifier.quoted(name))) FROM \(reader.qualified(table))") ?? 0
      warnings.add(
        .columnNotCarried,
        "no property explains the column \(table).\(name); it is left behind with \(count.grouped) values that are "
          + "not NULL",
        at: Place(entity: entity))
    }
  }

  /// Rows are found and copied by Z_PK: it must be the rowid, or keys could repeat, be NULL or be text.
  private mutating func inspectKey(of table: EntityTable) throws(SQLiteError) {
    if try !reader.shape(of: table.name).isKeyedByRowID {
      mismatch("\(table.name).Z_PK is not an INTEGER PRIMARY KEY", entity: table.rootEntity)
    }
  }

  /// The pairs of a join table must be its primary key, and its rows must have a rowid by which they can be copied.
  private mutating func inspectKey(of join: JoinTable) throws(SQLiteError) {
    let shape = try reader.shape(of: join.name)
    if Set(shape.columns.filter(\.isKey).map(\.name)) != [join.ownerColumn, join.targetColumn] {
      mismatch(
        "the pairs of the join table \(join.name) are not its primary key", entity: join.entity,
        property: join.relationship)
    }
    if shape.isWithoutRowID {
      mismatch("the join table \(join.name) is WITHOUT ROWID", entity: join.entity, property: join.relationship)
    }
  }

  /// Entity numbers and parents must be those of the version; names may be old (docs/formats/store-layout.md, "Apple's
  /// migration in place").
  private mutating func inspectNumbers() throws(SQLiteError) {
    let entries = try reader.primaryKeys().filter { !$0.isReserved }
    let parents = Dictionary(entries.map { ($0.number, $0.parent) }, uniquingKeysWith: { first, _ in first })
    for (name, number) in schema.numbers.sorted(by: { $0.value < $1.value }) {
      let parent = schema.model.entity(named: name)?.parentName.flatMap { schema.number(of: $0) } ?? 0
      guard let found = parents[number] else {
        missing("Z_PRIMARYKEY has no entity number \(number)", entity: name)
        continue
      }
      if found != parent {
        mismatch("Z_PRIMARYKEY gives entity number \(number) the parent \(found) instead of \(parent)", entity: name)
      }
    }
    let known = Set(schema.numbers.values)
    for entry in entries where !known.contains(entry.number) {
      mismatch(
        "Z_PRIMARYKEY has the entity number \(entry.number), which the version does not have", entity: entry.name)
    }
  }

  private mutating func missing(_ what: String, entity: String, property: String? = nil) {
    mismatch(
      what, entity: entity, property: property,
      hint: "run `hopctl migrate \(name) --repair` to create them, or restore a backup")
  }

  private mutating func mismatch(
    _ message: String, entity: String, property: String? = nil,
    hint: String = "restore a backup or repair it with the app, which may have opened it without versioning"
  ) {
    findings.add(
      .schemaMismatch, message + ", although the store's hashes say that it has version \(schema.model.name)",
      at: Place(entity: entity, property: property),
      hint: hint)
  }

  private mutating func refuse(_ code: HopdError.Code, _ what: String, _ hint: String) {
    findings.add(code, "the store has \(what)", hint: hint)
  }
}
