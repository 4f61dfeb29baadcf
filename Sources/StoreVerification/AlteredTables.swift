// Computes the expected texts of tables that stay in a file while hops alter it: each follows from its text before, and
// from the columns that a hop's layout adds to the one before. Computed here independently of the engine.

import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore

/// The tables of the last version that stay in a file while hops alter it.
package struct StayingTables: Sendable, Hashable {
  /// A table, with its name in the file that the first of these hops found.
  package struct Table: Sendable, Hashable {
    package let origin: String
    /// Whether a hop gave it another name: SQLite quotes that from then on.
    package let isRenamed: Bool

    /// Names a table.
    package init(origin: String, isRenamed: Bool) { (self.origin, self.isRenamed) = (origin, isRenamed) }
  }

  /// The first hop that altered the file; 0 for the store itself.
  package let since: Int
  /// By name in the last version.
  package var tables: [String: Table]

  /// Names the tables.
  package init(since: Int, tables: [String: Table]) { (self.since, self.tables) = (since, tables) }

  /// No table stays.
  package static let none = StayingTables(since: 0, tables: [:])
}

/// The expected texts of the tables that stay.
struct AlteredTables {
  let plan: MigrationPlan
  let staying: StayingTables

  /// The texts by table name; a table that is not in it must have the layout's text.
  var texts: [String: String] {
    guard let final = plan.hops.last?.destinationSchema else { return [:] }
    let found = found
    var texts: [String: String] = [:]
    for table in final.tables {
      guard let stays = staying.tables[table.name], let text = found[stays.origin] else { continue }
      texts[table.name] = TableText.appending(
        appended(to: table).map { TableText.definition(of: $0.name, type: $0.declaredType) },
        to: stays.isRenamed ? TableText.renaming(text, from: stays.origin, to: table.name) : text)
    }
    for join in final.joinTables {
      guard let stays = staying.tables[join.name], let text = found[stays.origin] else { continue }
      let isPlain = !stays.isRenamed && text == TableText.withPlainName(text, of: stays.origin)
      texts[join.name] =
        isPlain ? join.createStatement : TableText.renaming(join.createStatement, from: join.name, to: join.name)
    }
    return texts
  }

  /// The texts in the file that the first of the hops found: the store's own, or those of a file that hopd wrote.
  private var found: [String: String] {
    if staying.since == 0 {
      return Dictionary(
        plan.found.objects.filter { $0.type == "table" }.compactMap { object in object.sql.map { (object.name, $0) } },
        uniquingKeysWith: { first, _ in first })
    }
    guard plan.hops.indices.contains(staying.since) else { return [:] }
    let schema = plan.hops[staying.since].sourceSchema
    return Dictionary(
      schema.tables.map { ($0.name, $0.createStatement) } + schema.joinTables.map { ($0.name, $0.createStatement) }
    ) { first, _ in first }
  }

  /// Returns the columns that the hops add to the table that becomes `table`, hop by hop.
  private func appended(to table: EntityTable) -> [SchemaColumn] {
    var added: [SchemaColumn] = []
    var root = table.rootEntity
    for hop in plan.hops.dropFirst(staying.since).reversed() {
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
