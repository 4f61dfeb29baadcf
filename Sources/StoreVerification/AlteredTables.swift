// Computes the expected texts of tables in an altered copy: each follows from the store's own text and from the columns
// that a hop's layout adds to the one before. Computed here independently of the engine.

import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore

/// The expected texts of the tables that stay in the copy of a store.
struct AlteredTables {
  let plan: MigrationPlan
  /// The tables of the last version that the plan keeps, with their names in the store.
  let origins: [String: String]

  /// The texts by table name; a table that is not in it must have the layout's text.
  var texts: [String: String] {
    let found = Dictionary(
      plan.found.objects.filter { $0.type == "table" }.compactMap { object in object.sql.map { (object.name, $0) } },
      uniquingKeysWith: { first, _ in first })
    guard let final = plan.hops.last?.destinationSchema else { return [:] }
    var texts: [String: String] = [:]
    for table in final.tables {
      guard let origin = origins[table.name], let text = found[origin] else { continue }
      texts[table.name] = TableText.appending(
        appended(to: table).map { TableText.definition(of: $0.name, type: $0.declaredType) },
        to: origin == table.name ? text : TableText.renaming(text, from: origin, to: table.name))
    }
    for join in final.joinTables {
      guard let origin = origins[join.name], let text = found[origin] else { continue }
      let isPlain = origin == join.name && text == TableText.withPlainName(text, of: origin)
      texts[join.name] =
        isPlain ? join.createStatement : TableText.renaming(join.createStatement, from: join.name, to: join.name)
    }
    return texts
  }

  /// Returns the columns that the hops add to the table that becomes `table`, hop by hop.
  private func appended(to table: EntityTable) -> [SchemaColumn] {
    var added: [SchemaColumn] = []
    var root = table.rootEntity
    for hop in plan.hops.reversed() {
      guard let now = hop.destinationSchema.table(of: root),
        // The root itself may be new, above the entities that have the rows.
        let source = now.entities.lazy.compactMap({ hop.mapping.mapping(toDestination: $0)?.sourceEntity }).first,
        let before = hop.sourceSchema.table(of: source)
      else { break }
      let known = Set(before.columns.map(\.name))
      added = now.columns.filter { !known.contains($0.name) } + added
      root = before.rootEntity
    }
    return added
  }
}
