// Estimates the work of a hop for progress reports: the spans of keys give the number of rows without counting them,
// and a few rows of each table give their length.

import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

extension HopRunner {
  /// The smallest source whose hops have an outline. A smaller one is migrated before a progress report could show it,
  /// unless policies make its objects; its outline took a twentieth of the run.
  private static let smallestOutlined = Double(8 << 20)

  /// Makes the outline, or makes it again when a step has better numbers than before.
  mutating func outlineSteps() throws(SQLiteError) {
    if !program.hasPolicies, try bytes(of: program.source.fileSchema) < Self.smallestOutlined { return }
    guard let outline else {
      outline = try makeOutline(revision: 0)
      return
    }
    guard outline.revision < 8, outline.steps.indices.contains(checkpoint.step) else { return }
    let step = outline.steps[checkpoint.step]
    let isFirstIndex =
      step.kind == .index && (checkpoint.step == 0 || outline.steps[checkpoint.step - 1].kind != .index)
    if step.isGuess || isFirstIndex { self.outline = try makeOutline(revision: outline.revision + 1) }
  }

  /// Returns the program's steps with their costs.
  private func makeOutline(revision: Int) throws(SQLiteError) -> HopOutline {
    var written: [String: Double] = [:]
    var steps: [HopOutline.Step] = []
    let planned = Dictionary(hop.entities.map { ($0.mapping, Double($0.rows)) }) { first, _ in first }
    for (index, step) in program.steps.enumerated() {
      switch step {
      case .copy(let copy):
        let rows = try span(of: copy.nextKey)
        written[copy.rows.table, default: 0] += rows
        steps.append(.init(.rows, seconds: try seconds(rows, key: copy.nextKey, into: [copy.rows.table])))
      case .chunks(let chunks):
        let known = try span(of: chunks.nextKey)
        // Rows that are not written yet have no keys.
        let isGuess = known == 0 && index > checkpoint.step
        let rows = isGuess ? planned[chunks.subject] ?? 0 : known
        let tables = chunks.actions.compactMap { action in
          if case .rows(let table) = action.effect, action.isCounted { table } else { nil }
        }
        for table in Set(tables) { written[table, default: 0] += rows }
        steps.append(
          .init(.rows, seconds: try seconds(rows, key: chunks.nextKey, into: tables), isGuess: isGuess))
      case .policy(let policy):
        let objects = planned[policy.subject] ?? 0
        let table = hop.mapped?.entityMappings.first { $0.name == policy.subject }?.destination
          .flatMap { hop.destinationSchema.table(of: $0)?.name }
        if policy.pass == .createInstances, let table { written[table, default: 0] += objects }
        steps.append(.init(.policy, seconds: Self.seconds(policy.pass, objects: objects)))
      case .update(let update):
        steps.append(.init(.statement, seconds: seconds(update, planned: planned, written: written)))
      case .index(let index):
        steps.append(.init(.index, seconds: try seconds(indexNamed: index.subject, written: written)))
      case .validate:
        steps.append(.init(.statement, seconds: written.values.reduce(0, +) * WorkCost.looked))
      case .table, .trigger: steps.append(.init(.statement, seconds: 0))
      }
    }
    let result = try expected(written)
    steps.append(.init(.statement, seconds: result.bytes * WorkCost.sealedByte))
    return HopOutline(steps: steps, result: result, revision: revision)
  }

  // MARK: Costs of steps

  private func seconds(_ rows: Double, key nextKey: String, into tables: [String]) throws(SQLiteError) -> Double {
    let columns = tables.compactMap { hop.destinationSchema.table(named: $0)?.columns.count }.max()
    return rows * (WorkCost.row + (try width(of: nextKey, columns: columns)) * WorkCost.rowByte)
  }

  private static func seconds(_ pass: HopProgram.PolicyStep.Pass, objects: Double) -> Double {
    switch pass {
    case .createInstances: objects * WorkCost.policyRow + WorkCost.program
    case .stage: objects * WorkCost.policyRow
    case .createRelationships: objects * WorkCost.policyLook
    case .performCustomValidation, .end: 0
    }
  }

  private func seconds(
    _ statement: HopProgram.StatementStep, planned: [String: Double], written: [String: Double]
  ) -> Double {
    switch statement.effect {
    case .schema: 0
    case .scratch: (planned[statement.subject] ?? 0) * WorkCost.grouped
    case .rows(let table): (written[table] ?? 0) * WorkCost.row
    }
  }

  private func seconds(indexNamed name: String, written: [String: Double]) throws(SQLiteError) -> Double {
    guard let index = hop.destinationSchema.indexes.first(where: { $0.name == name }) else {
      return written.values.reduce(0, +) * WorkCost.looked
    }
    let rows = try rows(of: index.table, written: written)
    return rows * (isOverReferences(index) ? WorkCost.reference : WorkCost.indexed)
  }

  // MARK: The hop's result

  private func expected(_ written: [String: Double]) throws(SQLiteError) -> HopOutline.Result {
    var result = HopOutline.Result()
    let schema = hop.destinationSchema
    for table in schema.tables.map(\.name) + schema.joinTables.map(\.name) {
      result.rows += try rows(of: table, written: written)
    }
    for index in schema.indexes {
      let rows = try rows(of: index.table, written: written)
      result.entries += rows
      if isOverReferences(index) { result.references += rows }
    }
    // The size of the source, until the result is larger.
    result.bytes = max(try bytes(of: program.destination), try bytes(of: program.source.fileSchema))
    return result
  }

  /// Returns the rows that a destination table will have: those still to be written, or those that exist.
  private func rows(of table: String, written: [String: Double]) throws(SQLiteError) -> Double {
    let name = "\(SQLiteIdentifier.quoted(program.destination)).\(SQLiteIdentifier.quoted(table))"
    let found = try span(of: "SELECT min(rowid) FROM \(name) WHERE rowid >= ?1")
    let isWriting = program.steps.indices.contains(checkpoint.step) && !isIndexing
    return isWriting || found == 0 ? max(found, written[table] ?? 0) : found
  }

  /// Whether all rows are written.
  private var isIndexing: Bool {
    program.steps.dropFirst(checkpoint.step).allSatisfy { step in
      switch step {
      case .index, .trigger: true
      case .copy, .chunks, .policy, .validate, .update, .table: false
      }
    }
  }

  private func isOverReferences(_ index: SchemaIndex) -> Bool {
    guard let column = index.columns.first?.name,
      let table = hop.destinationSchema.table(named: index.table)
    else { return true }
    if case .attribute = table.columns.first(where: { $0.name == column })?.role { return false }
    return true
  }

  private func bytes(of schema: String) throws(SQLiteError) -> Double {
    guard !schema.isEmpty else { return 0 }
    let pages = try connection.integer("PRAGMA \(SQLiteIdentifier.quoted(schema)).page_count") ?? 0
    let size = try connection.integer("PRAGMA \(SQLiteIdentifier.quoted(schema)).page_size") ?? 4096
    return Double(pages) * Double(size)
  }

  // MARK: Keys

  /// Returns the number of keys from the first to the last; 0 if there are none. It reads only both ends of a tree.
  private func span(of nextKey: String) throws(SQLiteError) -> Double {
    guard let ends = try ends(of: nextKey) else { return 0 }
    return max(0, Double(ends.last) - Double(ends.first) + 1)
  }

  /// Returns the bytes of a row, from a few rows at equal distances; if fewer columns are written than read, their
  /// share.
  private func width(of nextKey: String, columns: Int?) throws(SQLiteError) -> Double {
    guard let ends = try ends(of: nextKey), let table = nextKey.firstRange(of: " FROM ") else { return 0 }
    let statement = try connection.prepare("SELECT * \(nextKey[table.lowerBound...]) LIMIT 1")
    let looks = 16
    var (rows, bytes) = (0.0, 0.0)
    for look in 0..<looks {
      let share = Double(look) / Double(looks)
      let key = Double(ends.first) + (Double(ends.last) - Double(ends.first)) * share
      try statement.bind(.integer(Int64(exactly: key.rounded(.down)) ?? ends.first), at: 1)
      if try statement.step() {
        rows += 1
        for column in 0..<statement.columnCount { bytes += Self.bytes(statement, column) }
      }
      statement.reset()
    }
    let share = columns.map { min(1, Double($0) / Double(max(1, statement.columnCount))) } ?? 1
    return rows > 0 ? bytes / rows * share : 0
  }

  private static func bytes(_ statement: Statement, _ column: Int32) -> Double {
    statement.withPlace(at: column) { place in
      switch place {
      case .null: 1
      case .integer: 4
      case .real: 9
      case .text(let bytes), .blob(let bytes): Double(bytes.count) + 1
      }
    }
  }

  /// Returns the first and the last key of the query `nextKey`; nil if there is none.
  func ends(of nextKey: String) throws(SQLiteError) -> (first: Int64, last: Int64)? {
    // `SourceTables.Driver.nextKey` for the other end.
    let lastKey = nextKey.replacing("SELECT min(", with: "SELECT max(", maxReplacements: 1)
    guard let first = try key(nextKey), let last = try key(lastKey) else { return nil }
    return (first, last)
  }

  private func key(_ sql: String) throws(SQLiteError) -> Int64? {
    let statement = try connection.prepare(sql)
    try statement.bind(.integer(.min), at: 1)
    guard try statement.step(), !statement.isNull(at: 0) else { return nil }
    return statement.integer(at: 0)
  }

  /// Returns the share of a step that is done after the keys up to `key`.
  static func share(_ key: Int64, of ends: (first: Int64, last: Int64)) -> Double {
    guard ends.last > ends.first else { return 1 }
    let (first, last) = (Double(ends.first), Double(ends.last))
    return min(1, max(0, (Double(key) - first + 1) / (last - first + 1)))
  }
}
