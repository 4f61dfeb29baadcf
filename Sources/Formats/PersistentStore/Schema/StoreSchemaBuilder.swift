// Derives the tables and columns of a model, by the rules of docs/formats/store-layout.md.

import Diagnostics
import ManagedObjectModel
import SQLite

extension HopdError.Code {
  /// The model uses a feature whose layout in a store is unknown or not implemented.
  package static let layoutUnsupported = HopdError.Code("layout-unsupported", exit: .dataError)
  /// A name is longer than any that a store has shown; a limit is unknown.
  package static let nameLengthUnproven = HopdError.Code("name-length-unproven", severity: .warning)
}

extension StoreSchema {
  /// Creates the layout of a model as Core Data of `frameworkVersion` does.
  ///
  /// `naming` decides the names of self many-to-many tables, `observed` is evidence from a store beyond the rules.
  /// Parts without a known layout are left out and listed in `unsupported`.
  package init(
    model: ManagedObjectModel, frameworkVersion: Int64, naming: JoinTableNaming = JoinTableNaming(),
    observed: ObservedLayout = ObservedLayout()
  ) {
    self.model = model
    self.frameworkVersion = frameworkVersion
    layout = model.cache.value(for: LaidOut.Key(frameworkVersion: frameworkVersion, naming: naming, observed: observed))
    {
      LaidOut(model: model, frameworkVersion: frameworkVersion, naming: naming, observed: observed)
    }
  }
}

extension StoreSchema {
  /// The tables of every store that belong to no entity (docs/formats/store-layout.md, "Bookkeeping tables").
  package static let bookkeeping: Set<String> = ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"]
}

/// The part of a layout that the model's cache keeps; it therefore does not contain the model.
struct LaidOut: Sendable {
  struct Key: Hashable, Sendable {
    let frameworkVersion: Int64
    let naming: JoinTableNaming
    let observed: ObservedLayout
  }

  let numbers: [String: Int64]
  let tables: [EntityTable]
  let joinTables: [JoinTable]
  /// Index of each table in the list of tables.
  let tableByRoot: [String: Int]
  let tableByName: [String: Int]
  let joinTableByName: [String: Int]
  let columnByProperty: [PropertyKey: String]
  let storageByRelationship: [PropertyKey: RelationshipStorage]
  let selfJoinTables: [SelfJoinTable]
  let unexpectedJoinTables: [JoinTable]
  let indexes: [SchemaIndex]
  let rTreeIndexes: [SchemaRTree]
  let rTrees: [SchemaRTree]
  let locations: [SchemaRTree]
  let derivations: [SchemaDerivation]
  let filteredCounts: [SchemaFilteredCount]
  let triggers: [SchemaTrigger]
  let doubtfulNames: [DoubtfulName]
  let unsupported: [HopdError]

  init(model: ManagedObjectModel, frameworkVersion: Int64, naming: JoinTableNaming, observed: ObservedLayout) {
    var builder = StoreSchemaBuilder(
      model: model, frameworkVersion: frameworkVersion, naming: naming, observed: observed)
    builder.build()
    numbers = builder.numbers
    tables = builder.tables
    joinTables = builder.joinTables
    tableByRoot = tables.map(\.rootEntity).places
    tableByName = tables.map(\.name).places
    joinTableByName = joinTables.map(\.name).places
    columnByProperty = builder.columnByProperty
    storageByRelationship = builder.storageByRelationship
    selfJoinTables = builder.selfJoinTables
    unexpectedJoinTables = builder.unexpectedJoinTables
    let indexes = SchemaIndexBuilder(builder: builder)
    self.indexes = indexes.indexes
    rTreeIndexes = indexes.rTrees
    locations = indexes.locations
    rTrees = observed.hasRTrees ? indexes.rTrees : []
    let derived = SchemaDerivationBuilder(builder: builder)
    derivations = derived.derivations
    filteredCounts = builder.filteredCounts()
    triggers =
      derived.derivations.flatMap(\.triggers) + observed.carriedTriggers + filteredCounts.flatMap(\.triggers)
    doubtfulNames = builder.doubtfulNames
    unsupported = builder.unsupported + derived.unsupported + indexes.unsupported
  }
}

struct StoreSchemaBuilder {
  /// SQLITE_MAX_COLUMN, as SQLite is built everywhere [sqlite.org/limits.html].
  static let maximumColumns = 2000

  let model: ManagedObjectModel
  let frameworkVersion: Int64
  let naming: JoinTableNaming
  let observed: ObservedLayout

  var numbers: [String: Int64] = [:]
  var tables: [EntityTable] = []
  var joinTables: [JoinTable] = []
  var columnByProperty: [PropertyKey: String] = [:]
  var storageByRelationship: [PropertyKey: RelationshipStorage] = [:]
  var unsupported: [HopdError] = []
  var selfJoinTables: [SelfJoinTable] = []
  var unexpectedJoinTables: [JoinTable] = []
  /// The order of relationships inside each entity.
  var keyOrders: KeyOrders
  /// Join table names in use, so that two pairs never share one.
  var takenJoinTables: Set<String> = []
  var doubtfulNames: [DoubtfulName] = []
  var oneWayToManys: [String: [(owner: String, relationship: Relationship)]] = [:]

  init(model: ManagedObjectModel, frameworkVersion: Int64, naming: JoinTableNaming, observed: ObservedLayout) {
    self.model = model
    self.frameworkVersion = frameworkVersion
    self.naming = naming
    self.observed = observed
    keyOrders = KeyOrders(model: model, numbers: [:])
  }

  mutating func build() {
    var next: Int64 = 1
    for root in model.rootEntities {
      for entity in model.subtree(of: root) {
        numbers[entity.name] = next
        next += 1
      }
    }
    keyOrders = KeyOrders(model: model, numbers: numbers)
    oneWayToManys = toManysWithoutInverse()
    for root in model.rootEntities { nameColumns(of: root) }
    buildJoinTables()
    for root in model.rootEntities { buildTable(of: root) }
    joinOneToOnes()
    for table in tables { checkColumnNames(of: table) }
    let names = Set(tables.map(\.name))
    for join in joinTables where names.contains(join.name) {
      refuse("the join table \(join.name) would have the name of an entity's table", join.entity, join.relationship)
    }
    var seen: [String: String] = [:]
    for table in tables {
      if StoreSchema.bookkeeping.contains(table.name) {
        refuse("its table would be \(table.name), which Core Data keeps for itself", table.rootEntity)
      }
      if let other = seen[table.name] {
        refuse("the entities \(other) and \(table.rootEntity) would share the table \(table.name)", table.rootEntity)
      }
      seen[table.name] = table.rootEntity
      if table.columns.count > StoreSchemaBuilder.maximumColumns {
        refuse(
          "its table would have \(table.columns.count) columns, and SQLite makes at most "
            + "\(StoreSchemaBuilder.maximumColumns)", table.rootEntity)
      }
    }
  }

  mutating func refuse(_ message: String, _ entity: String, _ property: String? = nil) {
    unsupported.append(
      HopdError(
        .layoutUnsupported, message, at: Place(entity: entity, property: property),
        hint: "compare with a store that the app created; the layout is uncertain, so nothing is written"))
  }

  /// Longest name of a table or column in the measured stores, without the parts that the layout adds.
  static let longestSeen = 64

  /// Records a name whose upper-case form is uncertain, and refuses it if no store shows it.
  mutating func checkName(
    _ name: String, of entity: String, _ property: String?, table: String, column: String?
  ) {
    let isASCII = name.utf8.allSatisfy { $0 < 0x80 }
    guard !isASCII || name.utf8.count > Self.longestSeen else { return }
    doubtfulNames.append(DoubtfulName(name: name, table: table, column: column))
    guard !observed.provenNames.contains(name) else { return }
    if isASCII {
      unsupported.append(
        HopdError(
          .nameLengthUnproven,
          "the name has \(name.utf8.count) characters, and no store is known with one longer than "
            + "\(Self.longestSeen); it is written in full", at: Place(entity: entity, property: property),
          hint: "test the migrated store with the app before you use it"))
    } else {
      refuse(
        "the name has letters outside ASCII, and how Core Data writes these in upper case (\(column ?? table)) is not "
          + "known", entity, property)
    }
  }

  /// Refuses two columns of one name; SQLite does not distinguish upper and lower case.
  private mutating func checkColumnNames(of table: EntityTable) {
    var seen: Set<String> = []
    for column in table.columns where !seen.insert(column.name.uppercased()).inserted {
      let (entity, property): (String, String?) =
        switch column.role {
        case .attribute(let entity, let name), .toOne(let entity, let name), .discriminator(let entity, let name),
          .orderKey(let entity, let name), .owner(let entity, let name), .ownerOrder(let entity, let name):
          (entity, name)
        case .primaryKey, .entityNumber, .saveCount: (table.rootEntity, nil)
        }
      refuse("the column \(column.name) would occur twice in the table \(table.name)", entity, property)
    }
  }

  /// The own properties that need a column, alphabetically, upper case first. Elements are in declared order at the
  /// position of their composite's name (docs/formats/store-layout.md, "Composite attributes").
  func columnProperties(of entity: Entity) -> [(name: String, attribute: Attribute?, relationship: Relationship?)] {
    let attributes = entity.attributes.filter { !$0.isTransient }.map { ($0.name, Optional($0), Relationship?.none) }
    let toOnes = entity.relationships.filter { !$0.isTransient && !$0.isToMany }
      .map { ($0.name, Attribute?.none, Optional($0)) }
    let properties = (attributes + toOnes).map { (name: $0.0, attribute: $0.1, relationship: $0.2) }
    return properties.enumerated().sorted { left, right in
      let (first, second) = (left.element, right.element)
      let places = (first.attribute?.compositeName ?? first.name, second.attribute?.compositeName ?? second.name)
      return places.0 == places.1 ? left.offset < right.offset : places.0.utf8.lexicographicallyPrecedes(places.1.utf8)
    }.map(\.element)
  }

  /// Names the columns: `Z` + the name in upper case; a taken name gets 1, 2, 3 …, in order of request, entity by
  /// entity (docs/formats/store-layout.md, "Column names").
  private mutating func nameColumns(of root: Entity) {
    var taken: Set<String> = ["Z_PK", "Z_ENT", "Z_OPT"]
    for entity in model.subtree(of: root) {
      let ancestors = model.lineage(of: entity).dropLast()
      for property in columnProperties(of: entity) {
        // A redeclared property shares the ancestor's column: an inherited property has one column.
        let known = ancestors.compactMap { columnByProperty[PropertyKey(entity: $0.name, property: property.name)] }
        if let inherited = known.first {
          columnByProperty[PropertyKey(entity: entity.name, property: property.name)] = inherited
          continue
        }
        let ownName = property.attribute?.ownName ?? property.name
        let name = Self.free("Z" + ownName.uppercased(), &taken)
        columnByProperty[PropertyKey(entity: entity.name, property: property.name)] = name
        checkName(ownName, of: entity.name, property.name, table: "Z" + root.name.uppercased(), column: name)
      }
    }
  }

  /// Returns the name, followed by 1, 2, 3 … if it is taken.
  static func free(_ wanted: String, _ taken: inout Set<String>) -> String {
    var name = wanted
    var suffix = 1
    while !taken.insert(name).inserted {
      name = wanted + String(suffix)
      suffix += 1
    }
    return name
  }

  // MARK: Tables

  private mutating func buildTable(of root: Entity) {
    let tableName = "Z" + root.name.uppercased()
    checkName(root.name, of: root.name, nil, table: tableName, column: nil)
    var buckets: [[SchemaColumn]] = Array(repeating: [], count: 9)
    let entities = model.subtree(of: root)
    for entity in entities {
      let inherited = Set(model.lineage(of: entity).dropLast().flatMap { columnProperties(of: $0).map(\.name) })
      let properties = columnProperties(of: entity).filter { !inherited.contains($0.name) }
      for property in properties {
        guard let attribute = property.attribute, let column = columnName(entity, attribute.name) else { continue }
        guard let (bucket, type) = bucketAndType(of: attribute, in: entity) else { continue }
        buckets[bucket].append(
          SchemaColumn(name: column, declaredType: type, role: .attribute(entity: entity.name, name: attribute.name)))
      }
      for property in properties {
        guard let relationship = property.relationship, let column = columnName(entity, relationship.name) else {
          continue
        }
        addToOne(relationship, column: column, of: entity, table: tableName, buckets: &buckets)
      }
      sortOrderKeys(&buckets[1], of: entity)
      addOwnerColumns(into: entity, table: tableName, buckets: &buckets)
    }
    let fixed = [
      SchemaColumn(name: "Z_PK", declaredType: "INTEGER PRIMARY KEY", role: .primaryKey),
      SchemaColumn(name: "Z_ENT", declaredType: "INTEGER", role: .entityNumber),
      SchemaColumn(name: "Z_OPT", declaredType: "INTEGER", role: .saveCount),
    ]
    let constraints = frameworkVersion < 866 ? uniqueConstraints(of: entities) : []
    tables.append(
      EntityTable(
        name: tableName, rootEntity: root.name, entities: entities.map(\.name), columns: fixed + buckets.flatMap { $0 },
        uniqueConstraints: constraints))
  }

  func columnName(_ entity: Entity, _ property: String) -> String? {
    columnByProperty[PropertyKey(entity: entity.name, property: property)]
  }

  /// Returns the columns of each uniqueness constraint; refuses a constraint over a property without a column.
  mutating func uniqueConstraints(of entities: [Entity]) -> [[String]] {
    var result: [[String]] = []
    for entity in entities {
      for constraint in entity.uniquenessConstraints {
        let columns = constraint.compactMap { name in inheritedColumn(name, in: entity) }
        if columns.count == constraint.count {
          result.append(columns)
        } else {
          refuse("a uniqueness constraint names a property without a column", entity.name)
        }
      }
    }
    return result
  }

  /// Returns the column of an own or inherited property.
  func inheritedColumn(_ property: String, in entity: Entity) -> String? {
    model.lineage(of: entity).reversed().lazy.compactMap { self.columnName($0, property) }.first
  }

  /// Returns the column group and the declared type (docs/formats/store-layout.md, "Column order" and "Column types").
  private mutating func bucketAndType(of attribute: Attribute, in entity: Entity) -> (Int, String)? {
    if let column = attribute.type.traits.column { return (column.group, column.declaredType) }
    refuse(
      attribute.type == .composite
        ? "no store shows a composite with composites inside, or without elements"
        : "no store is known that shows the column of a \(attribute.type) attribute", entity.name, attribute.name)
    return nil
  }

  private mutating func addToOne(
    _ relationship: Relationship, column: String, of entity: Entity, table: String, buckets: inout [[SchemaColumn]]
  ) {
    func add(_ name: String, _ role: SchemaColumn.Role, to bucket: Int) -> String {
      buckets[bucket].append(SchemaColumn(name: name, declaredType: "INTEGER", role: role))
      return name
    }
    _ = add(column, .toOne(entity: entity.name, relationship: relationship.name), to: 0)
    let stem = String(column.dropFirst())
    var discriminator: String?
    if let destination = model.entity(named: relationship.destinationEntityName),
      !model.subentities(of: destination).isEmpty, let number = numbers[destination.name]
    {
      discriminator = add(
        "Z\(number)_\(stem)", .discriminator(entity: entity.name, relationship: relationship.name), to: 0)
    }
    var orderKey: String?
    if let inverse = model.inverse(of: relationship)?.relationship, inverse.isToMany, inverse.isOrdered {
      orderKey = add("Z_FOK_\(stem)", .orderKey(entity: entity.name, relationship: relationship.name), to: 1)
    }
    let columns = ToOneColumns(table: table, key: column, discriminator: discriminator, orderKey: orderKey)
    storageByRelationship[PropertyKey(entity: entity.name, property: relationship.name)] = .toOne(columns, other: nil)
    if let inverse = model.inverse(of: relationship), inverse.relationship.isToMany {
      storageByRelationship[PropertyKey(entity: inverse.entity.name, property: inverse.relationship.name)] =
        .members(columns)
    }
  }

  /// Sorts the order keys of an entity in the order of its keys (docs/formats/join-table-names.md, "Order of the Z_FOK
  /// columns").
  private mutating func sortOrderKeys(_ columns: inout [SchemaColumn], of entity: Entity) {
    func name(_ column: SchemaColumn) -> String? {
      if case .orderKey(entity.name, let relationship) = column.role { relationship } else { nil }
    }
    guard let start = columns.firstIndex(where: { name($0) != nil }), columns.count > start + 1 else { return }
    let places = keyOrders.order(of: entity).orderKeys.places
    let own = columns[start...].sorted {
      name($0).flatMap { places[$0] } ?? .max < name($1).flatMap { places[$0] } ?? .max
    }
    columns.replaceSubrange(start..., with: own)
  }
}

// To-many relationships: join tables, the ends that name them, and the columns of to-manys without inverse.

extension StoreSchemaBuilder {
  mutating func buildJoinTables() {
    // Names of columns are unique per entity: its many-to-manys come in alphabetical order and each takes
    // Z_<number><INVERSE>; a taken name gets 1, 2 … (docs/formats/store-layout.md, "Join table columns"). A store may
    // have them in another order.
    var keyColumn: [PropertyKey: String] = [:]
    let ordered = model.entities.sorted { (numbers[$0.name] ?? 0) < (numbers[$1.name] ?? 0) }
    for entity in ordered {
      var taken: Set<String> = []
      var unnumbered: [(key: PropertyKey, wanted: String)] = []
      for relationship in manyToManys(of: entity) {
        let key = PropertyKey(entity: entity.name, property: relationship.name)
        let wanted = keyColumnStem(of: relationship, in: entity.name)
        if let number = naming.columnNumbers[key.text], taken.insert(wanted + Self.suffix(number)).inserted {
          keyColumn[key] = wanted + Self.suffix(number)
        } else {
          unnumbered.append((key, wanted))
        }
      }
      for (key, wanted) in unnumbered { keyColumn[key] = Self.free(wanted, &taken) }
    }
    for entity in ordered {
      for relationship in manyToManys(of: entity) {
        addJoinTable(relationship, of: entity, keyColumn: keyColumn)
      }
    }
  }

  /// The name of the column with the keys of an entity's objects, without the number that distinguishes it from another
  /// of that name.
  private func keyColumnStem(of relationship: Relationship, in entity: String) -> String {
    "Z_\(numbers[entity] ?? 0)\((relationship.inverseName ?? "").uppercased())"
  }

  private static func suffix(_ number: Int) -> String { number == 0 ? "" : String(number) }

  /// Whether the first of two entities names their join table: the one that has subentities, otherwise the one of the
  /// lower number; up to fw 479 the one of the higher number, in the only example (docs/formats/store-layout.md, "Join
  /// tables").
  private func isNaming(_ entity: Entity, before other: Entity) -> Bool {
    let isLower = (numbers[entity.name] ?? 0) < (numbers[other.name] ?? 0)
    if frameworkVersion <= 479 { return !isLower }
    let (isParent, isOtherParent) = (!model.subentities(of: entity).isEmpty, !model.subentities(of: other).isEmpty)
    return isParent == isOtherParent ? isLower : isParent
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

  /// Whether the first of two ends in one entity names their table: the first one in Core Data's order
  /// (docs/formats/join-table-names.md, "The rule").
  private mutating func isNaming(_ end: String, before other: String, in entity: Entity, given: Bool?) -> Bool {
    let order = keyOrders.order(of: entity)
    let computed = order.first(of: end, other)
    selfJoinTables.append(
      SelfJoinTable(
        entity: entity.name, computed: computed, alternative: computed == end ? other : end, doubt: order.doubt,
        given: given.map { $0 ? end : other }))
    return given ?? (computed == end)
  }

  private mutating func addJoinTable(_ first: Relationship, of entity: Entity, keyColumn: [PropertyKey: String]) {
    let key = PropertyKey(entity: entity.name, property: first.name)
    guard storageByRelationship[key] == nil, let declared = model.inverse(of: first) else { return }
    let inverse = model.storingDeclaration(of: declared.relationship, in: declared.entity)
    var (owner, naming) = (entity, first)
    var (other, reverse) = (inverse.entity, inverse.relationship)
    var isUnexpected = false
    let given = self.naming.isNamed(
      after: key, orAfter: PropertyKey(entity: other.name, property: reverse.name))
    if owner.name != other.name {
      let computed = isNaming(owner, before: other)
      isUnexpected = given.map { $0 != computed } ?? false
      if !(given ?? computed) {
        swap(&owner, &other)
        swap(&naming, &reverse)
      }
    } else if naming.name == reverse.name {
      guard !naming.isOrdered else {
        refuse("an ordered to-many that is its own inverse: its order key is unknown", entity.name, first.name)
        return
      }
    } else if !isNaming(naming.name, before: reverse.name, in: owner, given: given) {
      swap(&naming, &reverse)
    }
    let (a, b) = (numbers[owner.name] ?? 0, numbers[other.name] ?? 0)
    let tableName = "Z_\(a)\(naming.name.uppercased())"
    let isOwnInverse = owner.name == other.name && naming.name == reverse.name
    let ownerColumn = keyColumn[PropertyKey(entity: owner.name, property: naming.name)]
    let targetColumn =
      isOwnInverse
      ? JoinTable.reflexiveColumn : keyColumn[PropertyKey(entity: other.name, property: reverse.name)]
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
    if isUnexpected { unexpectedJoinTables.append(join) }
    storageByRelationship[PropertyKey(entity: owner.name, property: naming.name)] =
      .join(JoinColumns(join: join, isOwner: true))
    guard !isOwnInverse else { return }
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
      let name = "Z\(numbers[owner] ?? 0)\(relationship.name.uppercased())"
      checkName(relationship.name, of: owner, relationship.name, table: table, column: name)
      buckets[0].append(
        SchemaColumn(name: name, declaredType: "INTEGER", role: .owner(entity: owner, relationship: relationship.name)))
      var columns = ToOneColumns(table: table, key: name)
      if relationship.isOrdered {
        let order = "Z_FOK_\(name.dropFirst())"
        columns.orderKey = order
        buckets[0].append(
          SchemaColumn(
            name: order, declaredType: "INTEGER", role: .ownerOrder(entity: owner, relationship: relationship.name)))
      }
      storageByRelationship[PropertyKey(entity: owner, property: relationship.name)] = .owned(columns)
    }
  }

  /// Returns to-manys without inverse by their destination entity, in the order of their owners' numbers and of Core
  /// Data's keys (docs/formats/store-layout.md, "To-many without inverse").
  mutating func toManysWithoutInverse() -> [String: [(owner: String, relationship: Relationship)]] {
    var found: [String: [(owner: String, relationship: Relationship)]] = [:]
    for owner in model.entities.sorted(by: { (numbers[$0.name] ?? 0) < (numbers[$1.name] ?? 0) }) {
      let own = owner.relationships.filter { relationship in
        relationship.isToMany && !relationship.isTransient && relationship.inverseName == nil
          && model.storingDeclaration(of: relationship, in: owner).entity.name == owner.name
      }
      guard !own.isEmpty else { continue }
      let places = keyOrders.order(of: owner).keys.places
      for relationship in own.sorted(by: { places[$0.name] ?? .max < places[$1.name] ?? .max }) {
        found[relationship.destinationEntityName, default: []].append((owner.name, relationship))
      }
    }
    return found
  }
}
