// Finds, in the store's tables, the end that names the table of a many-to-many between an entity and itself.

import ManagedObjectModel
import SQLite

extension StoreReader {
  /// Returns the end that names each self many-to-many table, from the existing tables.
  package func joinTableNaming(for model: ManagedObjectModel, frameworkVersion: Int64) throws(SQLiteError)
    -> JoinTableNaming
  {
    let plain = StoreSchema(model: model, frameworkVersion: frameworkVersion)
    guard !plain.selfJoinTables.isEmpty else { return JoinTableNaming() }
    let tables = Set(try schemaObjects().filter { $0.type == "table" }.map(\.name))
    var names: Set<String> = []
    for pair in plain.selfJoinTables {
      for candidate in [pair.computed, pair.alternative] {
        let name = "\(pair.entity).\(candidate)"
        let schema =
          candidate == pair.computed
          ? plain
          : StoreSchema(model: model, frameworkVersion: frameworkVersion, naming: JoinTableNaming([name]))
        guard case .join(let join)? = schema.storage(ofRelationship: candidate, in: pair.entity), join.isOwner,
          tables.contains(join.table)
        else { continue }
        names.insert(name)
        break
      }
    }
    return JoinTableNaming(names)
  }
}
