// A part of a store's objects, for exports. The keys of the selected objects are in temporary tables, so that memory
// does not grow with them, and a reference is tested with one look-up, whatever selected its target.

import ManagedObjectModel
import SQLite

/// The objects of a store that are read.
package struct StoreSelection: Sendable {
  /// Every object.
  package static let all = StoreSelection(entities: nil, keyTables: [:])

  /// Names of the concrete entities whose objects may be selected; nil for all.
  private let entities: Set<String>?
  /// The tables of keys by the names of entity tables; an entity table without one has no selected object.
  private let keyTables: [String: String]
  /// Whether references to objects that are not selected are read, too.
  package var keepsReferences = false

  private init(entities: Set<String>?, keyTables: [String: String]) {
    self.entities = entities
    self.keyTables = keyTables
  }

  /// Selects the objects of `entities`, subentities included, for which `condition` is true: SQL on a row `s` of the
  /// entity's table. The temporary tables stay until the reader's connection ends.
  package init(
    of entities: [Entity], in reader: StoreReader, schema: StoreSchema,
    condition: (Entity) throws -> String? = { _ in nil }
  ) throws {
    var names: Set<String> = []
    var keyTables: [String: String] = [:]
    for entity in entities.flatMap({ schema.model.subtree(of: $0) }) where !entity.isAbstract {
      guard names.insert(entity.name).inserted, let table = schema.table(of: entity.name),
        let number = schema.number(of: entity.name)
      else { continue }
      let keys = keyTables[table.name] ?? "temp.hopd_selected_\(keyTables.count)"
      if keyTables.updateValue(keys, forKey: table.name) == nil {
        try reader.connection.execute("CREATE TEMP TABLE \(keys.dropFirst("temp.".count)) (key INTEGER PRIMARY KEY)")
      }
      let filter = try condition(entity).map { " AND (\($0))" } ?? ""
      try reader.connection.run(
        "INSERT INTO \(keys) SELECT s.\"Z_PK\" FROM \(reader.qualified(table.name)) AS s"
          + " WHERE s.\"Z_ENT\" = \(number)\(filter)")
    }
    self.init(entities: names, keyTables: keyTables)
  }

  /// Whether every object is selected.
  package var isAll: Bool { entities == nil }

  /// Whether objects of the concrete entity may be selected.
  package func contains(_ entity: String) -> Bool { entities?.contains(entity) ?? true }

  /// SQL that is true if the object of a table with that key is selected; nil if every object is.
  package func condition(on key: String, in table: EntityTable) -> String? {
    guard !isAll else { return nil }
    return keyTables[table.name].map { "\(key) IN (SELECT key FROM \($0))" } ?? "0"
  }

  /// The same for the key of a reference to an object.
  package func condition(onReference key: String, in table: EntityTable) -> String? {
    keepsReferences ? nil : condition(on: key, in: table)
  }
}
