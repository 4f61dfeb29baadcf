// Compiles mapping models to SQL: the three passes of Core Data's migration as statements over ranges of source keys.
// Policies have steps of their own; all other work is the same SQL for a million objects as for one.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

/// The execution of an entity mapping.
package enum MappedExecution: Sendable, Hashable {
  /// By SQL statements alone.
  case sql
  /// By SQL statements that call an evaluator for some expressions: these and why.
  case instances(reasons: [String])
  /// By a policy.
  case policy(String)

  /// "sql", "instances" or "policy".
  package var word: String {
    switch self {
    case .sql: "sql"
    case .instances: "instances"
    case .policy: "policy"
    }
  }
}

/// Compiles a hop with mapping models.
package struct MappedHopCompiler {
  let hop: Hop
  let layout: AssociationLayout
  let source: SourceTables
  let destinationSchema: String
  let withIndexes: Bool
  /// Whether all references of a source column lead to objects of that entity.
  let isSound: (SourceReference) throws(SQLiteError) -> Bool
  /// The expressions that the program's statements evaluate on objects. The caller must register them on the connection
  /// and keep them while the statements run.
  package let fallbacks: ExpressionFallbacks
  let expressions: MappedExpressions
  let associations: AssociationSQL

  /// Prepares to compile `hop`; `layout` must match its current source, and `moment` is the value of `now()`.
  package init(
    hop: Hop, layout: AssociationLayout, source: SourceTables, destinationSchema: String, moment: Double,
    withIndexes: Bool,
    isSound: @escaping (SourceReference) throws(SQLiteError) -> Bool = { _ in false }
  ) {
    self.isSound = isSound
    self.hop = hop
    self.layout = layout
    self.source = source
    self.destinationSchema = destinationSchema
    self.withIndexes = withIndexes
    fallbacks = ExpressionFallbacks()
    expressions = MappedExpressions(
      hop: hop, source: source, moment: moment, fallbacks: fallbacks)
    associations = AssociationSQL(layout: layout, expressions: expressions, destinationSchema: destinationSchema)
  }

  /// Returns the execution of each entity mapping of a hop, by its name. Throws for a mapping that cannot run.
  package static func executions(hop: Hop) throws(HopdError) -> [String: MappedExecution] {
    let layout = try AssociationLayout(hop: hop, spans: [:])
    var result: [String: MappedExecution] = [:]
    for (index, mapping) in (hop.mapped?.entityMappings ?? []).enumerated() {
      if let policy = mapping.policy {
        result[mapping.name] = .policy(policy)
        continue
      }
      // It has fallbacks of its own, so that they belong to this mapping.
      let compiler = MappedHopCompiler(
        hop: hop, layout: layout, source: .schema("source"), destinationSchema: "destination", moment: 0,
        withIndexes: false)
      if let range = layout.range(at: index) { try compiler.tryOut(range) }
      let reasons = compiler.fallbacks.reasons.map { reason in
        "\(reason.property.map { "\(reason.entity).\($0)" } ?? reason.entity): \(reason.reason)"
      }
      result[mapping.name] = reasons.isEmpty ? .sql : .instances(reasons: reasons)
    }
    return result
  }

  /// Compiles the parts of one mapping.
  private func tryOut(_ range: AssociationRange) throws(HopdError) {
    let rows = try associations.rows(range)
    _ = try groupSteps(range)
    _ = try expandStep(range)
    _ = try attributeValues(range, row: rows.row)
    try RelationshipSetters.tryOut(range, compiler: self)
  }

  var scratch: MappedScratch { MappedScratch(deduplicated: layout.ranges.filter { $0.kind == .deduplicated }) }

  /// Returns the hop's program.
  package func compile() throws(HopdError) -> HopProgram {
    let setters = try RelationshipSetters(compiler: self)
    var steps: [HopProgram.Step] = try partSteps().map(HopProgram.Step.chunks)
    for range in layout.ranges { steps += try groupSteps(range) }
    for range in layout.ranges {
      if let step = try expandStep(range) { steps.append(.chunks(step)) }
    }
    steps += try creationSteps(setters)
    steps += try setters.steps()
    steps += sharedFileSteps()
    steps += policySteps(.performCustomValidation) + policySteps(.stage)
    steps.append(.validate)
    let ends = policySteps(.end)
    steps += ends
    // `end` may change objects like every hook, so the objects are validated once more after it.
    if !ends.isEmpty { steps.append(.validate) }
    steps += HopCompiler.closingSteps(
      hop: hop, destinationSchema: destinationSchema, updates: [], withIndexes: withIndexes)
    return HopProgram(
      source: source, destination: destinationSchema, preconditions: [], scratch: associations.scratchTables,
      steps: steps)
  }

  func qualified(_ table: String) -> String {
    SQLiteIdentifier.quoted(destinationSchema) + "." + SQLiteIdentifier.quoted(table)
  }

  func policySteps(_ pass: HopProgram.PolicyStep.Pass) -> [HopProgram.Step] {
    (hop.mapped?.entityMappings ?? []).indices.compactMap { policyStep($0, pass) }
  }

  func policyStep(_ index: Int, _ pass: HopProgram.PolicyStep.Pass) -> HopProgram.Step? {
    // A stage has one hook, after all objects are written; a policy has all others.
    guard let mapping = hop.mapped?.entityMappings[index], mapping.policy != nil, (hop.hook != nil) == (pass == .stage)
    else { return nil }
    return .policy(HopProgram.PolicyStep(mapping: index, subject: mapping.name, pass: pass))
  }

  // MARK: Groups

  /// Returns the steps that find the source object which represents each distinct value of the keys.
  private func groupSteps(_ range: AssociationRange) throws(HopdError) -> [HopProgram.Step] {
    let keys: [ExpressionNode]
    let keep: KeepRule
    switch range.mapping.grouping {
    case .distinctBy(let nodes, let rule) where range.kind == .grouped: (keys, keep) = (nodes, rule)
    case .deduplicate(let nodes, let rule) where range.kind == .deduplicated: (keys, keep) = (nodes, rule)
    default: return []
    }
    let row = MappedRow(alias: "s", entity: range.sourceEntity)
    let names = keys.indices.map { "\"k\($0)\"" }
    let list = names.joined(separator: ", ")
    var columns: [SQLExpression] = []
    for (index, node) in keys.enumerated() {
      columns.append("\(try expressions.key(node, row: row, range: range)) AS k\(index)")
    }
    var latest = SQLExpression.null
    if case .latest(let node) = keep { latest = try expressions.key(node, row: row, range: range) }
    let conditions = try associations.membership(range, row: row)
    let source = expressions.qualified(range.sourceTable)
    let table = AssociationLayout.groupTable(range.index)
    func members(_ keyCondition: String) -> SQLExpression {
      "(SELECT \(columns.joined(separator: ", ")), s.\"Z_PK\" AS \"key\", \(latest) AS \"latest\" FROM \(source) AS s"
        + " WHERE \(keyCondition)\(conditions.joined(separator: " AND "))) WHERE"
        + " \(names.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))"
    }
    let head = "INSERT INTO \(qualified(table)) (\(list), \"representative\", \"members\", \"latest\") SELECT \(list),"
    let index: SQLExpression =
      "CREATE UNIQUE INDEX \(qualified("\(table)_KEYS")) ON \(SQLiteIdentifier.quoted(table)) (\(list))"
    if case .latest = keep {
      // Rows are read by their keys, so the lowest of equal ones is kept.
      let sql: SQLExpression =
        "\(head) \"key\", 1, \"latest\" FROM \(members("s.\"Z_PK\" BETWEEN ?1 AND ?2 AND ")) ORDER BY \"key\""
        + " ON CONFLICT (\(list)) DO UPDATE SET \(Self.latestUpdate)"
      return [
        .update(HopProgram.StatementStep(subject: range.mapping.name, .schema, index)),
        .chunks(
          HopProgram.ChunkStep(
            subject: range.mapping.name, driver: self.source.driver(of: range.sourceTable),
            actions: [HopProgram.Action(.scratch, sql, isRanged: true)])),
      ]
    }
    let representative = keep == .lowest ? "min(\"key\")" : "max(\"key\")"
    // One sort of all keys and an index afterwards: many times faster than a look-up in a growing index for each
    // object. The cost is that an interruption restarts this step.
    return [
      .update(
        HopProgram.StatementStep(
          subject: range.mapping.name, .scratch,
          "\(head) \(representative), count(*), NULL FROM \(members("")) GROUP BY \(list) ORDER BY min(\"key\")")),
      .update(HopProgram.StatementStep(subject: range.mapping.name, .schema, index)),
    ]
  }

  /// Assignments that count a member and make the later of two objects represent their group.
  private static let latestUpdate: String = {
    let isLater = "(excluded.\"latest\" > \"latest\" OR (\"latest\" IS NULL AND excluded.\"latest\" IS NOT NULL))"
    return "\"members\" = \"members\" + 1, \"representative\" = CASE WHEN \(isLater) THEN excluded.\"representative\""
      + " ELSE \"representative\" END, \"latest\" = CASE WHEN \(isLater) THEN excluded.\"latest\" ELSE \"latest\" END"
  }()

  /// Returns the step that makes the pairs of source objects and members. Their objects' keys are above all ranges.
  private func expandStep(_ range: AssociationRange) throws(HopdError) -> HopProgram.ChunkStep? {
    guard case .expand(let node, _) = range.mapping.grouping, case .expanded(let member) = range.kind else {
      return nil
    }
    let row = MappedRow(alias: "s", entity: range.sourceEntity)
    let reached = try expressions.objects(node, row: row, prefix: "e", range: range, property: nil)
    var conditions: [SQLExpression] = ["s.\"Z_PK\" BETWEEN ?1 AND ?2"]
    conditions += try associations.membership(range, row: row) + reached.conditions
    let numbers = hop.sourceSchema.numbersOfSubtree(of: member).map(String.init).joined(separator: ", ")
    conditions.append("\(reached.alias).\"Z_ENT\" IN (\(numbers))")
    let own = qualified(AssociationLayout.expandedTable(range.index))
    // Lower keys belong to the ranges of all offsets and to earlier mappings of the table.
    let earlier = layout.ranges.filter {
      guard case .expanded = $0.kind else { return false }
      return $0.destinationTable == range.destinationTable && $0.index <= range.index
    }
    let bases =
      [String(layout.reservedKeys[range.destinationTable] ?? 0), "0"]
      + earlier.map {
        "coalesce((SELECT max(\"destination\") FROM \(qualified(AssociationLayout.expandedTable($0.index)))), 0)"
      }
    let source = expressions.qualified(range.sourceTable)
    let tables: [SQLExpression] = ["\(source) AS s"] + reached.tables
    let sql: SQLExpression =
      "INSERT INTO \(own) (\"destination\", \"source\", \"member\")"
      + " SELECT max(\(bases.joined(separator: ", "))) + row_number() OVER (ORDER BY \"source\", \"position\", "
      + "\"member\"),"
      + " \"source\", \"member\" FROM (SELECT \"source\", \"member\", min(\"position\") AS \"position\" FROM"
      + " (SELECT s.\"Z_PK\" AS \"source\", \(reached.alias).\"Z_PK\" AS \"member\","
      + " \(reached.order ?? .null) AS \"position\" FROM \(tables.joined(separator: " CROSS JOIN "))"
      + " WHERE \(conditions.joined(separator: " AND "))) GROUP BY 1, 2)"
    return HopProgram.ChunkStep(
      subject: range.mapping.name, driver: self.source.driver(of: range.sourceTable),
      actions: [HopProgram.Action(.scratch, sql, isRanged: true)])
  }

  // MARK: Pass 1

  /// Returns the steps that write objects with their attributes, and the to-ones that are known at once.
  private func creationSteps(_ setters: RelationshipSetters) throws(HopdError) -> [HopProgram.Step] {
    var steps: [HopProgram.Step] = []
    var done: Set<Int> = []
    let mappings = hop.mapped?.entityMappings ?? []
    for (index, mapping) in mappings.enumerated() {
      if mapping.policy != nil {
        if let step = policyStep(index, .createInstances) { steps.append(step) }
        continue
      }
      guard let range = layout.range(at: index), !done.contains(index) else { continue }
      // Rows of one source table with equal offsets are written together, in the order of keys; but not before an
      // earlier policy, which may fetch the objects written so far.
      let policy = mappings[index...].firstIndex { $0.policy != nil } ?? mappings.endIndex
      let together = layout.ranges.filter {
        $0.index < policy && !done.contains($0.index) && $0.kind == range.kind && $0.offset == range.offset
          && $0.destinationTable == range.destinationTable
          && $0.sourceTable == range.sourceTable && ($0.kind == .each || $0.index == range.index)
      }
      var actions: [HopProgram.Action] = []
      for member in together {
        done.insert(member.index)
        actions.append(try creation(member, rows: try associations.rows(member), setters: setters))
      }
      let driver = try associations.rows(range).driver
      steps.append(.chunks(HopProgram.ChunkStep(subject: range.mapping.name, driver: driver, actions: actions)))
    }
    return steps
  }

  private func creation(
    _ range: AssociationRange, rows: AssociationSQL.Rows, setters: RelationshipSetters
  ) throws(HopdError) -> HopProgram.Action {
    var columns = [
      Insertion.Column("Z_PK", rows.key), Insertion.Column("Z_ENT", rows.number),
      // A new object has been saved once; an object that a stage copies is not new.
      Insertion.Column(
        "Z_OPT", hop.hook == nil ? .integer(1) : .column("Z_OPT", of: rows.row.alias)),
    ]
    columns += try attributeValues(range, row: rows.row).map { Insertion.Column($0.column, $0.value) }
    columns += try setters.inlineValues(range, rows: rows).map { Insertion.Column($0.column, $0.value) }
    let isWhole = range.isArithmetic && range.mapping.filter == nil && range.offset == 0
    return HopProgram.Action(
      Insertion(
        table: range.destinationTable,
        columns: Insertion.inOrder(columns, of: hop.destinationSchema.table(of: range.destinationEntity)),
        tables: rows.tables, sourceTable: range.sourceTable, conditions: rows.conditions, numbers: [range.sourceNumber],
        whole: isWhole ? [range.destinationNumber: range.sourceNumber] : [:], rangeKey: rows.rangeKey,
        driver: rows.driver), schema: destinationSchema)
  }

  /// Returns the columns of the destination entity's attributes with their values, except NULL.
  ///
  /// Values from a policy's method are not included.
  func attributeValues(
    _ range: AssociationRange, row: MappedRow
  ) throws(HopdError) -> [(column: String, value: SQLExpression)] {
    guard let entity = hop.destination.entity(named: range.destinationEntity) else { return [] }
    var result: [(column: String, value: SQLExpression)] = []
    for (name, attribute) in hop.destination.allAttributes(of: entity).sorted(by: { $0.key < $1.key }) {
      guard let column = hop.destinationSchema.column(ofAttribute: name, in: entity.name) else { continue }
      let declarer = hop.destination.declaringEntity(of: name, in: entity)?.name
      if let derivation = hop.computed.first(where: { $0.entity == declarer && $0.attribute == name }) {
        if derivation.isCount { result.append((column, .integer(0))) }
        continue
      }
      let mapping = range.mapping.attributes.first { $0.name == name }
      switch mapping?.value {
      case .expression(.policyMethod)?, .grouped?, .matching?: continue
      case .expression(let node)?:
        let value = try expressions.value(node, row: row, storedAs: attribute, range: range)
        if !value.isNull { result.append((column, value)) }
      case nil:
        guard attribute.defaultValue != nil else { continue }
        guard let literal = SQLExpression.defaultValue(of: attribute) else {
          throw HopdError(
            .defaultUnsupported, "its default is an object that only the app can turn into a stored value",
            at: Place(hop: hop.title, entity: entity.name, property: name),
            hint: "set the attribute in the mapping model, or make it optional without a default")
        }
        result.append((column, literal))
      }
    }
    return result
  }
}

// Mapping models of one hop that divide an entity's objects by filters: each object belongs to one of them. Before any
// row is written, queries check whether two filters match the same objects (docs/decisions/0066).

extension HopdError.Code {
  /// Several mapping models of one hop match the same objects.
  package static let overlappingParts = HopdError.Code("mapping-overlap", exit: .dataError)
}

extension MappedHopCompiler {
  /// Returns the checks that no object matches two mapping models.
  func partSteps() throws(HopdError) -> [HopProgram.ChunkStep] {
    var steps: [HopProgram.ChunkStep] = []
    for (first, second) in hop.mapped?.partsToDistinguish ?? [] {
      guard let one = layout.range(at: first), let other = layout.range(at: second),
        let filter = one.mapping.filter, let otherFilter = other.mapping.filter
      else { continue }
      let row = MappedRow(alias: "s", entity: one.sourceEntity)
      let conditions: [SQLExpression] = [
        "s.\"Z_PK\" BETWEEN ?1 AND ?2", "s.\"Z_ENT\" = \(one.sourceNumber)",
        "(\(try expressions.condition(filter.predicate, row: row, range: one)))",
        "(\(try expressions.condition(otherFilter.predicate, row: row, range: other)))",
      ]
      steps.append(
        HopProgram.ChunkStep(
          subject: one.mapping.name, driver: source.driver(of: one.sourceTable),
          actions: [
            HopProgram.Action(
              .scratch,
              "SELECT min(s.\"Z_PK\"), max(s.\"Z_PK\"), count(*) FROM \(expressions.qualified(one.sourceTable)) AS s"
                + " WHERE \(conditions.joined(separator: " AND ")) HAVING count(*) > 0", isRanged: true,
              refusal: HopProgram.Action.Refusal(
                message: """
                  \(column: 2) of the objects inspected so far are taken by two mapping models of this hop, by \
                  \(one.mapping.name) and by \(other.mapping.name): the first has the key \(column: 0), the last \
                  the key \(column: 1)
                  """,
                entity: one.sourceEntity, property: nil,
                hint: "narrow one of the two filters, so that each object matches one of them",
                code: .overlappingParts))
          ]))
    }
    return steps
  }
}
