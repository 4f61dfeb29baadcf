// Associations as SQL in both directions: the destination object of a source row under a mapping, the source rows of a
// mapping, and whether a destination key belongs to a mapping. The three passes and the policies share these fragments.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// SQL fragments over a hop's associations.
package struct AssociationSQL {
  let layout: AssociationLayout
  let expressions: MappedExpressions
  let destinationSchema: String

  /// Uses the staged store that is attached as `destinationSchema`.
  package init(layout: AssociationLayout, expressions: MappedExpressions, destinationSchema: String) {
    self.layout = layout
    self.expressions = expressions
    self.destinationSchema = destinationSchema
  }

  /// The destination objects of a source row under one mapping.
  package struct Targets {
    /// "table AS alias" to join with the source row.
    package var tables: [SQLExpression] = []
    /// The conditions that join them with the source row.
    package var conditions: [SQLExpression]
    /// The Z_PK of the destination object.
    package let key: SQLExpression
    /// The Z_ENT of the destination object.
    package let number: SQLExpression
  }

  /// The source rows of a mapping, with the destination object of each.
  struct Rows {
    /// "table AS alias" in the order of joining; the first has the range key.
    var tables: [SQLExpression]
    var conditions: [SQLExpression]
    /// The key by which rows are read in ranges, and the table that has it.
    let rangeKey: String
    let driver: SourceTables.Driver
    let row: MappedRow
    let key: SQLExpression
    let number: SQLExpression
  }

  private func own(_ table: String) -> String {
    SQLiteIdentifier.quoted(destinationSchema) + "." + SQLiteIdentifier.quoted(table)
  }

  func sum(_ key: SQLExpression, _ offset: Int64) -> SQLExpression { offset == 0 ? key : "\(key) + \(offset)" }

  /// Returns the conditions under which a source row belongs to a mapping.
  func membership(_ range: AssociationRange, row: MappedRow) throws(HopdError) -> [SQLExpression] {
    var conditions: [SQLExpression] = ["\(row.alias).\"Z_ENT\" = \(range.sourceNumber)"]
    if let filter = range.mapping.filter {
      conditions.append("(\(try expressions.condition(filter.predicate, row: row, range: range)))")
    }
    return conditions
  }

  private func keys(of range: AssociationRange) -> [ExpressionNode] {
    switch range.mapping.grouping {
    case .distinctBy(let keys, _), .deduplicate(let keys, _): keys
    case .each, .expand: []
    }
  }

  /// Returns the conditions under which a row of a mapping's groups has the keys of a source row.
  private func matches(
    _ range: AssociationRange, row: MappedRow, in group: String
  ) throws(HopdError) -> [SQLExpression] {
    var conditions: [SQLExpression] = []
    for (index, node) in keys(of: range).enumerated() {
      conditions.append("\(group).\"k\(index)\" = \(try expressions.key(node, row: row, range: range))")
    }
    return conditions
  }

  // MARK: From source to destination

  /// Returns the objects that `range` made for the source row under `alias`.
  package func targets(_ range: AssociationRange, of alias: String, prefix: String) throws(HopdError) -> Targets {
    let row = MappedRow(alias: alias, entity: range.sourceEntity)
    let key = SQLExpression.column("Z_PK", of: alias)
    let number = SQLExpression.integer(range.destinationNumber)
    switch range.kind {
    case .each:
      return Targets(
        conditions: try membership(range, row: row), key: sum(key, range.offset), number: number)
    case .grouped:
      let group = SQLiteIdentifier.quoted("\(prefix)g")
      return Targets(
        tables: ["\(own(AssociationLayout.groupTable(range.index))) AS \(group)"],
        conditions: try membership(range, row: row) + matches(range, row: row, in: group),
        key: sum("\(group).\"id\"", range.offset), number: number)
    case .deduplicated:
      let conditions = try matches(range, row: row, in: "g")
      // A source object with nil in its keys is in no group and represents itself.
      let representative: SQLExpression =
        "coalesce((SELECT g.\"representative\" FROM \(own(AssociationLayout.groupTable(range.index))) AS g"
        + " WHERE \(conditions.joined(separator: " AND "))), \(key))"
      return Targets(
        conditions: try membership(range, row: row), key: sum(representative, range.offset), number: number)
    case .expanded:
      let pair = SQLiteIdentifier.quoted("\(prefix)x")
      return Targets(
        tables: ["\(own(AssociationLayout.expandedTable(range.index))) AS \(pair)"],
        conditions: ["\(alias).\"Z_ENT\" = \(range.sourceNumber)", "\(pair).\"source\" = \(key)"],
        key: "\(pair).\"destination\"", number: number)
    case .policy:
      let pair = SQLiteIdentifier.quoted("\(prefix)a")
      return Targets(
        tables: ["\(own(AssociationLayout.associationTable)) AS \(pair)"],
        conditions: [
          "\(pair).\"mapping\" = \(range.index)", "\(pair).\"source_entity\" = \(alias).\"Z_ENT\"",
          "\(pair).\"source\" = \(key)",
        ],
        key: "\(pair).\"destination\"", number: "\(pair).\"destination_entity\"")
    }
  }

  /// Returns the object that a grouping mapping made for values of its keys.
  func group(_ range: AssociationRange, keys: [SQLExpression], prefix: String) -> Targets {
    let group = SQLiteIdentifier.quoted("\(prefix)g")
    return Targets(
      tables: ["\(own(AssociationLayout.groupTable(range.index))) AS \(group)"],
      conditions: keys.enumerated().map { "\(group).\"k\($0.offset)\" = \($0.element)" },
      key: sum("\(group).\"id\"", range.offset), number: .integer(range.destinationNumber))
  }

  // MARK: From destination to source

  /// Returns the rows from which a mapping made its objects, one row per object: for a group, the source object that
  /// represents it.
  func rows(_ range: AssociationRange) throws(HopdError) -> Rows {
    let row = range.row
    let source: SQLExpression = "\(expressions.qualified(range.sourceTable)) AS s"
    switch range.kind {
    case .each, .deduplicated:
      var conditions = try membership(range, row: row)
      if range.kind == .deduplicated {
        var matches: [SQLExpression] = []
        var isNil: [SQLExpression] = []
        for (index, node) in keys(of: range).enumerated() {
          let key = try expressions.key(node, row: row, range: range)
          matches.append("g.\"k\(index)\" = \(key)")
          isNil.append("\(key) IS NULL")
        }
        conditions.append(
          "(\(isNil.joined(separator: " OR ")) OR (SELECT g.\"representative\" FROM"
            + " \(own(AssociationLayout.groupTable(range.index))) AS g WHERE \(matches.joined(separator: " AND ")))"
            + " = s.\"Z_PK\")")
      }
      return Rows(
        tables: [source], conditions: conditions, rangeKey: "s.\"Z_PK\"",
        driver: expressions.source.driver(of: range.sourceTable), row: row,
        key: sum(.column("Z_PK"), range.offset), number: .integer(range.destinationNumber))
    case .grouped:
      let table = own(AssociationLayout.groupTable(range.index))
      return Rows(
        tables: ["\(table) AS g", source], conditions: ["s.\"Z_PK\" = g.\"representative\""], rangeKey: "g.\"id\"",
        driver: SourceTables.Driver(table: table, key: "\"id\""), row: row, key: sum("g.\"id\"", range.offset),
        number: .integer(range.destinationNumber))
    case .expanded(let member):
      guard let members = expressions.hop.sourceSchema.table(of: member) else {
        throw HopdError(
          .mappingUnsupported, "the entity of its members, \(member), is unknown",
          at: Place(hop: expressions.hop.title, entity: range.mapping.name))
      }
      let table = own(AssociationLayout.expandedTable(range.index))
      return Rows(
        tables: ["\(table) AS x", source, "\(expressions.qualified(members.name)) AS m"],
        conditions: ["s.\"Z_PK\" = x.\"source\"", "m.\"Z_PK\" = x.\"member\""], rangeKey: "x.\"destination\"",
        driver: SourceTables.Driver(table: table, key: "\"destination\""), row: row, key: "x.\"destination\"",
        number: .integer(range.destinationNumber))
    case .policy:
      let table = own(AssociationLayout.associationTable)
      return Rows(
        tables: ["\(table) AS a", source],
        conditions: [
          "a.\"mapping\" = \(range.index)", "a.\"source_entity\" = \(range.sourceNumber)", "s.\"Z_PK\" = a.\"source\"",
          "s.\"Z_ENT\" = a.\"source_entity\"",
        ], rangeKey: "a.rowid", driver: SourceTables.Driver(table: table, key: "rowid"), row: row,
        key: "a.\"destination\"",
        number: "a.\"destination_entity\"")
    }
  }

  /// Returns the condition that `range` made the destination object with that key.
  func isOwned(_ key: SQLExpression, by range: AssociationRange) -> SQLExpression {
    switch range.kind {
    case .grouped:
      "EXISTS (SELECT 1 FROM \(own(AssociationLayout.groupTable(range.index))) AS w WHERE w.\"id\" = \(key) - "
        + "\(range.offset))"
    case .each, .deduplicated:
      "EXISTS (SELECT 1 FROM \(expressions.qualified(range.sourceTable)) AS w"
        + " WHERE w.\"Z_PK\" = \(key) - \(range.offset) AND w.\"Z_ENT\" = \(range.sourceNumber))"
    case .expanded:
      "EXISTS (SELECT 1 FROM \(own(AssociationLayout.expandedTable(range.index))) AS w WHERE w.\"destination\" = "
        + "\(key))"
    case .policy:
      "EXISTS (SELECT 1 FROM \(own(AssociationLayout.associationTable)) AS w WHERE w.\"mapping\" = \(range.index)"
        + " AND w.\"destination_entity\" = \(range.destinationNumber) AND w.\"destination\" = \(key))"
    }
  }

  // MARK: Tables

  /// The statements for the tables that grouping, expanding and policy mappings need.
  var scratchTables: [String] {
    var statements: [String] = []
    for range in layout.ranges {
      switch range.kind {
      case .each, .policy: break
      case .grouped, .deduplicated:
        let columns = keys(of: range).indices.map { "\"k\($0)\"" }
        statements.append(
          "CREATE TABLE \(own(AssociationLayout.groupTable(range.index))) (\"id\" INTEGER PRIMARY KEY,"
            + " \(columns.joined(separator: ", ")), \"representative\" INTEGER, \"members\" INTEGER, \"latest\")")
      case .expanded:
        statements.append(
          "CREATE TABLE \(own(AssociationLayout.expandedTable(range.index))) (\"destination\" INTEGER PRIMARY KEY,"
            + " \"source\" INTEGER, \"member\" INTEGER, UNIQUE (\"source\", \"member\"))")
      }
    }
    guard expressions.hop.mapped?.policies.isEmpty == false else { return statements }
    let index = SQLiteIdentifier.quoted(destinationSchema) + "."
    return statements + [
      "CREATE TABLE \(own(AssociationLayout.associationTable)) (\"mapping\" INTEGER, \"source_entity\" INTEGER,"
        + " \"source\" INTEGER, \"destination_entity\" INTEGER, \"destination\" INTEGER)",
      // Unique: associating the same pair twice is one association.
      "CREATE UNIQUE INDEX \(index)HOPD_ASSOCIATION_SOURCE ON HOPD_ASSOCIATION"
        + " (\"source\", \"mapping\", \"source_entity\", \"destination\", \"destination_entity\")",
      "CREATE INDEX \(index)HOPD_ASSOCIATION_DESTINATION ON HOPD_ASSOCIATION"
        + " (\"destination\", \"mapping\", \"destination_entity\")",
    ]
  }
}
