// The views of a hop as statements: written once for all stores that go the same way, and made in each of their
// connections.

import Expressions
import MigrationPlanning
import PersistentStore
import SQLite

/// The statements of a hop's views, and of what is asked before anybody reads them.
struct ViewDefinitions: Sendable {
  /// A statement whose rows cannot all be computed where the hop would fail.
  struct Question: Sendable {
    /// What errors call the rows.
    let subject: String
    let sql: String
  }

  /// Where the views are.
  let space: SourceTables
  let preconditions: [HopProgram.Precondition]
  let questions: [Question]
  /// What the destination's model demands of rows in `space`, but for what follows from the views; none for a hop
  /// without mapping models.
  let demands: [ValidationRule]
  private let statements: [String]

  /// Writes the statements of a program over `source`.
  init(_ program: IntermediateHop, hop: Hop, source: SourceTables) {
    let names = SourceTables.views(ofHop: hop.index, over: source, origins: [:])
    let affinities = ViewTable.affinities(of: hop.sourceSchema)
    var origins: [String: SourceTables.Origin] = [:]
    var statements: [String] = []
    for table in program.tables {
      let select = table.select(affinities: table.rows.first.flatMap { affinities[$0.sourceTable] } ?? [:]).text
      statements.append("CREATE TEMP VIEW \(SQLiteIdentifier.quoted(names.name(of: table.table))) AS \(select)")
      origins[table.table] =
        table.origin
        ?? SourceTables.Origin(
          table: "",
          driver: SourceTables.Driver(
            table: names.qualified(table.table),
            key: table.isJoin ? SQLiteIdentifier.quoted(SourceTables.rangeColumn) : "\"Z_PK\""), carried: [:],
          numbers: [], whole: [:])
    }
    let space = SourceTables.views(ofHop: hop.index, over: source, origins: origins)
    self.space = space
    self.statements = statements
    preconditions = program.preconditions
    let implied = ImpliedConstraints(written: space, counts: nil, indexes: [])
    demands =
      hop.isMapped
      ? ValidationRule.all(in: hop.destinationSchema, space: space).filter { !implied.contains($0) } : []
    questions = program.tables.compactMap { table in
      let failing = table.failing
      guard !failing.isEmpty || table.filterMayFail else { return nil }
      let values = failing.map { "(v.\(SQLiteIdentifier.quoted($0)) IS NULL)" }
      let term = values.isEmpty ? "1" : values.joined(separator: " + ")
      return Question(
        subject: program.subjects[table.table] ?? table.table,
        sql: "SELECT total(\(term)) FROM \(space.qualified(table.table)) AS v")
    }
  }

  /// Makes the views.
  func create(on connection: Connection) throws(SQLiteError) {
    for statement in statements { try connection.execute(statement) }
  }
}
