// The names of join tables and of their columns in the last version. A table between two entities has the computed
// name. So has a table of an entity with itself: Core Data's rule determines which end names it, except for two kinds
// of entities; for those, the name must be known from another source or the plan is refused. If a store's table has the
// other name, hopd keeps it: the program that made the store will look for that name again
// (docs/formats/join-table-names.md, "The rule"). Columns are numbered as in the store.

import Diagnostics
import ManagedObjectModel
import PersistentStore

struct JoinTableDecision {
  /// The naming for the final destination, as far as it is certain.
  private(set) var naming: JoinTableNaming
  private(set) var findings = Findings()
  private(set) var warnings: [HopdError] = []

  /// `given` comes from the configuration, the command line or a reference store; it takes precedence.
  init(migrationPath: MigrationPath, destination: ManagedObjectModel, given: JoinTableNaming) {
    naming = given
    let layout = StoreSchema(
      model: destination, frameworkVersion: migrationPath.sourceSchema.frameworkVersion, naming: given)
    for join in layout.unexpectedJoinTables {
      warnings.add(
        .joinTableNameUnexpected,
        "the table of this many-to-many is \(join.name), as configured; Core Data's rule names it after "
          + "\(join.inverseEntity).\(join.inverseRelationship)",
        at: Place(hop: migrationPath.lastHop, entity: join.entity, property: join.relationship),
        hint: "remove --join-table and --reference, unless a store that the app created has that name")
    }
    for pair in layout.contradictedJoinTables {
      warnings.add(
        .joinTableNameUnexpected,
        "the table of this many-to-many is named after \(pair.alternative), as configured; Core Data's rule names "
          + "it after \(pair.computed)",
        at: Place(hop: migrationPath.lastHop, entity: pair.entity, property: pair.alternative),
        hint: "remove --join-table and --reference, unless a store that the app created has that name")
    }
    for pair in layout.selfJoinTables where pair.given == nil {
      if pair.doubt == nil {
        // The name in the store is kept; the planner warns about it.
        if let choice = JoinTableDecision.contradicted(pair, migrationPath: migrationPath) {
          naming.namingRelationships.insert("\(pair.entity).\(choice)")
        }
        continue
      }
      if let choice = JoinTableDecision.inherited(pair, migrationPath: migrationPath, destination: destination) {
        naming.namingRelationships.insert("\(pair.entity).\(choice.relationship)")
        if choice.isRenamed {
          warnings.add(
            .joinTableNameUncertain,
            "the join table keeps the side that names it, but properties of the entity were renamed, which may "
              + "change it", at: Place(entity: pair.entity, property: choice.relationship),
            hint: "compare with a store that the app created, or pass one with --reference STORE")
        }
        continue
      }
      refuse(pair, hop: migrationPath.lastHop)
    }
    keepColumnNumbers(migrationPath: migrationPath, layout: layout)
  }

  /// Numbers the columns of one name in the order that the store has, if that is not the usual one.
  private mutating func keepColumnNumbers(migrationPath: MigrationPath, layout: StoreSchema) {
    let source = migrationPath.sourceSchema
    let usual = StoreSchema(model: source.model, frameworkVersion: source.frameworkVersion)
    guard source.columnNumbers != usual.columnNumbers else { return }
    let ends = layout.joinTables.flatMap { join in
      (join.isOwnInverse ? [true] : [true, false]).map { layout.joinEnd(of: join, isOwner: $0) }
    }
    for (_, group) in Dictionary(grouping: ends, by: \.stem) where group.count > 1 {
      let numbered = group.map { end in (end: end, stored: Self.storedNumber(of: end, migrationPath: migrationPath)) }
        .sorted { left, right in
          let (first, second) = (left.stored ?? .max, right.stored ?? .max)
          return first == second
            ? Entity.caseInsensitiveOrder(left.end.key.property, right.end.key.property) : first < second
        }
      for (number, member) in numbered.enumerated() where naming.columnNumbers[member.end.key.text] == nil {
        naming.columnNumbers[member.end.key.text] = number
      }
    }
  }

  /// Returns the number that the end's column has in the store; nil if it is new.
  private static func storedNumber(of end: JoinEnd, migrationPath: MigrationPath) -> Int? {
    guard
      let origin = migrationPath.origin(
        ofRelationship: end.key.property, in: end.key.entity, at: migrationPath.end),
      case .join(let columns)? = migrationPath.sourceSchema.storage(
        ofRelationship: origin.relationship, in: origin.entity)
    else { return nil }
    return migrationPath.sourceSchema.joinEnd(of: columns.join, isOwner: columns.isOwner != origin.isInverted).number
  }

  private mutating func refuse(_ pair: SelfJoinTable, hop: String?) {
    findings.add(
      .joinTableNameUncertain,
      "the name of the table of this many-to-many with its own entity cannot be computed: it is named after "
        + "\(pair.computed) or after \(pair.alternative), for \(pair.doubt?.words ?? "")",
      at: Place(hop: hop, entity: pair.entity, property: pair.computed),
      hint: "check a store that the app created with this version, then pass "
        + "--join-table \(pair.entity).\(pair.computed) or --join-table \(pair.entity).\(pair.alternative), "
        + "or pass that store with --reference STORE; for the daemon, set join_tables = "
        + "[\"\(pair.entity).\(pair.computed)\"] (or the other), or reference = \"STORE\", in [watch.migration]")
  }

  /// Returns the end that continues the naming end of the store's table, if Core Data's rule names the table after the
  /// other one.
  private static func contradicted(_ pair: SelfJoinTable, migrationPath: MigrationPath) -> String? {
    guard let stored = storedEnd(pair, migrationPath: migrationPath),
      migrationPath.sourceSchema.contradictedJoinTables.contains(where: {
        $0.entity == stored.join.entity && $0.given == stored.join.relationship
      })
    else { return nil }
    return stored.end
  }

  /// Returns the end that names the table in the existing store, if the number of properties has not changed since.
  private static func inherited(
    _ pair: SelfJoinTable, migrationPath: MigrationPath, destination: ManagedObjectModel
  ) -> (relationship: String, isRenamed: Bool)? {
    guard let entity = destination.entity(named: pair.entity),
      let stored = storedEnd(pair, migrationPath: migrationPath),
      let sourceName = migrationPath.sourceEntity(of: pair.entity, at: migrationPath.end),
      let source = migrationPath.sourceSchema.model.entity(named: sourceName)
    else { return nil }
    let before = propertyNames(of: source, in: migrationPath.sourceSchema.model)
    let after = propertyNames(of: entity, in: destination)
    guard before.count == after.count else { return nil }
    return (stored.end, before != after)
  }

  /// Returns the pair's table in the store, and which end of the pair continues its naming end.
  private static func storedEnd(
    _ pair: SelfJoinTable, migrationPath: MigrationPath
  ) -> (join: JoinTable, end: String)? {
    guard let origin = migrationPath.origin(ofRelationship: pair.computed, in: pair.entity, at: migrationPath.end),
      case .join(let columns)? = migrationPath.sourceSchema.storage(
        ofRelationship: origin.relationship, in: origin.entity), columns.join.entity == columns.join.inverseEntity
    else { return nil }
    return (columns.join, columns.isOwner != origin.isInverted ? pair.computed : pair.alternative)
  }

  private static func propertyNames(of entity: Entity, in model: ManagedObjectModel) -> Set<String> {
    Set(
      model.lineage(of: entity).flatMap { ancestor in
        ancestor.attributes.map(\.name) + ancestor.relationships.map(\.name) + ancestor.fetchedProperties.map(\.name)
      })
  }
}

extension MigrationPath {
  /// The last hop's title; nil if there is none.
  var lastHop: String? { end > 0 ? hop(to: end) : nil }
}

extension KeyOrder.Doubt {
  /// The reason as text that follows "for".
  package var words: String {
    switch self {
    case .hiddenKey(let entity, let relationship):
      "\(entity).\(relationship) is a to-many without inverse that points to it, and what Core Data adds for that is "
        + "not known"
    case .lettersOutsideASCII(let name): "the name \(name) has letters outside ASCII"
    case .tooManyKeys(let count): "the entity has \(count) keys, more than any entity that was seen"
    }
  }
}

extension StoreSchema {
  /// Warnings about join tables whose names in the store differ from Core Data's rule.
  package var joinTableRemarks: [HopdError] {
    unexpectedJoinTables.map { join in
      HopdError(
        .joinTableNameUnexpected,
        "the store names the table of this many-to-many \(join.name), and Core Data's rule names it after "
          + "\(join.inverseEntity).\(join.inverseRelationship); hopd reads it, and a migration makes the other table",
        at: Place(entity: join.entity, property: join.relationship),
        hint: "open the store with its app before you use it: an app that uses the other table finds no pairs")
    }
      + contradictedJoinTables.map { pair in
        HopdError(
          .joinTableNameUnexpected,
          "the store names the table of this many-to-many after \(pair.alternative), and Core Data's rule names it "
            + "after \(pair.computed); hopd follows the store",
          at: Place(entity: pair.entity, property: pair.alternative),
          hint:
            "open the store with its app before you use it: an app that uses the other table finds no pairs. "
            + "A migration with --join-table ENTITY.RELATIONSHIP gives the new store the other name")
      }
  }
}
