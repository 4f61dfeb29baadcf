// The indexes of a store by framework generation (docs/formats/store-layout.md, "Indexes"). Missing or additional
// indexes do not make a store incompatible, so an index whose form is uncertain is left out and listed, never invented.

import Diagnostics
import ManagedObjectModel

struct SchemaIndexBuilder {
  let builder: StoreSchemaBuilder
  private(set) var indexes: [SchemaIndex] = []
  private(set) var rTrees: [SchemaRTree] = []
  private(set) var locations: [SchemaRTree] = []
  private(set) var unsupported: [HopdError] = []
  private var names: Set<String> = []

  /// Whether attribute indexes are named after entity and attribute and state the collation: from fw 836 on.
  private var isModern: Bool { builder.frameworkVersion > 754 }

  init(builder: StoreSchemaBuilder) {
    self.builder = builder
    for table in builder.tables {
      for name in table.entities {
        guard let entity = builder.model.entity(named: name) else { continue }
        addPlainIndexes(of: entity, in: table)
        // Photos switches the index off by an entry of the user info (docs/formats/store-layout.md, "Indexes").
        if name == table.rootEntity, table.entities.count > 1,
          entity.userInfo["_NSEntityOmitSubentityColumnIndex"] != "YES"
        {
          add("\(table.name)_Z_ENT_INDEX", on: table.name, [("Z_ENT", "")])
        }
        addJoinIndexes(of: entity)
        addAttributeIndexes(of: entity, in: table)
        addCompoundAndFetchIndexes(of: entity, in: table)
        addUniqueIndexes(of: entity, in: table)
        locations += builder.locations(of: entity, in: table)
      }
    }
  }

  private mutating func add(
    _ name: String, on table: String, _ columns: [(String, String)], unique: Bool = false,
    where condition: String? = nil
  ) {
    guard names.insert(name).inserted else { return }
    indexes.append(
      SchemaIndex(
        name: name, table: table, isUnique: unique,
        columns: columns.map { SchemaIndex.Column(name: $0.0, suffix: $0.1) }, condition: condition))
  }

  /// Adds `T_C_INDEX` for to-one and owner columns, as in every generation.
  private mutating func addPlainIndexes(of entity: Entity, in table: EntityTable) {
    for column in table.columns {
      switch column.role {
      case .toOne(let owner, _) where owner == entity.name:
        add("\(table.name)_\(column.name)_INDEX", on: table.name, [(column.name, "")])
      case .owner(let owner, let relationship):
        if builder.model.ownRelationship(relationship, of: owner)?.destinationEntityName == entity.name {
          add("\(table.name)_\(column.name)_INDEX", on: table.name, [(column.name, "")])
        }
      default: break
      }
    }
  }

  /// Adds an index over the second column of join tables, from fw 637 on.
  private mutating func addJoinIndexes(of entity: Entity) {
    guard builder.frameworkVersion >= 637 else { return }
    for join in builder.joinTables where join.entity == entity.name {
      add("\(join.name)_\(join.targetColumn)_INDEX", on: join.name, [(join.targetColumn, ""), (join.ownerColumn, "")])
    }
  }

  private mutating func addAttributeIndexes(of entity: Entity, in table: EntityTable) {
    // The model's compilation sets the flag for a fetch index with one ascending binary attribute, which from fw 851 to
    // 973 makes its own index alone (docs/formats/store-layout.md, "Indexes").
    let hasOwnIndex = Set(
      FetchIndex.standsAlone(frameworkVersion: builder.frameworkVersion)
        ? entity.fetchIndexes.compactMap(\.plainProperty) : [])
    for attribute in entity.attributes.sorted(by: { Entity.caseInsensitiveOrder($0.name, $1.name) })
    where !attribute.isTransient && attribute.isIndexed && !attribute.isElement && !hasOwnIndex.contains(attribute.name)
    {
      guard let column = builder.columnName(entity, attribute.name) else { continue }
      if isModern {
        add("Z_\(entity.name)_\(attribute.name)", on: table.name, [(column, " COLLATE BINARY ASC")])
      } else {
        add("\(table.name)_\(column)_INDEX", on: table.name, [(column, "")])
      }
    }
  }

  private mutating func addCompoundAndFetchIndexes(of entity: Entity, in table: EntityTable) {
    for compound in entity.compoundIndexes {
      let columns = compound.compactMap { column(ofElement: $0, in: entity) }
      guard columns.count == compound.count, !columns.isEmpty else {
        leaveOut("the compound index \(compound.joined(separator: ", ")) names a property without a column", entity)
        continue
      }
      if isModern {
        add(
          "Z_\(entity.name)_\(compound.joined(separator: "_"))", on: table.name,
          columns.map { ($0, " COLLATE BINARY ASC") })
      } else {
        add("\(table.name)_\(columns.joined(separator: "_"))", on: table.name, columns.map { ($0, "") })
      }
    }
    guard isModern else { return }
    for index in entity.fetchIndexes { add(index, of: entity, in: table) }
  }

  private mutating func add(_ index: FetchIndex, of entity: Entity, in table: EntityTable) {
    if let rTree = builder.rTree(index, of: entity, in: table) {
      rTrees.append(rTree)
      if !builder.observed.hasRTrees {
        leaveOut(
          "the R-Tree index \(index.name) is not made, as no store shows its form; a fetch that asks for it by "
            + "name may fail until the app creates it", entity)
      }
      return
    }
    // An index over one relationship makes none (docs/formats/store-layout.md, "Indexes").
    if index.elements.count == 1, let name = index.elements.first?.propertyName,
      builder.model.allRelationships(of: entity)[name] != nil
    {
      return
    }
    let columns = index.elements.compactMap { element -> (String, String)? in
      guard element.kind == .binary,
        let column = element.propertyName.flatMap({ plainColumns([$0], of: entity).first })
          ?? element.expression.flatMap({ column(ofElement: $0, in: entity) })
      else { return nil }
      return (column, " COLLATE BINARY \(element.isAscending ? "ASC" : "DESC")")
    }
    guard columns.count == index.elements.count, !columns.isEmpty else {
      leaveOut(
        "the form of the fetch index \(index.name) in a store is unknown (it is computed or mixed, or names no "
          + "property with a column)", entity)
      return
    }
    var condition: String?
    if let predicate = index.partialPredicate {
      let layout = self
      let found = PartialIndexCondition.sql(predicate) { layout.plainColumns([$0], of: entity).first }
      guard let found else {
        leaveOut("the form of the partial fetch index \(index.name) in a store is unknown", entity)
        return
      }
      condition = " WHERE \(builder.frameworkVersion < 1030 ? " " : "")\(found)"
    }
    // At fw 836 a single-attribute fetch index only produced the attribute's own index (docs/formats/store-layout.md,
    // "Indexes").
    if builder.frameworkVersion == 836, index.plainProperty != nil { return }
    let name = "Z_\(entity.name)_\(index.name)"
    add(name, on: table.name, columns, where: condition)
    if !indexes.contains(where: { $0.name == name && $0.columns.map(\.name) == columns.map(\.0) }) {
      leaveOut("duplicate index \(index.name)", entity)
    }
  }

  private mutating func addUniqueIndexes(of entity: Entity, in table: EntityTable) {
    // Before they are part of the table.
    guard builder.frameworkVersion >= 866 else { return }
    for constraint in entity.uniquenessConstraints {
      let columns = plainColumns(constraint, of: entity)
      guard columns.count == constraint.count, !columns.isEmpty else {
        if constraint.contains(where: { builder.isElement($0, of: entity) }) {
          leaveOut(
            "the name of the index for the uniqueness of \(constraint.joined(separator: ", ")) is unknown, as an "
              + "element of a composite is in it", entity)
        }
        continue
      }
      add(
        "Z_\(entity.name)_UNIQUE_\(constraint.joined(separator: "_"))", on: table.name,
        columns.map { ($0, " COLLATE BINARY ASC") }, unique: true)
    }
  }

  /// Returns the columns of properties; those of elements are left out, because no store shows the names of their
  /// indexes.
  private func plainColumns(_ names: [String], of entity: Entity) -> [String] {
    names.filter { !builder.isElement($0, of: entity) }.compactMap { builder.inheritedColumn($0, in: entity) }
  }

  /// Returns the column of a property, or of the object and the entity of the row themselves, which an index names
  /// `self` and `entity`.
  private func column(ofElement name: String, in entity: Entity) -> String? {
    if let column = plainColumns([name], of: entity).first { return column }
    return switch FetchIndex.Element.RowPart(expression: name) {
    case .object?: "Z_PK"
    case .entity?: "Z_ENT"
    case nil: nil
    }
  }

  private mutating func leaveOut(_ message: String, _ entity: Entity) {
    unsupported.append(HopdError(.indexLeftOut, message, at: Place(entity: entity.name)))
  }
}

extension HopdError.Code {
  /// An index of the model is not made, because its form in a store is unknown; a store works without it.
  package static let indexLeftOut = HopdError.Code("index-left-out", severity: .warning)
}
