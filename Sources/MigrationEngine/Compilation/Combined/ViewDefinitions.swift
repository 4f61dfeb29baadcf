// The views of a hop as statements.

import Expressions
import MigrationPlanning
import PersistentStore
import SQLite

/// The statements of a hop's views, and of the checks before the views are read.
struct ViewDefinitions: Sendable {
  /// A statement that fails if the hop would fail to compute one of its rows.
  struct Question: Sendable {
    /// The name of the rows in errors.
    let subject: String
    let sql: String
  }

  /// The views' space.
  let space: SourceTables
  let preconditions: [HopProgram.Precondition]
  let questions: [Question]
  /// The destination model's rules for rows in `space`, except those that follow from the views; empty for a hop
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

  /// Creates the views.
  func create(on connection: Connection) throws(SQLiteError) {
    for statement in statements { try connection.execute(statement) }
  }
}
