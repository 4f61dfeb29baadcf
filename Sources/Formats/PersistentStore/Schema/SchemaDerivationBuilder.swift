// Derived attributes and R-Trees of a model: their places in the layout, and which of them have a known form.

import Diagnostics
import ManagedObjectModel

extension HopdError.Code {
  /// The triggers of a derived attribute have a form that no store has shown.
  package static let derivationUnsupported = HopdError.Code("derivation-unsupported", exit: .dataError)
}

struct SchemaDerivationBuilder {
  let builder: StoreSchemaBuilder
  private(set) var derivations: [SchemaDerivation] = []
  private(set) var unsupported: [HopdError] = []

  init(builder: StoreSchemaBuilder) {
    self.builder = builder
    for table in builder.tables {
      for name in table.entities {
        guard let entity = builder.model.entity(named: name) else { continue }
        let derived = entity.attributes.filter { $0.isDerived && !$0.isTransient }
        for attribute in derived.sorted(by: { Entity.caseInsensitiveOrder($0.name, $1.name) }) {
          add(attribute, of: entity, in: table)
        }
        checkRedeclarations(in: entity)
      }
    }
  }

  /// Requires the same derivation for an attribute that is declared again: the two share a column and its triggers.
  private mutating func checkRedeclarations(in entity: Entity) {
    for attribute in entity.attributes where !attribute.isTransient {
      for ancestor in builder.model.lineage(of: entity).dropLast() {
        guard let other = ancestor.attributes.first(where: { $0.name == attribute.name }), !other.isTransient,
          other.derivation != attribute.derivation
        else { continue }
        unsupported.append(
          HopdError(
            .layoutUnsupported,
            "the attribute is declared again with another derivation than in \(ancestor.name): which of them keeps the "
              + "column is unknown", at: Place(entity: entity.name, property: attribute.name),
            hint: "declare it once, or rename one of the two"))
      }
    }
  }

  private mutating func add(_ attribute: Attribute, of entity: Entity, in table: EntityTable) {
    let isInherited = builder.model.lineage(of: entity).dropLast().contains { ancestor in
      ancestor.attributes.contains { $0.name == attribute.name && !$0.isTransient }
    }
    guard !isInherited, let derivation = attribute.derivation, let column = builder.columnName(entity, attribute.name)
    else { return }
    let numbers = builder.numbersOfSubtree(of: entity)
    var kind = SchemaDerivation.Kind.other(expression: attribute.derivationExpression ?? "")
    var isGuarded = true
    switch derivation {
    case .count(let relationship):
      switch builder.inheritedStorage(relationship, in: entity) {
      case .members(let columns):
        kind = .count(childTable: columns.table, childColumn: columns.key)
        // Triggers lack guards only if every row of the table has the attribute: there guards would change nothing.
        isGuarded = entity.name != table.rootEntity
      case .owned(let columns): kind = .count(childTable: columns.table, childColumn: columns.key)
      case .toOne, .join, nil: break
      }
    case .value(let relationship, let key):
      guard entity.name == table.rootEntity, let found = value(of: key, in: relationship, of: entity, as: attribute)
      else { break }
      (kind, isGuarded) = (found, false)
    case .other: break
    }
    let found = SchemaDerivation(
      entity: entity.name, attribute: attribute.name, table: table.name, column: column, numbers: numbers, kind: kind,
      isGuarded: isGuarded)
    derivations.append(found)
    guard !found.isComputed, !builder.observed.carriedDerivations.contains("\(entity.name).\(attribute.name)") else {
      return
    }
    unsupported.append(
      HopdError(
        .derivationUnsupported,
        "the triggers of the derivation \(attribute.derivationExpression ?? "") are unknown; only those of a "
          + "count over a to-many that is not a many-to-many are, and those of an attribute of a to-one's target in an "
          + "entity without parent",
        at: Place(entity: entity.name, property: attribute.name),
        hint: "create this store with the app, or remove the derivation from the attribute"))
  }

  /// Returns the columns of a target's value; nil if stores show no such derivation: a target's value that is derived
  /// itself, of another type, or in a file.
  private func value(
    of key: String, in name: String, of entity: Entity, as attribute: Attribute
  ) -> SchemaDerivation.Kind? {
    guard case .toOne(let columns, _)? = builder.inheritedStorage(name, in: entity),
      let relationship = builder.model.allRelationships(of: entity)[name],
      let destination = builder.model.entity(named: relationship.destinationEntityName),
      let target = builder.model.allAttributes(of: destination)[key], !target.isTransient, !target.isDerived,
      target.type == attribute.type, !target.allowsExternalStorage, !attribute.allowsExternalStorage,
      let column = builder.inheritedColumn(key, in: destination),
      let table = builder.tables.first(where: { $0.entities.contains(destination.name) })
    else { return nil }
    return .value(targetTable: table.name, targetColumn: column, keyColumn: columns.key)
  }
}

extension StoreSchemaBuilder {
  /// Returns the table of an R-Tree fetch index by the documented rule; nil for an index of another kind.
  func rTree(_ index: FetchIndex, of entity: Entity, in table: EntityTable) -> SchemaRTree? {
    guard !index.elements.isEmpty, index.elements.allSatisfy({ $0.kind == .rTree }), index.partialPredicate == nil,
      // SQLite's own bound (sqlite.org/rtree.html).
      index.elements.count <= 5
    else { return nil }
    return rTree(
      "Z_\(entity.name)_\(index.name)", index.name, over: index.elements.map(\.propertyName), of: entity, in: table)
  }

  /// Returns the tables of the locations of an entity, in Photos' form.
  func locations(of entity: Entity, in table: EntityTable) -> [SchemaRTree] {
    entity.attributes.filter(\.isTransient).compactMap { attribute in
      guard let names = attribute.userInfo[SchemaRTree.locationKey] else { return nil }
      let parts = names.split { $0 == "," || $0 == " " }.map { Optional(String($0)) }
      var found = rTree(
        "Z_RT_\(entity.name)_\(attribute.name)", attribute.name, over: parts, of: entity, in: table)
      found?.isLocation = true
      return found
    }
  }

  private func rTree(
    _ name: String, _ index: String, over properties: [String?], of entity: Entity, in table: EntityTable
  ) -> SchemaRTree? {
    let dimensions = properties.compactMap { property -> SchemaRTree.Dimension? in
      guard let property, let column = inheritedColumn(property, in: entity) else { return nil }
      return SchemaRTree.Dimension(attribute: property, column: column)
    }
    guard !dimensions.isEmpty, dimensions.count == properties.count else { return nil }
    return SchemaRTree(
      name: name, entity: entity.name, index: index, table: table.name, numbers: numbersOfSubtree(of: entity),
      dimensions: dimensions)
  }

  /// Returns the numbers of the entity and all its descendants.
  func numbersOfSubtree(of entity: Entity) -> [Int64] {
    model.subtree(of: entity).compactMap { numbers[$0.name] }.sorted()
  }
}
