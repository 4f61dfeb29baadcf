// Computes the expected texts of tables that stay in a file while hops alter it: each follows from its text before, and
// from the columns that a hop's layout adds to the one before. Computed here independently of the engine.

import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore

/// A table that stays in its file while hops alter it.
package struct StayingTable: Sendable, Hashable {
  /// Its name before the first of these hops.
  package let origin: String
  /// The first of these hops; 0 for a table of the store itself.
  package let since: Int
  /// Whether a hop gave it another name: SQLite quotes that from then on.
  package let isRenamed: Bool

  /// Names a table.
  package init(origin: String, since: Int, isRenamed: Bool) {
    (self.origin, self.since, self.isRenamed) = (origin, since, isRenamed)
  }
}

/// The expected texts of the tables that stay.
struct AlteredTables {
  let plan: MigrationPlan
  /// By name in the last version.
  let staying: [String: StayingTable]

  /// The texts by table name; a table that is not in it must have the layout's text.
  var texts: [String: String] {
    guard let final = plan.hops.last?.destinationSchema else { return [:] }
    let found = Dictionary(
      plan.found.objects.filter { $0.type == "table" }.compactMap { object in object.sql.map { (object.name, $0) } },
      uniquingKeysWith: { first, _ in first })
    var texts: [String: String] = [:]
    for table in final.tables {
      guard let stays = staying[table.name], let text = text(of: stays, found) else { continue }
      texts[table.name] = TableText.appending(
        appended(to: table, since: stays.since).map { TableText.definition(of: $0.name, type: $0.declaredType) },
        to: stays.isRenamed ? TableText.renaming(text, from: stays.origin, to: table.name) : text)
    }
    for join in final.joinTables {
      guard let stays = staying[join.name], let text = text(of: stays, found) else { continue }
      let isPlain = !stays.isRenamed && text == TableText.withPlainName(text, of: stays.origin)
      texts[join.name] =
        isPlain ? join.createStatement : TableText.renaming(join.createStatement, from: join.name, to: join.name)
    }
    return texts
  }

  /// The text of a table before the first hop: the store's own, or the one that hopd wrote.
  private func text(of table: StayingTable, _ found: [String: String]) -> String? {
    if table.since == 0 { return found[table.origin] }
    guard plan.hops.indices.contains(table.since) else { return nil }
    let schema = plan.hops[table.since].sourceSchema
    return schema.table(named: table.origin)?.createStatement ?? schema.joinTable(named: table.origin)?.createStatement
  }

  /// Returns the columns that the hops from `first` on add to the table that becomes `table`, hop by hop.
  private func appended(to table: EntityTable, since first: Int) -> [SchemaColumn] {
    var added: [SchemaColumn] = []
    var root = table.rootEntity
    for hop in plan.hops.dropFirst(first).reversed() {
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
