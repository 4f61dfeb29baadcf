// The names of self many-to-many tables. Which end names such a table follows the order of a hash table inside Core
// Data that is not known, and an app that looks for the other name finds nothing: so a name is either known from
// somewhere or the plan is refused (docs/formats/store-layout.md, "Many-to-many of an entity with itself").

import Diagnostics
import ManagedObjectModel
import PersistentStore

struct JoinTableDecision {
  /// The naming for the final destination, as far as it is certain.
  private(set) var naming: JoinTableNaming
  private(set) var findings = Findings()
  private(set) var warnings: [HopdError] = []

  /// `given` is what the configuration, the command line or a reference store says; it wins.
  init(migrationPath: MigrationPath, destination: ManagedObjectModel, given: JoinTableNaming) {
    naming = given
    let layout = StoreSchema(
      model: destination, frameworkVersion: migrationPath.sourceSchema.frameworkVersion, naming: given)
    for pair in layout.uncertainJoinTables {
      if let choice = JoinTableDecision.inherited(pair, migrationPath: migrationPath, destination: destination) {
        naming.namingRelationships.insert("\(pair.entity).\(choice.relationship)")
        if choice.isRenamed {
          warnings.append(
            HopdError(
              .joinTableNameUncertain,
              "the join table keeps the side that names it, but properties of the entity were renamed, which may "
                + "change "
                + "it", at: Place(entity: pair.entity, property: choice.relationship),
              hint: "compare with a store that the app made, or give one with --reference STORE"))
        }
        continue
      }
      findings.add(
        HopdError(
          .joinTableNameUncertain,
          "the name of the table of this many-to-many with its own entity cannot be computed: it is named after "
            + "\(pair.guessed) or after \(pair.alternative)",
          at: Place(hop: migrationPath.lastHop, entity: pair.entity, property: pair.guessed),
          hint: "look at a store that the app made with this version, then give "
            + "--join-table \(pair.entity).\(pair.guessed) or --join-table \(pair.entity).\(pair.alternative), "
            + "or give that store with --reference STORE; for the daemon, set join_tables = "
            + "[\"\(pair.entity).\(pair.guessed)\"] (or the other), or reference = \"STORE\", in [watch.migration]"))
    }
  }

  /// The end that names the table in the store as it is, where the number of properties has not changed since.
  private static func inherited(
    _ pair: UncertainJoinTable, migrationPath: MigrationPath, destination: ManagedObjectModel
  ) -> (relationship: String, isRenamed: Bool)? {
    guard let entity = destination.entity(named: pair.entity),
      let origin = migrationPath.origin(ofRelationship: pair.guessed, in: pair.entity, at: migrationPath.end),
      let sourceName = migrationPath.sourceEntity(of: pair.entity, at: migrationPath.end),
      let source = migrationPath.sourceSchema.model.entity(named: sourceName),
      case .join(let join, let isOwner) = migrationPath.sourceSchema.storage(
        ofRelationship: origin.relationship, in: origin.entity), join.entity == join.inverseEntity
    else { return nil }
    let before = propertyNames(of: source, in: migrationPath.sourceSchema.model)
    let after = propertyNames(of: entity, in: destination)
    guard before.count == after.count else { return nil }
    // The guessed end names the table if the relationship that it continues does.
    let namesTable = isOwner != origin.isInverted
    return (namesTable ? pair.guessed : pair.alternative, before != after)
  }

  private static func propertyNames(of entity: Entity, in model: ManagedObjectModel) -> Set<String> {
    Set(
      model.lineage(of: entity).flatMap { ancestor in
        ancestor.attributes.map(\.name) + ancestor.relationships.map(\.name) + ancestor.fetchedProperties.map(\.name)
      })
  }
}

extension MigrationPath {
  /// The last hop's title; nil where there is none.
  var lastHop: String? {
    guard models.count > 1, let last = models.last else { return nil }
    return "\(models[models.count - 2].name) → \(last.name)"
  }
}
