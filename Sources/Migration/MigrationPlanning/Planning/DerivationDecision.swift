// Derived attributes of a migration path. A count and the value of a to-one's target have a known form: they are
// computed where a version needs them. Every other derivation keeps the values and triggers of the store, which is
// correct only if no hop changes anything they refer to.

import Diagnostics
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite

struct DerivationDecision {
  /// For each hop, the derivations to compute at its end.
  private(set) var computed: [[SchemaDerivation]] = []
  /// "Entity.attribute" of the last version's derivations that keep the store's values and triggers.
  private(set) var carried: Set<String> = []
  private(set) var triggers: [SchemaTrigger] = []
  private(set) var findings = Findings()

  private let migrationPath: MigrationPath
  /// Layouts of the store's version and of every version after it.
  private let schemas: [StoreSchema]
  private let objects: [SchemaObject]

  /// `objects` is the content of the store's sqlite_master.
  init(migrationPath: MigrationPath, schemas: [StoreSchema], objects: [SchemaObject]) {
    self.migrationPath = migrationPath
    self.schemas = schemas
    self.objects = objects
    for (version, schema) in schemas.enumerated().dropFirst() {
      var computed: [SchemaDerivation] = []
      for derivation in schema.derivations where isWanted(derivation, at: version) {
        if derivation.isComputed {
          computed.append(derivation)
        } else if let reason = reasonAgainstCarrying(derivation, to: version) {
          refuse(derivation, version, reason)
        } else if version == migrationPath.end {
          carried.insert("\(derivation.entity).\(derivation.attribute)")
          triggers += triggersOfStore(derivation)
        }
      }
      self.computed.append(computed)
    }
  }

  /// Whether the derivation matters: the last version's derivations do, and those that a later version continues as
  /// plain values.
  private func isWanted(_ derivation: SchemaDerivation, at version: Int) -> Bool {
    if version == migrationPath.end { return true }
    // Expressions may read it.
    if derivation.isComputed, migrationPath.isMapped(to: version + 1) { return true }
    guard let entity = schemas[version].model.entity(named: derivation.entity) else { return false }
    return schemas[version].model.subtree(of: entity).contains { member in
      guard let mapping = migrationPath.mappings[version].mapping(fromSource: member.name),
        let next = mapping.destinationEntity,
        let name = mapping.attributes.first(where: { $0.source == derivation.attribute })?.destination
      else { return false }
      return migrationPath.definition(of: name, in: next, at: version + 1)?.isDerived == false
    }
  }

  private mutating func refuse(_ derivation: SchemaDerivation, _ version: Int, _ reason: String) {
    findings.add(
      .derivationUnsupported,
      "hopd cannot write the triggers of this derived attribute, and cannot take them from the store: " + reason,
      at: Place(hop: migrationPath.hop(to: version), entity: derivation.entity, property: derivation.attribute),
      hint:
        "migrate this hop with the app, or change the model so that the derivation refers to unchanged properties and "
        + "they change in the next version")
  }

  private func triggersOfStore(_ derivation: SchemaDerivation) -> [SchemaTrigger] {
    let all = migrationPath.sourceSchema.derivations
    return objects.compactMap { object in
      guard object.type == "trigger", let text = object.sql,
        let owner = SchemaDerivation.owner(ofTrigger: object.name, on: object.table, among: all),
        owner.entity == derivation.entity, owner.attribute == derivation.attribute
      else { return nil }
      return SchemaTrigger(name: object.name, table: object.table, text: text)
    }
  }

  // MARK: Replaced values

  /// Returns a warning for each attribute whose own values in the store a computed one replaces.
  func replacedValues(census: StoreCensus, rows: [String: Int64]) throws(SQLiteError) -> [HopdError] {
    let source = migrationPath.sourceSchema
    var warnings: [HopdError] = []
    for (hop, derivations) in computed.enumerated() {
      for derivation in derivations {
        let model = migrationPath.models[hop + 1]
        var replaced: Int64 = 0
        for member in model.entity(named: derivation.entity).map(model.subtree) ?? [] {
          guard let stored = migrationPath.sourceEntity(of: member.name, at: hop + 1), (rows[stored] ?? 0) > 0,
            let number = source.number(of: stored),
            case .column(let table, let column, _) = migrationPath.origin(
              ofAttribute: derivation.attribute, in: member.name, at: hop + 1),
            !source.derivations.contains(where: { $0.table == table && $0.column == column })
          else { continue }
          let request = StoreCensus.CountRequest(column: column, entities: [number])
          replaced &+= try census.values([request], in: table).first ?? 0
        }
        guard replaced > 0 else { continue }
        warnings.add(
          .valuesReplaced,
          "the attribute becomes derived: \(replaced.counted("value")) of the store "
            + "give\(replaced == 1 ? "s" : "") way to the \(derivation.isCount ? "count" : "value of its expression")",
          at: Place(
            hop: migrationPath.hop(to: hop + 1), entity: derivation.entity,
            property: derivation.attribute),
          hint: "rename the derived attribute and set its renaming identifier to preserve the values")
      }
    }
    return warnings
  }

  // MARK: Keeping triggers

  /// Returns why the store's values and triggers cannot serve for the attribute at that version; nil if they can.
  private func reasonAgainstCarrying(_ derivation: SchemaDerivation, to version: Int) -> String? {
    let source = migrationPath.sourceSchema
    if (1...max(1, version)).contains(where: migrationPath.isMapped) {
      return "a mapping model creates the objects again"
    }
    guard
      let stored = source.derivations.first(where: {
        $0.entity == derivation.entity && $0.attribute == derivation.attribute
      }), stored.kind == derivation.kind
    else { return "the store has none of this expression" }
    guard
      migrationPath.definition(of: derivation.attribute, in: derivation.entity, at: 0)?.type
        == migrationPath.definition(of: derivation.attribute, in: derivation.entity, at: version)?.type
    else { return "its type changes" }
    let triggers = triggersOfStore(stored)
    var subjects = DerivationSubjects(schema: source)
    subjects.add(column: stored.column, of: stored.table)
    for trigger in triggers { subjects.add(trigger: trigger) }
    let isUnderstood = subjects.add(stored)
    if triggers.isEmpty, !isUnderstood {
      return "the store has no triggers for it, and hopd does not understand the form of its expression"
    }
    for step in 1...version {
      if let change = change(of: subjects, at: step) { return change }
    }
    return nil
  }

  /// Returns which subject differs at a version from the store; nil if none does.
  private func change(of subjects: DerivationSubjects, at version: Int) -> String? {
    let (source, schema) = (migrationPath.sourceSchema, schemas[version])
    for name in subjects.tables.sorted() {
      guard let before = source.table(named: name) else { continue }
      guard let after = schema.table(named: name) else { return "the table \(name) goes" }
      for entity in Set(before.entities + after.entities).sorted() {
        guard source.number(of: entity) == schema.number(of: entity), after.entities.contains(entity),
          migrationPath.sourceEntity(of: entity, at: version) == entity
        else { return "the entity \(entity) of the table \(name) is added, removed, renamed or renumbered" }
      }
      for column in before.columns where subjects.columns[name]?.contains(column.name) == true {
        guard after.columns.contains(column), isUnchanged(column, of: name, at: version) else {
          return "the column \(name).\(column.name) changes"
        }
      }
    }
    for name in subjects.joinTables.sorted() {
      guard let join = source.joinTable(named: name) else { continue }
      guard schema.joinTables.contains(join),
        isUnchanged(join.relationship, of: join.entity, at: version),
        isUnchanged(join.inverseRelationship, of: join.inverseEntity, at: version)
      else { return "the join table \(name) changes" }
    }
    return nil
  }

  private func isUnchanged(_ column: SchemaColumn, of table: String, at version: Int) -> Bool {
    switch column.role {
    case .primaryKey, .entityNumber, .saveCount: return true
    case .attribute(let entity, let name):
      guard let value = schemas[version].model.entity(named: entity) else { return false }
      return schemas[version].model.subtree(of: value).allSatisfy {
        migrationPath.origin(ofAttribute: name, in: $0.name, at: version)
          == .column(table: table, name: column.name, fallback: nil)
      }
    case .toOne, .discriminator, .orderKey, .owner, .ownerOrder:
      return column.role.property.map { isUnchanged($0.name, of: $0.entity, at: version) } ?? false
    }
  }

  private func isUnchanged(_ relationship: String, of entity: String, at version: Int) -> Bool {
    let model = schemas[version].model
    let before = migrationPath.sourceSchema.model.entity(named: entity)?.relationships.first { $0.name == relationship }
    guard let value = model.entity(named: entity),
      value.relationships.first(where: { $0.name == relationship })?.destinationEntityName
        == before?.destinationEntityName
    else { return false }
    return model.subtree(of: value).allSatisfy { member in
      guard let origin = migrationPath.origin(ofRelationship: relationship, in: member.name, at: version) else {
        return false
      }
      return origin.relationship == relationship && !origin.isInverted
    }
  }
}

/// The tables and columns of a store to which a derivation refers, in its expression or in its triggers.
struct DerivationSubjects {
  let schema: StoreSchema
  /// Entity tables; all of their entities matter: triggers name their numbers, and rows that are dropped would have
  /// counted.
  private(set) var tables: Set<String> = []
  private(set) var columns: [String: Set<String>] = [:]
  private(set) var joinTables: Set<String> = []

  mutating func add(column: String, of table: String) {
    tables.insert(table)
    columns[table, default: []].insert(column)
    let role = schema.table(named: table)?.columns.first { $0.name == column }?.role
    guard let role, let property = role.property else { return }
    if case .attribute = role { return }
    // The possible targets and owners of a reference are rows too.
    let destination = schema.model.entity(named: property.entity)?.relationships.first { $0.name == property.name }
    addTables(of: [property.entity, destination?.destinationEntityName].compactMap(\.self))
  }

  mutating func add(joinTable join: JoinTable) {
    joinTables.insert(join.name)
    addTables(of: [join.entity, join.inverseEntity])
  }

  private mutating func addTables(of entities: [String]) {
    tables.formUnion(entities.compactMap { schema.table(of: $0)?.name })
  }

  /// Adds every table and column whose name is a word of the text.
  mutating func add(trigger: SchemaTrigger) {
    let words = Set(
      trigger.text.uppercased().split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "$") }.map(String.init))
    for table in schema.tables where words.contains(table.name.uppercased()) {
      tables.insert(table.name)
      for column in table.columns where words.contains(column.name.uppercased()) {
        add(column: column.name, of: table.name)
      }
    }
    for join in schema.joinTables where words.contains(join.name.uppercased()) { add(joinTable: join) }
  }

  /// Adds everything along the key path of the expression; returns false if the expression has another form.
  mutating func add(_ derivation: SchemaDerivation) -> Bool {
    guard case .other(let expression) = derivation.kind, let keys = Derivation.keyPath(in: expression),
      var entity = schema.model.entity(named: derivation.entity)
    else { return false }
    for key in keys {
      if let column = schema.column(ofAttribute: key, in: entity.name), let table = schema.table(of: entity.name),
        schema.model.allAttributes(of: entity)[key] != nil
      {
        add(column: column, of: table.name)
        return key == keys.last
      }
      guard let relationship = schema.model.allRelationships(of: entity)[key],
        let storage = schema.storage(ofRelationship: key, in: entity.name),
        let next = schema.model.entity(named: relationship.destinationEntityName)
      else { return false }
      switch storage {
      case .toOne(let columns, _), .members(let columns), .owned(let columns):
        add(column: columns.key, of: columns.table)
      case .join(let columns): add(joinTable: columns.join)
      }
      entity = next
    }
    return true
  }
}
