// Which end of a many-to-many between an entity and itself names the table: the store tells.

import ManagedObjectModel
import SQLite

extension StoreReader {
  /// Which end names each self many-to-many table, read off the tables that are there.
  package func joinTableNaming(for model: ManagedObjectModel, frameworkVersion: Int64) throws(SQLiteError)
    -> JoinTableNaming
  {
    let guess = StoreSchema(model: model, frameworkVersion: frameworkVersion)
    let tables = Set(try schemaObjects().filter { $0.type == "table" }.map(\.name))
    var names: Set<String> = []
    for uncertain in guess.uncertainJoinTables {
      for candidate in [uncertain.guessed, uncertain.alternative] {
        let name = "\(uncertain.entity).\(candidate)"
        let schema = StoreSchema(
          model: model, frameworkVersion: frameworkVersion, naming: JoinTableNaming([name]))
        guard case .join(let join, isOwner: true) = schema.storage(ofRelationship: candidate, in: uncertain.entity),
          tables.contains(join.name)
        else { continue }
        names.insert(name)
        break
      }
    }
    return JoinTableNaming(names)
  }
}
