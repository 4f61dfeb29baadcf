// The relational schema of an export: the tables and columns of a store under the model's names. SQL files, CSV and
// code templates take names from here, and this is the only place that makes them.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite

/// Tables with the model's names, and where their content is in the store.
package struct CleanSchema {
  /// A table for each root entity with its descendants.
  let tables: [CleanTable]
  /// A table for each many-to-many relationship.
  let joins: [CleanJoin]
  /// Parts of the store that cannot be exported because the store lacks them.
  package let missingParts: [HopdError]
  /// The table of an exported database that has the mapping by which it is imported, in its one column `mapping`.
  static let mappingTable = "hopctl_import"
}

/// The table of a root entity and all its descendants.
struct CleanTable {
  /// The table in the store.
  let stored: EntityTable
  /// SQL that is true for a row `s` of it that is exported; nil for all rows.
  let condition: String?
  let name: String
  /// The primary key, which has the value of Z_PK.
  let keyColumn: String
  /// The column with the name of an object's entity; nil if the objects of the table have one entity.
  let entityColumn: String?
  /// The concrete entities that are exported, by number.
  let entities: [CleanEntity]
  /// Views of the entities below the root.
  let views: [CleanView]
  let columns: [CleanColumn]
}

/// A concrete entity.
struct CleanEntity {
  let entity: Entity
  let number: Int64
  /// Its uniqueness constraints, inherited ones included.
  let constraints: [[String]]
}

/// A view of the objects of an entity, inherited properties included.
struct CleanView {
  let name: String
  /// Names of the concrete entities of its rows.
  let entities: [String]
  /// The columns under the properties' names, by the places of the table's columns.
  let columns: [(name: String, place: Int)]
}

/// A column that has a property of at least one entity.
struct CleanColumn {
  /// What the column has.
  enum Content {
    case attribute(Attribute)
    /// The key of a target in the table of a root entity.
    case reference(root: String, onDelete: Relationship.DeleteRule)
    /// The place of the row in the ordered relationship at the other end of a reference.
    case position
  }

  let name: String
  /// The property's name, in the model.
  let property: String
  let content: Content
  /// SQL of its value, on a row `s` of the stored table.
  let source: String
  /// Names of the concrete entities that have it.
  let entities: [String]
  /// Names of the concrete entities whose objects must have a value.
  let requiredBy: [String]
  /// The to-many without inverse whose members have the column; nil for a property of the members themselves.
  var owner: PropertyKey?

  /// Whether it belongs to the owner of a to-many without inverse.
  var isOwner: Bool { owner != nil }
}

/// The table of a many-to-many relationship, or of the members of a to-many without inverse.
struct CleanJoin {
  let name: String
  let owner: (column: String, root: String)
  let target: (column: String, root: String)
  /// The columns with the places of the targets of one owner, and of the owners of one target.
  let position: String?
  let inversePosition: String?
  /// The relationship, by the entity that declares it.
  let relationship: PropertyKey
  /// SQL of its rows: owner, target, and the places that it has.
  let source: String
}
