// Makes the relational schema of an export from a store's layout.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

extension CleanSchema {
  /// Creates the schema of the objects in `selection` of an open store.
  package init(
    of schema: StoreSchema, in reader: StoreReader, selection: StoreSelection, options: ExportOptions
  ) throws {
    var builder = CleanSchemaBuilder(
      schema: schema, reader: reader, selection: selection,
      values: ExportedValue(options: options, external: nil), present: try CleanSchemaBuilder.present(schema, reader))
    builder.build()
    self.init(tables: builder.tables, joins: builder.joins, missingParts: builder.leftOut)
  }
}

private struct CleanSchemaBuilder {
  let schema: StoreSchema
  let reader: StoreReader
  let selection: StoreSelection
  let values: ExportedValue
  /// The columns that the store has, by table.
  let present: [String: Set<String>]
  private(set) var tables: [CleanTable] = []
  private(set) var joins: [CleanJoin] = []
  private(set) var leftOut: [HopdError] = []
  /// Tables, views and indexes share one scope.
  private var names = UniqueNames([CleanSchema.mappingTable])

  init(
    schema: StoreSchema, reader: StoreReader, selection: StoreSelection, values: ExportedValue,
    present: [String: Set<String>]
  ) {
    self.schema = schema
    self.reader = reader
    self.selection = selection
    self.values = values
    self.present = present
  }

  static func present(_ schema: StoreSchema, _ reader: StoreReader) throws -> [String: Set<String>] {
    var present: [String: Set<String>] = [:]
    for object in try reader.schemaObjects() where object.type == "table" {
      guard schema.table(named: object.name) != nil || schema.joinTable(named: object.name) != nil else { continue }
      present[object.name] = Set(try reader.shape(of: object.name).columns.map(\.name))
    }
    return present
  }

  mutating func build() {
    leftOut = schema.unsupported.filter { $0.code == .layoutUnsupported }
    // The tables take their names before any view or join table does.
    let exported = schema.tables.filter { !concrete($0).isEmpty && has($0.name, ["Z_PK", "Z_ENT"], $0.rootEntity) }
    let tableNames = exported.map { names.take(Self.tableName($0.rootEntity)) }
    for (stored, name) in zip(exported, tableNames) { add(stored, name, among: exported) }
    for join in schema.joinTables { add(join, among: exported) }
  }

  // MARK: Names

  /// SQLite keeps names that begin so for itself.
  private static func tableName(_ entity: String) -> String {
    entity.lowercased().hasPrefix("sqlite_") ? "_\(entity)" : entity
  }

  /// A key path of a composite would have to be quoted everywhere.
  private static func columnName(_ property: String) -> String {
    String(property.map { $0 == "." ? "_" : $0 })
  }

  // MARK: Tables

  /// The concrete entities of a table that are exported.
  private func concrete(_ table: EntityTable) -> [CleanEntity] {
    table.entities.compactMap { name in
      guard let entity = schema.model.entity(named: name), !entity.isAbstract, selection.contains(name),
        let number = schema.number(of: name)
      else { return nil }
      return CleanEntity(
        entity: entity, number: number,
        constraints: schema.model.lineage(of: entity).flatMap(\.uniquenessConstraints))
    }
  }

  private mutating func has(
    _ table: String, _ columns: [String], _ entity: String, _ property: String? = nil
  ) -> Bool {
    let missing = columns.first { present[table]?.contains($0) != true }
    guard let missing else { return true }
    leftOut.append(
      HopdError(
        .dumpIncomplete,
        present[table] == nil ? "the table \(table) is missing" : "the column \(table).\(missing) is missing",
        at: Place(entity: entity, property: property)))
    return false
  }

  private mutating func add(_ stored: EntityTable, _ name: String, among exported: [EntityTable]) {
    let entities = concrete(stored)
    let properties = Set(
      stored.entities.compactMap { schema.model.entity(named: $0) }.flatMap { entity in
        entity.attributes.map { Self.columnName($0.name).lowercased() }
          + entity.relationships.map { $0.name.lowercased() }
      })
    func free(_ wanted: [String]) -> String { wanted.first { !properties.contains($0) } ?? wanted[0] }
    let key = free(["id", "pk", "object_id", "hopd_id"])
    // A tree has one kind of table, however many of its entities are exported.
    let entityColumn =
      stored.entities.count > 1 ? free(["entity", "entity_name", "object_entity", "hopd_entity"]) : nil
    var columnNames = UniqueNames([key] + [entityColumn].compactMap(\.self))
    var columns: [CleanColumn] = []
    for column in stored.columns.sorted(by: Self.precedes) {
      guard let made = self.column(column, of: stored, entities, &columnNames, among: exported) else { continue }
      columns.append(made)
    }
    tables.append(
      CleanTable(
        stored: stored, condition: selection.condition(on: "s.\"Z_PK\"", in: stored), name: name, keyColumn: key,
        entityColumn: entityColumn, entities: entities,
        views: views(of: stored, entities, columns, key: key, entityColumn: entityColumn), columns: columns))
  }

  /// Attributes by name, then references by name, each with its position.
  private static func precedes(_ left: SchemaColumn, _ right: SchemaColumn) -> Bool {
    let (a, b) = (place(left.role), place(right.role))
    if a.group != b.group { return a.group < b.group }
    if a.name != b.name { return Entity.caseInsensitiveOrder(a.name, b.name) }
    return a.part == b.part ? left.name < right.name : a.part < b.part
  }

  private static func place(_ role: SchemaColumn.Role) -> (group: Int, name: String, part: Int) {
    switch role {
    case .primaryKey, .entityNumber, .saveCount: (0, "", 0)
    case .attribute(_, let name): (1, name, 0)
    case .toOne(_, let name): (2, name, 0)
    case .discriminator(_, let name): (2, name, 1)
    case .orderKey(_, let name): (2, name, 2)
    case .owner(_, let name): (3, name, 0)
    case .ownerOrder(_, let name): (3, name, 1)
    }
  }

  private mutating func column(
    _ column: SchemaColumn, of stored: EntityTable, _ entities: [CleanEntity], _ names: inout UniqueNames,
    among exported: [EntityTable]
  ) -> CleanColumn? {
    switch column.role {
    case .primaryKey, .entityNumber, .saveCount, .discriminator: return nil
    case .attribute(let owner, let name): return attribute(column, owner, name, of: stored, entities, &names)
    case .toOne(let owner, let name):
      return reference(column, owner, name, of: stored, entities, &names, among: exported)
    case .orderKey(let owner, let name):
      let having = self.having(entities) { schema.storage(ofRelationship: name, in: $0)?.ownColumns?.orderKey }
      guard let members = having[column.name], isExported(owner, name, among: exported),
        has(stored.name, [column.name], owner, name)
      else { return nil }
      return CleanColumn(
        name: names.take("\(name)_position"), property: "\(name)_position", content: .position,
        source: quoted(column.name), entities: members, requiredBy: [])
    case .owner(let owner, let name), .ownerOrder(let owner, let name):
      // The members' entities do not have the relationship: the column is named after its owner.
      guard let root = schema.table(of: owner)?.rootEntity, exported.contains(where: { $0.rootEntity == root }),
        has(stored.name, [column.name], owner, name)
      else { return nil }
      let isOrder = if case .ownerOrder = column.role { true } else { false }
      let wanted = "\(owner)_\(name)" + (isOrder ? "_position" : "")
      return CleanColumn(
        name: names.take(wanted), property: wanted,
        content: isOrder ? .position : .reference(root: root, onDelete: .nullify),
        source: isOrder ? quoted(column.name) : selected(quoted(column.name), root: root),
        entities: members(of: owner, name, entities), requiredBy: [],
        owner: isOrder ? nil : PropertyKey(entity: owner, property: name))
    }
  }

  /// The exported entities whose objects may be members of a to-many without inverse.
  private func members(of owner: String, _ name: String, _ entities: [CleanEntity]) -> [String] {
    let destination = schema.model.ownRelationship(name, of: owner)?.destinationEntityName
    return entities.map(\.entity.name).filter { name in
      destination.map { schema.model.namesOfLineage(of: name).contains($0) } ?? false
    }
  }

  private func quoted(_ column: String) -> String { "s." + SQLiteIdentifier.quoted(column) }

  /// The names of the exported entities by the stored column that they have.
  private func having(_ entities: [CleanEntity], _ column: (String) -> String?) -> [String: [String]] {
    var result: [String: [String]] = [:]
    for entity in entities {
      if let name = column(entity.entity.name) { result[name, default: []].append(entity.entity.name) }
    }
    return result
  }

  private mutating func attribute(
    _ column: SchemaColumn, _ owner: String, _ name: String, of stored: EntityTable, _ entities: [CleanEntity],
    _ names: inout UniqueNames
  ) -> CleanColumn? {
    let having = self.having(entities) { schema.column(ofAttribute: name, in: $0) }
    guard let members = having[column.name],
      let attribute = schema.model.entity(named: owner)?.attributes.first(where: { $0.name == name }),
      has(stored.name, [column.name], owner, name)
    else { return nil }
    let required = members.filter { member in
      schema.model.entity(named: member).flatMap { schema.model.allAttributes(of: $0)[name] }
        .map { !$0.isOptional && !$0.isDerived } ?? false
    }
    let own = Self.columnName(name)
    return CleanColumn(
      name: names.take(own, "\(owner)_\(own)"), property: name, content: .attribute(attribute),
      source: values.expression(quoted(column.name), of: attribute), entities: members, requiredBy: required)
  }

  // MARK: References

  /// Whether the table of a relationship's targets is exported.
  private func isExported(_ owner: String, _ name: String, among exported: [EntityTable]) -> Bool {
    guard let destination = schema.model.ownRelationship(name, of: owner)?.destinationEntityName,
      let table = schema.table(of: destination)
    else { return false }
    return exported.contains(table)
  }

  private mutating func reference(
    _ column: SchemaColumn, _ owner: String, _ name: String, of stored: EntityTable, _ entities: [CleanEntity],
    _ names: inout UniqueNames, among exported: [EntityTable]
  ) -> CleanColumn? {
    let having = self.having(entities) { schema.storage(ofRelationship: name, in: $0)?.ownColumns?.key }
    guard let members = having[column.name], let relationship = schema.model.ownRelationship(name, of: owner),
      let root = schema.table(of: relationship.destinationEntityName)?.rootEntity,
      isExported(owner, name, among: exported), has(stored.name, [column.name], owner, name)
    else { return nil }
    let required = members.filter { member in
      schema.model.entity(named: member).flatMap { schema.model.allRelationships(of: $0)[name] }
        .map { !$0.isOptional } ?? false
    }
    // What Core Data does with this object when its target is deleted is the rule of the inverse.
    let rule = schema.model.inverse(of: relationship)?.relationship.deleteRule ?? .nullify
    return CleanColumn(
      name: names.take(name, "\(owner)_\(name)"), property: name, content: .reference(root: root, onDelete: rule),
      source: selected(quoted(column.name), root: root), entities: members, requiredBy: required)
  }

  /// SQL of a key if its object is exported, else NULL: a foreign key must not dangle.
  private func selected(_ key: String, root: String) -> String {
    guard let table = schema.table(of: root) else { return "NULL" }
    return "CASE WHEN \(isThere(key, in: table)) THEN \(key) END"
  }

  private func isThere(_ key: String, in table: EntityTable) -> String {
    if let condition = selection.condition(on: key, in: table) { return condition }
    let numbers = concrete(table).map { String($0.number) }.joined(separator: ", ")
    return "EXISTS (SELECT 1 FROM \(reader.qualified(table.name)) AS t WHERE t.\"Z_PK\" = \(key)"
      + " AND t.\"Z_ENT\" IN (\(numbers)))"
  }

  private mutating func add(_ join: JoinTable, among exported: [EntityTable]) {
    guard let owner = schema.table(of: join.entity), let target = schema.table(of: join.inverseEntity),
      exported.contains(owner), exported.contains(target),
      case .join(let stored)? = schema.storage(ofRelationship: join.relationship, in: join.entity),
      has(join.name, join.columns, join.entity, join.relationship)
    else { return }
    let pairs = stored.pairs(in: reader.qualified(join.name))
    let (first, second) = (
      "j." + SQLiteIdentifier.quoted(join.ownerColumn), "j." + SQLiteIdentifier.quoted(join.targetColumn)
    )
    var list = [first, second]
    var names = UniqueNames()
    let ownerColumn = names.take(join.entity)
    let targetColumn = names.take(join.relationship, "\(join.relationship)_\(join.inverseEntity)")
    let position = join.orderColumn.map { column in
      list.append("j." + SQLiteIdentifier.quoted(column))
      return names.take("position")
    }
    let inversePosition = join.inverseOrderColumn.map { column in
      list.append("j." + SQLiteIdentifier.quoted(column))
      return names.take("\(join.inverseRelationship)_position")
    }
    joins.append(
      CleanJoin(
        name: self.names.take("\(Self.tableName(join.entity))_\(join.relationship)"),
        owner: (ownerColumn, owner.rootEntity), target: (targetColumn, target.rootEntity), position: position,
        inversePosition: inversePosition,
        relationship: PropertyKey(entity: join.entity, property: join.relationship),
        source: "SELECT \(list.joined(separator: ", ")) FROM \(pairs) AS j"
          + " WHERE \(isThere(first, in: owner)) AND \(isThere(second, in: target))"))
  }

  // MARK: Views

  private mutating func views(
    of stored: EntityTable, _ entities: [CleanEntity], _ columns: [CleanColumn], key: String, entityColumn: String?
  ) -> [CleanView] {
    guard let entityColumn else { return [] }
    var views: [CleanView] = []
    for name in stored.entities where name != stored.rootEntity {
      guard let entity = schema.model.entity(named: name) else { continue }
      let subtree = Set(schema.model.subtree(of: entity).map(\.name))
      let rows = entities.map(\.entity.name).filter(subtree.contains)
      guard !rows.isEmpty else { continue }
      var names = UniqueNames([key, entityColumn])
      // Those that every object of the entity has, under their own names.
      let shown = columns.indices.filter { place in
        Set(columns[place].entities).isSuperset(of: rows) && isProperty(columns[place], of: entity)
      }
      views.append(
        CleanView(
          name: self.names.take(Self.tableName(name), "\(stored.rootEntity)_\(name)"), entities: rows,
          columns: shown.map { (names.take(Self.columnName(columns[$0].property)), $0) }))
    }
    return views
  }

  private func isProperty(_ column: CleanColumn, of entity: Entity) -> Bool {
    switch column.content {
    case .attribute: schema.model.allAttributes(of: entity)[column.property] != nil
    case .reference, .position: true
    }
  }
}
