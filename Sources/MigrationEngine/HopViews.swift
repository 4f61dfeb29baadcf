// A hop that writes nothing: temporary views that show what it would write, for the next hop to read. Views are gone with the
// connection, so a resumed run makes them again.

import Diagnostics
import Expressions
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import PropertyLists
import SQLite

/// The views of one hop.
package enum HopViews {
  /// Makes the views of a hop over `source`, whatever was there before, with its metadata and key marks as temporary tables.
  ///
  /// Checks the hop's preconditions and the destination's rules over the rows: errors speak of that hop. Throws an internal
  /// error for a hop that `HopFusion` does not let be an inner one.
  package static func create(
    _ hop: Hop, over source: TableSpace, connection: Connection, options: EngineOptions,
    references: ReferenceMemory = ReferenceMemory(), counts: CountMemory? = nil, memo: Memo? = nil
  ) throws -> TableSpace {
    do {
      // As the engine wants it later: a change of this setting takes every temporary view with it.
      try connection.execute("PRAGMA temp_store = FILE")
      try drop(hop: hop.index, connection: connection)
      try registerFunctions(on: connection)
      let reader = StoreReader(connection: connection, space: source, memory: counts)
      let layout = hop.isMapped ? try AssociationLayout(hop: hop, source: reader) : nil
      let views = try RememberedPrograms(memo: memo).program(
        RememberedPrograms.Key(hop: hop, source: source, options: options, layout: layout, isFinal: false),
        isSound: SourceReference.asking(source, of: connection, memory: references)
      ) { isSound in
        let program = try InnerProgram(hop: hop, source: source, layout: layout, options: options, isSound: isSound)
        if let obstacle = program.obstacle {
          throw HopdError(
            .internalError, "the hop cannot be read without being made: \(obstacle)", at: Place(hop: hop.title),
            hint: "please report this")
        }
        return ViewDefinitions(program, hop: hop, source: source)
      }
      for condition in views.preconditions { try condition.check(connection, hop: hop) }
      let result = StoreReader(connection: connection, space: views.space, memory: counts)
      // One transaction for all of them: each by itself would be a commit of the temporary database.
      try connection.transaction {
        try views.create(on: connection)
        try check(views, hop: hop, connection: connection, rules: options.invalidRows)
        try keepBooks(
          HopBookkeeping(hop: hop, source: reader, destination: result, layout: layout), connection: connection)
      }
      return views.space
    } catch let error as SQLiteError {
      throw hop.explained(error, subject: "reading", connection: connection)
    }
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

  /// What the views of any hop call.
  static func registerFunctions(on connection: Connection) throws(SQLiteError) {
    try connection.registerAffinityFunctions()
    try ExpressionFunctions.register(on: connection)
  }

  /// What would stop the hop while it is made stops it here: a value that cannot be had, and the destination's rules.
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

  private static func keepBooks(_ books: HopBookkeeping, connection: Connection) throws {
    let space = books.destination.space
    let autoVacuum = try connection.integer("PRAGMA \(SQLiteIdentifier.quoted(space.fileSchema)).auto_vacuum")
    let metadata = try books.metadata(autoVacuum: autoVacuum)
    let marks = try books.highWaterMarks()
    try connection.execute(
      "CREATE TEMP TABLE \(SQLiteIdentifier.quoted(space.name(of: "Z_METADATA"))) (Z_VERSION, Z_UUID, Z_PLIST);"
        + " CREATE TEMP TABLE \(SQLiteIdentifier.quoted(space.name(of: "Z_PRIMARYKEY"))) (Z_ENT, Z_NAME, Z_SUPER, Z_MAX)"
    )
    try connection.run(
      "INSERT INTO \(space.qualified("Z_METADATA")) VALUES (1, ?, ?)",
      [.text(metadata.uuid), .blob(PropertyList.encodeBinary(.dictionary(metadata.entries)))])
    let entries = books.hop.destinationSchema.primaryKeyEntries
    // As many rows as SQLite has parameters for, and one statement for all of them.
    for start in stride(from: 0, to: entries.count, by: 200) {
      let part = entries[start..<min(start + 200, entries.count)]
      let rows = part.map { _ in "(?, ?, ?, ?)" }.joined(separator: ", ")
      try connection.run(
        "INSERT INTO \(space.qualified("Z_PRIMARYKEY")) VALUES \(rows)",
        part.flatMap { entry -> [SQLiteValue] in
          let mark = entry.parent == 0 ? marks[entry.name] ?? 0 : 0
          return [.integer(entry.number), .text(entry.name), .integer(entry.parent), .integer(mark)]
        })
    }
  }
}
