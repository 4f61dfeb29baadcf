// The model's names for what a hop writes. Users know their entities and properties; names such as Z_1BOOKS and
// ZBOOK_Z_ENT_INDEX are Core Data's.

import ManagedObjectModel
import PersistentStore

/// The names of tables, join tables, indexes and triggers in terms of the model.
struct SubjectNames {
  private var names: [String: String] = [:]

  init(_ schema: StoreSchema) {
    var properties: [String: [String: String]] = [:]
    for join in schema.joinTables {
      names[join.name] = "\(join.entity).\(join.relationship)"
      properties[join.name] = [join.targetColumn: "\(join.entity).\(join.relationship)"]
    }
    for table in schema.tables {
      names[table.name] = table.rootEntity
      properties[table.name] = Dictionary(
        table.columns.compactMap { column in column.role.property.map { (column.name, $0) } }
      ) { first, _ in first }
    }
    for index in schema.indexes {
      let indexed = index.columns.compactMap { properties[index.table]?[$0.name] }
      names[index.name] = "index on " + (indexed.first ?? names[index.table] ?? index.table)
    }
    for rTree in schema.rTrees { names[rTree.name] = "index on \(rTree.entity).\(rTree.index)" }
    for trigger in schema.triggers {
      names[trigger.name] = "trigger on " + (names[trigger.table] ?? trigger.table)
    }
    for statement in schema.history?.statements ?? [] { names[statement.name] = "history" }
    // The rows of an entity are its subject already.
    for entity in schema.model.entities { names[entity.name] = nil }
  }

  /// The model's name of a step's subject; the subject itself if it is one.
  subscript(subject: String) -> String { names[subject] ?? subject }
}

extension SchemaColumn.Role {
  /// "Entity.property"; nil for columns that are of every object.
  fileprivate var property: String? {
    switch self {
    case .primaryKey, .entityNumber, .saveCount: nil
    case .attribute(let entity, let name): "\(entity).\(name)"
    case .toOne(let entity, let relationship), .discriminator(let entity, let relationship),
      .orderKey(let entity, let relationship), .owner(let entity, let relationship),
      .ownerOrder(let entity, let relationship):
      "\(entity).\(relationship)"
    }
  }
}
