// The layout that Core Data gives a store of a model: entity numbers, tables, columns, join tables, indexes. Everything
// that reads or writes rows asks here for names; nothing else in the project knows how a table is called. The rules and
// their evidence: docs/formats/store-layout.md.

import Diagnostics
import ManagedObjectModel
import SQLite

/// The SQLite layout of one model version, as Core Data of one framework version makes it.
package struct StoreSchema: Sendable {
  /// The model that is laid out.
  package let model: ManagedObjectModel
  /// NSPersistenceFrameworkVersion whose habits are followed (indexes, constraints, bookkeeping tables).
  package let frameworkVersion: Int64
  /// The tables of persistent history that the store has beside the model's; no part of a model.
  package var history: HistoryLayout?
  /// What follows from the model and the framework version.
  let layout: LaidOut

  /// Entity numbers by entity name, 1, 2, 3 … (docs/formats/store-layout.md, "Entity numbers").
  package var numbers: [String: Int64] { layout.numbers }
  /// One table per root entity, by entity number.
  package var tables: [EntityTable] { layout.tables }
  /// Join tables of many-to-many relationships.
  package var joinTables: [JoinTable] { layout.joinTables }
  /// Indexes in the order Core Data makes them.
  package var indexes: [SchemaIndex] { layout.indexes }
  /// R-Tree indexes that the model asks for, by the documented rule.
  package var rTreeIndexes: [SchemaRTree] { layout.rTreeIndexes }
  /// Those of them that are made: none unless a store shows the form.
  package var rTrees: [SchemaRTree] { layout.rTrees }
  /// Derived attributes with a column, by table, entity and name.
  package var derivations: [SchemaDerivation] { layout.derivations }
  /// Triggers of derived attributes, those that a store shows behind those that are known.
  package var triggers: [SchemaTrigger] { layout.triggers }
  /// Names outside ASCII or longer than any seen, where they stand.
  package var doubtfulNames: [DoubtfulName] { layout.doubtfulNames }
  /// Parts of the model whose layout is not known or not made yet; a migration that needs one is refused.
  package var unsupported: [HopdError] { layout.unsupported }
  /// Many-to-manys between an entity and itself, and which end of each names the table
  /// (docs/formats/join-table-names.md, "The rule").
  package var selfJoinTables: [SelfJoinTable] { layout.selfJoinTables }

  /// The entity's number, Z_ENT.
  package func number(of entity: String) -> Int64? { numbers[entity] }

  /// The entities by their numbers.
  package var entityNames: [Int64: String] {
    Dictionary(numbers.map { ($0.value, $0.key) }, uniquingKeysWith: { first, _ in first })
  }

  /// The entity of a number.
  package func entityName(of number: Int64) -> String? { numbers.first { $0.value == number }?.key }

  /// The table that holds the entity's rows: that of its root.
  package func table(of entity: String) -> EntityTable? {
    guard let value = model.entity(named: entity) else { return nil }
    return layout.tableByRoot[model.root(of: value).name].map { tables[$0] }
  }

  /// The table of entities with that name.
  package func table(named name: String) -> EntityTable? { layout.tableByName[name].map { tables[$0] } }

  /// The join table with that name.
  package func joinTable(named name: String) -> JoinTable? { layout.joinTableByName[name].map { joinTables[$0] } }

  /// The column of an attribute, own or inherited; nil for transient ones.
  package func column(ofAttribute attribute: String, in entity: String) -> String? {
    nearest(attribute, in: entity, of: layout.columnByProperty)
  }

  /// How a relationship, own or inherited, is stored; nil for transient and for unsupported ones.
  package func storage(ofRelationship relationship: String, in entity: String) -> RelationshipStorage? {
    nearest(relationship, in: entity, of: layout.storageByRelationship)
  }

  /// What a table has for a property of the entity, or of its nearest ancestor with one.
  private func nearest<Value>(_ property: String, in entity: String, of table: [PropertyKey: Value]) -> Value? {
    guard let value = model.entity(named: entity) else { return nil }
    for ancestor in model.lineage(of: value).reversed() {
      if let found = table[PropertyKey(entity: ancestor.name, property: property)] { return found }
    }
    return nil
  }

  /// Numbers of the entity and of everything below it.
  package func numbersOfSubtree(of entity: String) -> [Int64] {
    guard let value = model.entity(named: entity) else { return [] }
    return model.subtree(of: value).compactMap { numbers[$0.name] }.sorted()
  }

  /// Does the framework keep a Z_MODELCACHE table? From fw 637 on (docs/formats/store-layout.md, "Bookkeeping tables").
  package var hasModelCache: Bool { frameworkVersion >= 637 }

  /// The derivation of an attribute, own or inherited; nil for ordinary attributes.
  package func derivation(ofAttribute attribute: String, in entity: String) -> SchemaDerivation? {
    guard let value = model.entity(named: entity) else { return nil }
    let lineage = Set(model.lineage(of: value).map(\.name))
    return derivations.first { $0.attribute == attribute && lineage.contains($0.entity) }
  }

  /// The join tables that follow a root entity's table: those named by an entity of its tree.
  package func joinTables(after table: EntityTable) -> [JoinTable] {
    joinTables.filter { table.entities.contains($0.entity) }
  }

  /// Statements of Core Data's own bookkeeping tables, with their exact texts (docs/formats/store-layout.md,
  /// "Bookkeeping tables").
  package func bookkeepingStatements(in schema: String? = nil) -> [String] {
    let tables =
      [
        "Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
        "Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
      ] + (hasModelCache ? ["Z_MODELCACHE (Z_CONTENT BLOB)"] : [])
    return tables.map { "CREATE TABLE \(SQLiteIdentifier.prefix(schema))\($0)" }
  }

  /// Every statement that makes an empty store, in Core Data's order: tables each with its join tables, indexes,
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

/// A part of a schema that one statement makes.
package protocol SchemaPart {
  /// The statement for an attached schema, or for none; SQLite stores it without the schema name.
  func createStatement(in schema: String?) -> String
}

extension SchemaPart {
  /// The statement text that Core Data would run.
  package var createStatement: String { createStatement(in: nil) }
}

/// The table of a root entity and of all that descend from it.
package struct EntityTable: Sendable, Hashable, SchemaPart {
  /// Table name, as ZCAR.
  package let name: String
  /// The root entity.
  package let rootEntity: String
  /// The root and its descendants by number.
  package let entities: [String]
  /// Columns in Core Data's order, Z_PK, Z_ENT and Z_OPT first.
  package let columns: [SchemaColumn]
  /// Uniqueness constraints that are inside CREATE TABLE (fw ≤ 754).
  package let uniqueConstraints: [[String]]

  package func createStatement(in schema: String?) -> String {
    let start = "CREATE TABLE \(SQLiteIdentifier.prefix(schema))\(SQLiteIdentifier.bareIfPossible(name))"
    let parts = columns.map { "\(SQLiteIdentifier.bareIfPossible($0.name)) \($0.declaredType)" }.joined(separator: ", ")
    guard !uniqueConstraints.isEmpty else { return "\(start) ( \(parts) )" }
    // With a constraint the text ends without the space before the parenthesis (docs/formats/store-layout.md, "Entity
    // tables").
    let constraints = uniqueConstraints.map { columns in
      let names = columns.map(SQLiteIdentifier.bareIfPossible)
      return "CONSTRAINT \(SQLiteIdentifier.bareIfPossible(columns.joined(separator: "_")))"
        + " UNIQUE (\(names.joined(separator: ", ")))"
    }
    return "\(start) ( \(parts), \(constraints.joined(separator: ", ")))"
  }
}

/// One column of an entity table.
package struct SchemaColumn: Sendable, Hashable {
  /// What a column holds.
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
    /// Z_ENT of a to-one's target, where the declared destination has subentities.
    case discriminator(entity: String, relationship: String)
    /// Order key of an ordered to-many, kept on the to-one side; entity and relationship are the to-one's.
    case orderKey(entity: String, relationship: String)
    /// Z_PK of the owner of a to-many without inverse; entity and relationship are the owner's.
    case owner(entity: String, relationship: String)
  }

  /// Column name.
  package let name: String
  /// Declared SQL type.
  package let declaredType: String
  /// What it holds.
  package let role: Role
}

/// The table of a many-to-many relationship.
package struct JoinTable: Sendable, Hashable, SchemaPart {
  /// Table name, as Z_1BOOKS.
  package let name: String
  /// Entity that declares the relationship after which the table is named.
  package let entity: String
  /// The relationship after which the table is named.
  package let relationship: String
  /// Its inverse, declared by `inverseEntity`.
  package let inverseEntity: String
  package let inverseRelationship: String
  /// Column 1: Z_PK of the object that owns `relationship`.
  package let ownerColumn: String
  /// Column 2: Z_PK of the object that `relationship` points to.
  package let targetColumn: String
  /// Order key of `relationship`, where it is ordered.
  package let orderColumn: String?
  /// Order key of the inverse, where that is ordered.
  package let inverseOrderColumn: String?

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
  /// Table it is on.
  package let table: String
  /// Is it a uniqueness constraint?
  package let isUnique: Bool
  /// Column with its suffix, as (ZNAME, " COLLATE BINARY ASC").
  package let columns: [Column]

  /// One indexed column.
  package struct Column: Sendable, Hashable {
    package let name: String
    package let suffix: String
  }

  package func createStatement(in schema: String?) -> String {
    let columns = columns.map { SQLiteIdentifier.bareIfPossible($0.name) + $0.suffix }.joined(separator: ", ")
    return "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(SQLiteIdentifier.prefix(schema))"
      + "\(SQLiteIdentifier.bareIfPossible(name)) ON \(SQLiteIdentifier.bareIfPossible(table)) (\(columns))"
  }
}

/// A many-to-many between an entity and itself: either end could name the table.
package struct SelfJoinTable: Sendable, Hashable {
  package let entity: String
  /// The relationship that names the table by Core Data's rule.
  package let computed: String
  /// The other end.
  package let alternative: String
  /// Why the computed name is not certain; nil where it is.
  package let doubt: KeyOrder.Doubt?
  /// The end that names the table by what is known from elsewhere; nil where nothing is.
  package let given: String?
}

extension StoreSchema {
  /// Tables whose computed name is not certain, and of which nothing else is known.
  package var uncertainJoinTables: [SelfJoinTable] { selfJoinTables.filter { $0.doubt != nil && $0.given == nil } }

  /// Tables that are named after another end than Core Data's rule says.
  package var contradictedJoinTables: [SelfJoinTable] {
    selfJoinTables.filter { $0.doubt == nil && $0.given != nil && $0.given != $0.computed }
  }
}

/// Which end of a self many-to-many names its join table, where that is known from elsewhere: the configuration, the
/// command line, the source store, or a reference store.
package struct JoinTableNaming: Sendable, Hashable {
  /// "Entity.relationship" of each naming end.
  package var namingRelationships: Set<String>

  /// Takes "Entity.relationship" texts.
  package init(_ names: Set<String> = []) { namingRelationships = names }

  /// Is the pair's naming end known, and which is it?
  func choice(entity: String, _ first: String, _ second: String) -> String? {
    if namingRelationships.contains("\(entity).\(first)") { return first }
    if namingRelationships.contains("\(entity).\(second)") { return second }
    return nil
  }
}
