// To-many relationships: join tables, the ends that name them, and the columns of to-manys without inverse.

import Diagnostics
import ManagedObjectModel
import SQLite

extension StoreSchemaBuilder {
  mutating func buildJoinTables() {
    // Names of columns are unique per entity: its many-to-manys come in alphabetical order and each takes
    // Z_<number><INVERSE>; a taken name gets 1, 2 … (docs/formats/store-layout.md, "Join table columns").
    var keyColumn: [PropertyKey: String] = [:]
    let ordered = model.entities.sorted { (numbers[$0.name] ?? 0) < (numbers[$1.name] ?? 0) }
    for entity in ordered {
      var taken: Set<String> = []
      for relationship in manyToManys(of: entity) {
        let wanted = "Z_\(numbers[entity.name] ?? 0)\((relationship.inverseName ?? "").uppercased())"
        keyColumn[PropertyKey(entity: entity.name, property: relationship.name)] = Self.free(wanted, &taken)
      }
    }
    for entity in ordered {
      for relationship in manyToManys(of: entity) {
        addJoinTable(relationship, of: entity, keyColumn: keyColumn)
      }
    }
  }

  /// Whether it is a composite attribute of the entity, or an element of one.
  func isElement(_ name: String, of entity: Entity) -> Bool {
    model.lineage(of: entity).contains { member in
      member.composites.contains { $0.name == name || name.hasPrefix("\($0.name).") }
    }
  }

  /// The many-to-manys that the entity declares; one that it only declares again has the ancestor's table.
  private func manyToManys(of entity: Entity) -> [Relationship] {
    entity.relationships.filter { relationship in
      relationship.isToMany && !relationship.isTransient
        && model.inverse(of: relationship).map { $0.relationship.isToMany && !$0.relationship.isTransient } == true
        && model.storingDeclaration(of: relationship, in: entity).entity.name == entity.name
    }.sorted { Entity.caseInsensitiveOrder($0.name, $1.name) }
  }

  private mutating func addJoinTable(_ first: Relationship, of entity: Entity, keyColumn: [PropertyKey: String]) {
    let key = PropertyKey(entity: entity.name, property: first.name)
    guard storageByRelationship[key] == nil, let declared = model.inverse(of: first) else { return }
    let inverse = model.storingDeclaration(of: declared.relationship, in: declared.entity)
    var (owner, naming) = (entity, first)
    var (other, reverse) = (inverse.entity, inverse.relationship)
    if owner.name == other.name {
      if naming.name == reverse.name {
        refuse("a to-many that is its own inverse: its join table is not known", entity.name, first.name)
        return
      }
      // The first end in Core Data's order names the table (docs/formats/join-table-names.md, "The rule").
      let order = keyOrders.order(of: owner)
      let computed = order.first(of: naming.name, reverse.name)
      let given = self.naming.choice(entity: owner.name, naming.name, reverse.name)
      selfJoinTables.append(
        SelfJoinTable(
          entity: owner.name, computed: computed, alternative: computed == naming.name ? reverse.name : naming.name,
          doubt: order.doubt, given: given))
      if (given ?? computed) != naming.name { swap(&naming, &reverse) }
    } else {
      // The lower number names the table; up to fw 479 the higher one did, in the only example
      // (docs/formats/store-layout.md, "Join tables").
      let isOwnerLower = (numbers[owner.name] ?? 0) < (numbers[other.name] ?? 0)
      if isOwnerLower == (frameworkVersion <= 479) {
        swap(&owner, &other)
        swap(&naming, &reverse)
      }
    }
    let (a, b) = (numbers[owner.name] ?? 0, numbers[other.name] ?? 0)
    let tableName = "Z_\(a)\(naming.name.uppercased())"
    let ownerColumn = keyColumn[PropertyKey(entity: owner.name, property: naming.name)]
    let targetColumn = keyColumn[PropertyKey(entity: other.name, property: reverse.name)]
    guard let ownerColumn, let targetColumn, ownerColumn != targetColumn else {
      refuse("the columns of the join table \(tableName) would have the same name", entity.name, first.name)
      return
    }
    guard takenJoinTables.insert(tableName).inserted else {
      refuse("two relationships would share the join table \(tableName)", entity.name, first.name)
      return
    }
    checkName(naming.name, of: owner.name, naming.name, table: tableName, column: targetColumn)
    checkName(reverse.name, of: other.name, reverse.name, table: tableName, column: ownerColumn)
    let join = JoinTable(
      name: tableName, entity: owner.name, relationship: naming.name, inverseEntity: other.name,
      inverseRelationship: reverse.name, ownerColumn: ownerColumn, targetColumn: targetColumn,
      orderColumn: naming.isOrdered ? "Z_FOK_\(b)\(targetColumn.dropFirst("Z_\(b)".count))" : nil,
      inverseOrderColumn: reverse.isOrdered ? "Z_FOK_\(a)\(ownerColumn.dropFirst("Z_\(a)".count))" : nil)
    joinTables.append(join)
    storageByRelationship[PropertyKey(entity: owner.name, property: naming.name)] =
      .join(JoinColumns(join: join, isOwner: true))
    storageByRelationship[PropertyKey(entity: other.name, property: reverse.name)] =
      .join(JoinColumns(join: join, isOwner: false))
  }

  // MARK: Both ends

  /// Gives both ends of each one-to-one the columns of the other.
  mutating func joinOneToOnes() {
    for (key, storage) in storageByRelationship {
      guard let own = storage.ownColumns, let relationship = model.ownRelationship(key.property, of: key.entity),
        let inverse = model.inverse(of: relationship),
        let other = inheritedStorage(inverse.relationship.name, in: inverse.entity)?.ownColumns
      else { continue }
      storageByRelationship[key] = .toOne(own, other: other)
    }
  }

  /// Returns the storage of an own or inherited relationship.
  func inheritedStorage(_ relationship: String, in entity: Entity) -> RelationshipStorage? {
    model.lineage(of: entity).reversed().lazy.compactMap {
      self.storageByRelationship[PropertyKey(entity: $0.name, property: relationship)]
    }.first
  }

  /// Adds a column for each to-many without inverse whose destination is `entity`, after the entity's to-ones
  /// (docs/formats/store-layout.md, "To-many without inverse").
  mutating func addOwnerColumns(into entity: Entity, table: String, buckets: inout [[SchemaColumn]]) {
    for (owner, relationship) in oneWayToManys[entity.name] ?? [] {
      guard !relationship.isOrdered else {
        refuse("an ordered to-many without inverse: its order key is not known", owner, relationship.name)
        continue
      }
      let name = "Z\(numbers[owner] ?? 0)\(relationship.name.uppercased())"
      checkName(relationship.name, of: owner, relationship.name, table: table, column: name)
      buckets[0].append(
        SchemaColumn(name: name, declaredType: "INTEGER", role: .owner(entity: owner, relationship: relationship.name)))
      storageByRelationship[PropertyKey(entity: owner, property: relationship.name)] =
        .owned(ToOneColumns(table: table, key: name))
    }
  }

  /// Returns to-manys without inverse by their destination entity, in the order of their owners' numbers and their
  /// names.
  func toManysWithoutInverse() -> [String: [(owner: String, relationship: Relationship)]] {
    var found: [String: [(owner: String, relationship: Relationship)]] = [:]
    for owner in model.entities.sorted(by: { (numbers[$0.name] ?? 0) < (numbers[$1.name] ?? 0) }) {
      for relationship in owner.relationships.sorted(by: { Entity.caseInsensitiveOrder($0.name, $1.name) })
      where relationship.isToMany && !relationship.isTransient && relationship.inverseName == nil
        && model.storingDeclaration(of: relationship, in: owner).entity.name == owner.name
      {
        found[relationship.destinationEntityName, default: []].append((owner.name, relationship))
      }
    }
    return found
  }
}
