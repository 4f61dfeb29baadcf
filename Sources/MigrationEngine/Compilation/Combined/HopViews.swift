// A hop that writes nothing: temporary views show the rows that it would write, for the next hop to read. Views end
// with the connection, so a resumed run creates them again.

import Diagnostics
import Expressions
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import SQLite

/// The views of one hop.
package enum HopViews {
  /// Creates the views of a hop over `source`, and keeps its metadata and key marks in `counts`. None of the views may
  /// exist yet, and after an error none exists.
  ///
  /// Checks the hop's preconditions and the destination's rules over the rows: errors refer to that hop. Throws an
  /// internal error for a hop that `HopFusion` does not accept as an intermediate one.
  package static func create(
    _ hop: Hop, over source: SourceTables, connection: Connection, options: EngineOptions,
    references: ReferenceMemory = ReferenceMemory(), counts: RowCountCache
  ) throws -> SourceTables {
    do {
      // Set now as the engine needs it later: a change of this setting deletes every temporary view.
      try connection.execute("PRAGMA temp_store = FILE")
      try registerFunctions(on: connection)
      let reader = StoreReader(connection: connection, space: source, memory: counts)
      let layout = hop.isMapped ? try AssociationLayout(hop: hop, source: reader) : nil
      let program = try IntermediateHop(
        hop: hop, source: source, layout: layout, options: options,
        isSound: SourceReference.asking(source, of: connection, memory: references))
      if let obstacle = program.obstacle {
        throw HopdError(
          .internalError, "the hop cannot be read without being made: \(obstacle)", at: Place(hop: hop.title),
          hint: "please report this")
      }
      let views = ViewDefinitions(program, hop: hop, source: source)
      for condition in views.preconditions { try condition.check(connection, hop: hop) }
      let result = StoreReader(connection: connection, space: views.space, memory: counts)
      // One transaction for all views: each by itself would be a commit of the temporary database.
      try connection.transaction {
        try views.create(on: connection)
        try check(views, hop: hop, connection: connection, rules: options.invalidRows)
        counts.keep(
          try HopBookkeeping(hop: hop, source: reader, destination: result, layout: layout).books(), of: views.space)
      }
      return views.space
    } catch let error as SQLiteError {
      throw hop.explained(error, subject: "reading", connection: connection)
    }
  }

  /// Removes the views of a hop if they exist.
  package static func drop(hop: Int, connection: Connection) throws(SQLiteError) {
    let names = try connection.rows(
      "SELECT name FROM sqlite_temp_schema WHERE type = 'view' AND name LIKE ?", [.text("hop\(hop) %")]
    ) { row in row.text(at: 0) ?? "" }
    for name in names { try connection.execute("DROP VIEW temp.\(SQLiteIdentifier.quoted(name))") }
  }

  /// Registers the functions that the views of any hop call.
  static func registerFunctions(on connection: Connection) throws(SQLiteError) {
    try connection.registerAffinityFunctions()
    try ExpressionFunctions.register(on: connection)
  }

  /// Makes the checks that would stop the hop if it were written: values that cannot be computed, and the destination's
  /// rules.
  private static func check(
    _ views: ViewDefinitions, hop: Hop, connection: Connection, rules: InvalidRowsRules
  ) throws {
    for question in views.questions {
      do {
        _ = try connection.value(question.sql)
      } catch {
        throw hop.explained(error, subject: question.subject, connection: connection)
      }
    }
    guard hop.isMapped else { return }
    _ = try MappedHopValidation(
      connection: connection, layout: hop.destinationSchema, space: views.space, rules: rules, hop: hop.title,
      demands: views.demands
    ).run()
  }
}
