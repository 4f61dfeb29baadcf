// The layout of a store as Core Data derives it from a model: entity numbers, tables, columns, join tables, indexes.
// All code that reads or writes rows takes names from here; no other code in the project builds the name of a table.
// The rules and their evidence: docs/formats/store-layout.md.

import Diagnostics
import ManagedObjectModel
import SQLite

/// The SQLite layout of one model version, as Core Data of one framework version makes it.
package struct StoreSchema: Sendable {
  /// The model of the layout.
  package let model: ManagedObjectModel
  /// NSPersistenceFrameworkVersion whose rules apply (indexes, constraints, bookkeeping tables).
  package let frameworkVersion: Int64
  /// The tables of persistent history in the store, which are not part of a model.
  package var history: HistoryLayout?
  /// The part that follows from the model and the framework version.
  let layout: LaidOut

  /// Entity numbers by entity name, 1, 2, 3 … (docs/formats/store-layout.md, "Entity numbers").
  package var numbers: [String: Int64] { layout.numbers }
  /// One table per root entity, by entity number.
  package var tables: [EntityTable] { layout.tables }
  /// Join tables of many-to-many relationships.
  package var joinTables: [JoinTable] { layout.joinTables }
  /// Indexes in the order in which Core Data makes them.
  package var indexes: [SchemaIndex] { layout.indexes }
  /// R-Tree indexes of the model, by the documented rule.
  package var rTreeIndexes: [SchemaRTree] { layout.rTreeIndexes }
  /// Those of them that are made: none unless a store shows the form.
  package var rTrees: [SchemaRTree] { layout.rTrees }
  /// The R-Tree tables that Photos' software makes for locations in a store of the model; hopd makes none.
  package var locations: [SchemaRTree] { layout.locations }
  /// Derived attributes with a column, by table, entity and name.
  package var derivations: [SchemaDerivation] { layout.derivations }
  /// Attributes that triggers keep without being derived, each after those that its condition reads.
  package var filteredCounts: [SchemaFilteredCount] { layout.filteredCounts }
  /// Triggers of derived attributes, known ones first, then those that a store shows; then those of filtered counts.
  package var triggers: [SchemaTrigger] { layout.triggers }
  /// Names outside ASCII or longer than any seen, with their tables and columns.
  package var doubtfulNames: [DoubtfulName] { layout.doubtfulNames }
  /// Parts of the model whose layout is unknown or not implemented; a migration that needs one is refused.
  package var unsupported: [HopdError] { layout.unsupported }
  /// Many-to-manys between an entity and itself, with the end of each that names the table
  /// (docs/formats/join-table-names.md, "The rule").
  package var selfJoinTables: [SelfJoinTable] { layout.selfJoinTables }

  /// Join tables between two entities that other evidence names after the end that Core Data's rule does not.
  package var unexpectedJoinTables: [JoinTable] { layout.unexpectedJoinTables }

  /// Returns the entity's number, Z_ENT.
  package func number(of entity: String) -> Int64? { numbers[entity] }

  /// The entities by their numbers.
  package var entityNames: [Int64: String] {
    Dictionary(numbers.map { ($0.value, $0.key) }, uniquingKeysWith: { first, _ in first })
  }

  /// Returns the entity with a number.
  package func entityName(of number: Int64) -> String? { numbers.first { $0.value == number }?.key }

  /// Returns the table of the entity's rows: that of its root.
  package func table(of entity: String) -> EntityTable? {
    guard let value = model.entity(named: entity) else { return nil }
    return layout.tableByRoot[model.root(of: value).name].map { tables[$0] }
  }

  /// Returns the table of entities with that name.
  package func table(named name: String) -> EntityTable? { layout.tableByName[name].map { tables[$0] } }

  /// Returns the join table with that name.
  package func joinTable(named name: String) -> JoinTable? { layout.joinTableByName[name].map { joinTables[$0] } }

  /// Returns the column of an attribute, own or inherited; nil for transient ones.
  package func column(ofAttribute attribute: String, in entity: String) -> String? {
    nearest(attribute, in: entity, of: layout.columnByProperty)
  }

  /// Returns the storage of a relationship, own or inherited; nil for transient and for unsupported ones.
  package func storage(ofRelationship relationship: String, in entity: String) -> RelationshipStorage? {
    nearest(relationship, in: entity, of: layout.storageByRelationship)
  }

  /// Returns the columns of a uniqueness constraint's properties as the entity has them; without those that it has not.
  package func columns(ofConstraint constraint: [String], in entity: String) -> [String] {
    constraint.compactMap { name in
      column(ofAttribute: name, in: entity) ?? storage(ofRelationship: name, in: entity)?.ownColumns?.key
    }
  }

  /// Returns the value in `table` for a property of the entity, or of its nearest ancestor that has one.
  private func nearest<Value>(_ property: String, in entity: String, of table: [PropertyKey: Value]) -> Value? {
    for ancestor in model.namesOfLineage(of: entity).reversed() {
      if let found = table[PropertyKey(entity: ancestor, property: property)] { return found }
    }
    return nil
  }

  /// Returns the numbers of the entity and all its descendants.
  package func numbersOfSubtree(of entity: String) -> [Int64] {
    guard let value = model.entity(named: entity) else { return [] }
    return model.subtree(of: value).compactMap { numbers[$0.name] }.sorted()
  }

  /// Whether the framework has a Z_MODELCACHE table: from fw 637 on (docs/formats/store-layout.md, "Bookkeeping
  /// tables").
  package var hasModelCache: Bool { frameworkVersion >= 637 }

  /// Returns the derivation of an attribute, own or inherited; nil for ordinary attributes.
  package func derivation(ofAttribute attribute: String, in entity: String) -> SchemaDerivation? {
    let lineage = model.namesOfLineage(of: entity)
    return derivations.first { $0.attribute == attribute && lineage.contains($0.entity) }
  }

  /// Returns the join tables that follow a root entity's table: those named by an entity of its tree.
  package func joinTables(after table: EntityTable) -> [JoinTable] {
    joinTables.filter { table.entities.contains($0.entity) }
  }

  /// The names of Core Data's own bookkeeping tables.
  package static let bookkeepingTables: Set<String> = ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"]

  /// Returns the statements of Core Data's own bookkeeping tables, with their exact texts
  /// (docs/formats/store-layout.md, "Bookkeeping tables").
  package func bookkeepingStatements(in schema: String? = nil) -> [String] {
    let tables = [
      "Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
      "Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    ]
    return tables.map { "CREATE TABLE \(SQLiteIdentifier.prefix(schema))\($0)" }
      + (hasModelCache ? [Self.modelCacheStatement(in: schema)] : [])
  }

  /// Returns the statement of Z_MODELCACHE.
  package static func modelCacheStatement(in schema: String?) -> String {
    "CREATE TABLE \(SQLiteIdentifier.prefix(schema))Z_MODELCACHE (Z_CONTENT BLOB)"
  }

  /// Every statement for an empty store, in Core Data's order: tables, each followed by its join tables; then indexes,
  /// triggers, bookkeeping (docs/formats/store-layout.md, "Bookkeeping tables").
  package var createStatements: [String] {
    tables.flatMap { table in [table.createStatement] + joinTables(after: table).map(\.createStatement) }
      + indexes.map(\.createStatement) + rTrees.map(\.createStatement) + triggers.map(\.text) + bookkeepingStatements()
      + (history?.statements.map(\.createStatement) ?? [])
  }

  /// Z_PRIMARYKEY's rows for an empty store, in number order.
  package var primaryKeyEntries: [PrimaryKeyEntry] {
    model.entities.compactMap { entity in
      numbers[entity.name].map { number in
        PrimaryKeyEntry(
          number: number, name: entity.name, parent: entity.parentName.flatMap { numbers[$0] } ?? 0, highWaterMark: 0)
      }
    }.sorted { $0.number < $1.number }
  }
}

/// A part of a schema that one statement creates.
package protocol SchemaPart {
  /// Returns the statement for an attached schema, or for none; SQLite stores it without the schema name.
  func createStatement(in schema: String?) -> String
}

extension SchemaPart {
  /// The statement text that Core Data would run.
  package var createStatement: String { createStatement(in: nil) }
}

/// The table of a root entity and all its descendants.
package struct EntityTable: Sendable, Hashable, SchemaPart {
  /// Table name, as ZCAR.
  package let name: String
  /// The root entity.
  package let rootEntity: String
  /// The root and its descendants by number.
  package let entities: [String]
  /// Columns in Core Data's order, Z_PK, Z_ENT and Z_OPT first.
  package let columns: [SchemaColumn]
  /// Uniqueness constraints inside CREATE TABLE (before fw 866).
  package let uniqueConstraints: [[String]]

  package func createStatement(in schema: String?) -> String {
    let start = "CREATE TABLE \(SQLiteIdentifier.prefix(schema))\(SQLiteIdentifier.bareIfPossible(name))"
    // A constraint of one column is written at the column.
    let unique = Set(uniqueConstraints.filter { $0.count == 1 }.joined())
    let parts = columns.map {
      "\(SQLiteIdentifier.bareIfPossible($0.name)) \($0.declaredType)\(unique.contains($0.name) ? " UNIQUE" : "")"
    }.joined(separator: ", ")
    let several = uniqueConstraints.filter { $0.count > 1 }
    guard !several.isEmpty else { return "\(start) ( \(parts) )" }
    // With a constraint the text has no space before the last parenthesis (docs/formats/store-layout.md, "Entity
    // tables").
    let constraints = several.map { columns in
      let names = columns.map(SQLiteIdentifier.bareIfPossible)
      return "CONSTRAINT \(SQLiteIdentifier.bareIfPossible(columns.joined(separator: "_")))"
        + " UNIQUE (\(names.joined(separator: ", ")))"
    }
    return "\(start) ( \(parts), \(constraints.joined(separator: ", ")))"
  }
}

/// One column of an entity table.
package struct SchemaColumn: Sendable, Hashable {
  /// The content of a column.
  package enum Role: Sendable, Hashable {
    /// Z_PK.
    case primaryKey
    /// Z_ENT: the number of the row's concrete entity.
    case entityNumber
    /// Z_OPT: the count of saves.
    case saveCount
    /// An attribute, named by the entity that declares it.
    case attribute(entity: String, name: String)
    /// Z_PK of a to-one's target.
    case toOne(entity: String, relationship: String)
    /// Z_ENT of a to-one's target, if the declared destination has subentities.
    case discriminator(entity: String, relationship: String)
    /// Order key of an ordered to-many, stored on the to-one side; entity and relationship are the to-one's.
    case orderKey(entity: String, relationship: String)
    /// Z_PK of the owner of a to-many without inverse; entity and relationship are the owner's.
    case owner(entity: String, relationship: String)
    /// Order key of an ordered to-many without inverse; entity and relationship are the owner's.
    case ownerOrder(entity: String, relationship: String)
  }

  /// Column name.
  package let name: String
  /// Declared SQL type.
  package let declaredType: String
  /// Its content.
  package let role: Role
}

extension SchemaColumn.Role {
  /// The property that a column stores, with the entity that declares it; nil for a column of every row.
  package var property: (entity: String, name: String)? {
    switch self {
    case .attribute(let entity, let name), .toOne(let entity, let name), .discriminator(let entity, let name),
      .orderKey(let entity, let name), .owner(let entity, let name), .ownerOrder(let entity, let name):
      (entity, name)
    case .primaryKey, .entityNumber, .saveCount: nil
    }
  }
}

/// The table of a many-to-many relationship.
package struct JoinTable: Sendable, Hashable, SchemaPart {
  /// Table name, as Z_1BOOKS.
  package let name: String
  /// Entity that declares the relationship that names the table.
  package let entity: String
  /// The relationship that names the table.
  package let relationship: String
  /// Its inverse, declared by `inverseEntity`.
  package let inverseEntity: String
  package let inverseRelationship: String
  /// Column 1: Z_PK of the object that owns `relationship`.
  package let ownerColumn: String
  /// Column 2: Z_PK of the object that `relationship` points to.
  package let targetColumn: String
  /// Order key of `relationship`, if it is ordered.
  package let orderColumn: String?
  /// Order key of the inverse, if that is ordered.
  package let inverseOrderColumn: String?

  /// Whether the relationship is its own inverse. Core Data writes each pair in both directions, and deletes it in one
  /// with an object (docs/formats/store-layout.md, "To-many that is its own inverse").
  package var isOwnInverse: Bool { entity == inverseEntity && relationship == inverseRelationship }

  /// The column of the second key in the table of a relationship that is its own inverse.
  package static let reflexiveColumn = "REFLEXIVE"

  /// Columns in the table's order: the two keys, then the order keys, the inverse's first
  /// (docs/formats/store-layout.md, "Join tables").
  package var columns: [String] {
    [ownerColumn, targetColumn] + [inverseOrderColumn, orderColumn].compactMap { $0 }
  }

  package func createStatement(in schema: String?) -> String {
    let columns = columns.map { "\(SQLiteIdentifier.bareIfPossible($0)) INTEGER" }.joined(separator: ", ")
    let keys = [ownerColumn, targetColumn].map(SQLiteIdentifier.bareIfPossible).joined(separator: ", ")
    return "CREATE TABLE \(SQLiteIdentifier.prefix(schema))\(SQLiteIdentifier.bareIfPossible(name))"
      + " ( \(columns), PRIMARY KEY (\(keys)) )"
  }
}

/// An index of the schema.
package struct SchemaIndex: Sendable, Hashable, SchemaPart {
  /// Index name.
  package let name: String
  /// The indexed table.
  package let table: String
  /// Whether it is a uniqueness constraint.
  package let isUnique: Bool
  /// Column with its suffix, as (ZNAME, " COLLATE BINARY ASC").
  package let columns: [Column]
  /// What follows the columns of a partial index, as " WHERE ZFAVORITE = 1"; nil for an index of all rows.
  package let condition: String?

  /// One indexed column.
  package struct Column: Sendable, Hashable {
    package let name: String
    package let suffix: String
  }

  package func createStatement(in schema: String?) -> String {
    let columns = columns.map { SQLiteIdentifier.bareIfPossible($0.name) + $0.suffix }.joined(separator: ", ")
    return "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(SQLiteIdentifier.prefix(schema))"
      + "\(SQLiteIdentifier.bareIfPossible(name)) ON \(SQLiteIdentifier.bareIfPossible(table)) (\(columns))"
      + (condition ?? "")
  }
}

/// A many-to-many between an entity and itself: either end could name the table.
package struct SelfJoinTable: Sendable, Hashable {
  package let entity: String
  /// The relationship that names the table by Core Data's rule.
  package let computed: String
  /// The other end.
  package let alternative: String
  /// The reason why the computed name is uncertain; nil if it is certain.
  package let doubt: KeyOrder.Doubt?
  /// The end that names the table by other evidence; nil if there is none.
  package let given: String?
}

extension StoreSchema {
  /// Tables whose computed name is uncertain, without other evidence.
  package var uncertainJoinTables: [SelfJoinTable] { selfJoinTables.filter { $0.doubt != nil && $0.given == nil } }

  /// Tables whose other evidence contradicts Core Data's rule.
  package var contradictedJoinTables: [SelfJoinTable] {
    selfJoinTables.filter { $0.doubt == nil && $0.given != nil && $0.given != $0.computed }
  }
}

/// What other evidence says about join tables: the configuration, the command line, the source store, or a reference
/// store.
package struct JoinTableNaming: Sendable, Hashable {
  /// "Entity.relationship" of each end that names its table.
  package var namingRelationships: Set<String>
  /// The numbers that distinguish key columns of one name, by "Entity.relationship" of the end whose objects the column
  /// holds: 0 for none, as in Z_23USERS, or 1, as in Z_23USERS1.
  package var columnNumbers: [String: Int] = [:]

  /// Takes "Entity.relationship" texts.
  package init(_ names: Set<String> = []) { namingRelationships = names }

  /// Whether there is no evidence.
  package var isEmpty: Bool { namingRelationships.isEmpty && columnNumbers.isEmpty }

  /// Adds evidence from elsewhere; a number that is known already stays.
  package mutating func add(_ other: JoinTableNaming) {
    namingRelationships.formUnion(other.namingRelationships)
    columnNumbers.merge(other.columnNumbers) { known, _ in known }
  }

  /// Whether the first of two ends names their table; nil if there is no evidence.
  func isNamed(after first: PropertyKey, orAfter second: PropertyKey) -> Bool? {
    if namingRelationships.contains(first.text) { return true }
    return namingRelationships.contains(second.text) ? false : nil
  }
}

extension PropertyKey {
  /// "Entity.property".
  package var text: String { "\(entity).\(property)" }
}
