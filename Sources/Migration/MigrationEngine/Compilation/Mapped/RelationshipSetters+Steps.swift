// Pass 2 as steps: each setter reads its mapping's source rows by ranges, collects the pairs of a range in a temporary
// table, and writes them to the destination's storage.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

extension RelationshipSetters {
  typealias Action = HopProgram.Action

  /// Returns the steps of pass 2. A policy's step follows the setters of its mapping.
  func steps() throws(HopdError) -> [HopProgram.Step] {
    var steps: [HopProgram.Step] = []
    for setter in doubtful { steps.append(.chunks(try emptiness(of: setter))) }
    let matching = scratchIndexes()
    steps += matching.map { .update(HopProgram.StatementStep(subject: $0.subject, .schema, text: $0.create)) }
    // The ends written so far, by any setter: clearing is for objects that the other end has set.
    var written = Set(inline.map { setters[$0].end })
    func set(_ setter: RelationshipSetter) throws(HopdError) {
      let clears = mustClear(setter, written: written)
      if clears { steps += clearing(setter).map(HopProgram.Step.chunks) }
      if clears || !setter.sources.isEmpty { steps.append(.chunks(try setting(setter, clears: clears))) }
      written.insert(setter.end)
    }
    let apart = setters.enumerated().filter { !inline.contains($0.offset) }.map(\.element)
    for setter in apart where runsFirst(setter) { try set(setter) }
    for (index, mapping) in (hop.mapped?.entityMappings ?? []).enumerated() {
      for setter in apart where !runsFirst(setter) && setter.range.index == index { try set(setter) }
      if mapping.policy != nil, let step = compiler.policyStep(index, .createRelationships) { steps.append(step) }
    }
    steps += matching.map { .update(HopProgram.StatementStep(subject: $0.subject, .schema, text: $0.drop)) }
    steps += orderFilling().map(HopProgram.Step.update)
    return steps
  }

  /// Returns the checks for look-ups that must find no objects.
  private func emptiness(of setter: RelationshipSetter) throws(HopdError) -> HopProgram.ChunkStep {
    let rows = try associations.rows(setter.range)
    var actions: [Action] = []
    for (index, (source, refusal)) in setter.mustBeEmpty.enumerated() {
      let found = try objects(source, of: setter, row: rows.row, prefix: "u\(index)")
      let conditions = ["\(rows.rangeKey) BETWEEN ?1 AND ?2"] + rows.conditions + found.conditions
      actions.append(
        Action(
          .scratch,
          "SELECT \(rows.key), \(found.key) FROM \((rows.tables + found.tables).joined(separator: " CROSS JOIN "))"
            + " WHERE \(conditions.joined(separator: " AND ")) LIMIT 1", isRanged: true, refusal: refusal))
    }
    return HopProgram.ChunkStep(subject: setter.end, driver: rows.driver, actions: actions)
  }

  /// Whether the relationship may already have objects for the mapping's objects that must not stay.
  private func mustClear(_ setter: RelationshipSetter, written: Set<String>) -> Bool {
    // An object that stands for others has its own objects and those that refer to any of them.
    if setter.range.kind == .deduplicated, setter.relationship.isToMany, !setter.sources.isEmpty { return false }
    return setter.otherEnd.map(written.contains) ?? false || hop.mapped?.policies.isEmpty == false
  }

  // MARK: Temporary indexes

  /// Returns the indexes of the destination that setters need: on attributes by which objects are matched, and on join
  /// tables whose pairs are cleared from their second end.
  private func scratchIndexes() -> [(subject: String, create: String, drop: String)] {
    var seen: Set<String> = []
    var result: [(subject: String, create: String, drop: String)] = []
    let schema = SQLiteIdentifier.quoted(compiler.destinationSchema)
    func add(_ subject: String, _ table: String, _ column: String) {
      guard seen.insert("\(table) \(column)").inserted else { return }
      let name = "\(schema).\"HOPD_INDEX_\(result.count)\""
      result.append(
        (
          subject,
          "CREATE INDEX \(name) ON \(SQLiteIdentifier.quoted(table)) (\(SQLiteIdentifier.quoted(column)))",
          "DROP INDEX \(name)"
        ))
    }
    for (position, setter) in setters.enumerated() {
      for case .matching(let entity, let attribute, _) in setter.sources {
        guard let table = hop.destinationSchema.table(of: entity),
          let column = hop.destinationSchema.column(ofAttribute: attribute, in: entity)
        else { continue }
        add("\(entity).\(attribute)", table.name, column)
      }
      let before = Set(setters.prefix(position).map(\.end)).union(inline.map { setters[$0].end })
      if case .join(let join) = setter.storage, !join.isOwner || join.join.isOwnInverse,
        mustClear(setter, written: before)
      {
        add(setter.end, join.table, join.join.targetColumn)
      }
    }
    return result
  }

  // MARK: Clearing

  /// Returns the steps that remove what the other end has set for the objects of the mapping.
  private func clearing(_ setter: RelationshipSetter) -> [HopProgram.ChunkStep] {
    switch setter.storage {
    case .toOne(let own, let other):
      // Objects that stay keep their position in an order: this is decided row by row when the objects are set.
      guard let other else { return [] }
      return [
        clear(own, owned: "t.\"Z_PK\"", setter: setter),
        clear(other, owned: .column(other.key, of: "t"), setter: setter),
      ]
    case .members(let columns), .owned(let columns):
      return [clear(columns, owned: .column(columns.key, of: "t"), setter: setter)]
    case .join: return []
    }
  }

  private func clear(
    _ columns: ToOneColumns, owned: SQLExpression, setter: RelationshipSetter
  ) -> HopProgram.ChunkStep {
    let name = compiler.qualified(columns.table)
    return HopProgram.ChunkStep(
      subject: setter.end, driver: SourceTables.Driver(table: name, key: "\"Z_PK\""),
      actions: [
        Action(
          .rows(of: columns.table),
          "UPDATE \(name) AS t SET \(cleared(columns.names)) WHERE t.\"Z_PK\" BETWEEN ?1 AND ?2"
            + " AND t.\(SQLiteIdentifier.quoted(columns.key)) IS NOT NULL AND "
            + "\(associations.isOwned(owned, by: setter.range))",
          isRanged: true)
      ])
  }

  /// Returns the assignments that clear a to-one.
  private func cleared(_ columns: [String]) -> String {
    columns.map { "\(SQLiteIdentifier.quoted($0)) = NULL" }.joined(separator: ", ")
  }

  // MARK: Setting

  private func setting(_ setter: RelationshipSetter, clears: Bool) throws(HopdError) -> HopProgram.ChunkStep {
    let rows = try associations.rows(setter.range)
    if !clears, let copy = plainPairs(setter) {
      return HopProgram.ChunkStep(
        subject: setter.end, driver: copy.driver, actions: [Action(copy, schema: compiler.destinationSchema)])
    }
    if !clears, let actions = try joining(setter, rows: rows) {
      return HopProgram.ChunkStep(subject: setter.end, driver: rows.driver, actions: actions)
    }
    var actions = [Action(.scratch, "DELETE FROM \(MappedScratch.pairs)")]
    if clears {
      let conditions = ["\(rows.rangeKey) BETWEEN ?1 AND ?2"] + rows.conditions
      actions += [
        Action(.scratch, "DELETE FROM \(MappedScratch.owners)"),
        Action(
          .scratch,
          "INSERT OR IGNORE INTO \(MappedScratch.owners) SELECT \(rows.key) FROM"
            + " \(rows.tables.joined(separator: " CROSS JOIN ")) WHERE \(conditions.joined(separator: " AND "))",
          isRanged: true),
      ]
    }
    for (index, source) in setter.sources.enumerated() {
      let (found, tables, conditions) = try pairs(source, of: setter, rows: rows, prefix: "p\(index)")
      actions.append(
        Action(
          .scratch,
          "INSERT OR IGNORE INTO \(MappedScratch.pairs) (owner, target, owner_entity, target_entity, position,"
            + " inverse_position) SELECT \(rows.key), \(found.key), \(rows.number), \(found.number),"
            + " \(found.order ?? .null), \(found.inverseOrder ?? .null) FROM "
            + "\(tables.joined(separator: " CROSS JOIN "))"
            + " WHERE \((["\(rows.rangeKey) BETWEEN ?1 AND ?2"] + conditions).joined(separator: " AND ")) ORDER BY "
            + "1, 5, 2",
          isRanged: true))
    }
    actions += writing(setter, clears: clears)
    return HopProgram.ChunkStep(subject: setter.end, driver: rows.driver, actions: actions, usesPairs: true)
  }

  /// Returns the pairs of one source for the rows of a range, as tables and conditions.
  func pairs(
    _ source: SetterSource, of setter: RelationshipSetter, rows: AssociationSQL.Rows, prefix: String
  ) throws(HopdError) -> (found: SetterObjects, tables: [SQLExpression], conditions: [SQLExpression]) {
    let found = try objects(source, of: setter, row: rows.row, prefix: prefix)
    let tables = rows.tables + found.tables
    var conditions = rows.conditions + found.conditions
    if case .policy = setter.range.kind { conditions.append(owners(of: setter, number: rows.number)) }
    if case .lookup(let target, _) = source {
      // A policy may make and delete any objects.
      if target.kind == .policy {
        let numbers = hop.destinationSchema.numbersOfSubtree(of: setter.relationship.destinationEntityName)
        conditions.append("\(found.number) IN (\(numbers.map(String.init).joined(separator: ", ")))")
      }
      if hop.mapped?.policies.isEmpty == false,
        let table = hop.destinationSchema.table(
          of: setter.relationship.destinationEntityName)
      {
        conditions.append(
          "EXISTS (SELECT 1 FROM \(compiler.qualified(table.name)) AS z WHERE z.\"Z_PK\" = \(found.key))")
      }
    }
    return (found, tables, conditions)
  }

  /// Returns the statements that write a join table's pairs directly, if none of them exists yet; nil for other
  /// storage, or if the pairs must be numbered.
  private func joining(
    _ setter: RelationshipSetter, rows: AssociationSQL.Rows
  ) throws(HopdError) -> [Action]? {
    guard case .join(let join) = setter.storage, join.order == nil, !join.join.isOwnInverse else { return nil }
    var actions: [Action] = []
    for (index, source) in setter.sources.enumerated() {
      let (found, tables, conditions) = try pairs(source, of: setter, rows: rows, prefix: "p\(index)")
      var columns = zip([join.owner, join.target], [rows.key, found.key]).map {
        Insertion.Column($0, $1)
      }
      if let inverseOrder = join.inverseOrder {
        columns.append(Insertion.Column(inverseOrder, found.inverseOrder ?? .null))
      }
      actions.append(
        Action(
          Insertion(
            table: join.table, columns: columns, tables: tables, sourceTable: setter.range.sourceTable,
            conditions: conditions,
            numbers: [setter.range.sourceNumber], rangeKey: rows.rangeKey, driver: rows.driver,
            mayRepeat: !givesPairsOnce(source, of: setter),
            suffix: " ON CONFLICT (\(primaryKey(join))) DO NOTHING"), schema: compiler.destinationSchema))
    }
    return actions
  }

  /// Returns a source join table as an insertion if each of its pairs leads from an object of the mapping to one of the
  /// other mapping, so that no object must be looked up.
  private func plainPairs(_ setter: RelationshipSetter) -> Insertion? {
    guard setter.sources.count == 1,
      case .join(let join) = setter.storage, join.order == nil, join.inverseOrder == nil,
      case .lookup(let target, let node)? = setter.sources.first,
      setter.range.isArithmetic, target.isArithmetic, setter.range.mapping.filter == nil, target.mapping.filter == nil,
      hop.mapped?.policies.isEmpty == true,
      let (_, relationship) = expressions.singleRelationship(node, of: setter.range.sourceEntity),
      case .join(let pairs)? = hop.sourceSchema.storage(
        ofRelationship: relationship.name, in: setter.range.sourceEntity),
      pairs.join.isOwnInverse == join.join.isOwnInverse
    else { return nil }
    for (column, range) in [(pairs.owner, setter.range), (pairs.target, target)] {
      let reference = SourceReference(
        table: pairs.table, column: column, targetTable: range.sourceTable, targetNumber: range.sourceNumber)
      // A faulty source is reported when its rows are read.
      guard (try? compiler.isSound(reference)) == true else { return nil }
    }
    let keys = [pairs.owner, pairs.target].map { SQLExpression.column($0) }
    return Insertion(
      table: join.table,
      columns: [
        Insertion.Column(join.owner, associations.sum(keys[0], setter.range.offset)),
        Insertion.Column(join.target, associations.sum(keys[1], target.offset)),
      ], tables: ["\(expressions.qualified(pairs.table)) AS s"], sourceTable: pairs.table,
      conditions: keys.map { "\($0) IS NOT NULL" }, rangeKey: "s.rowid",
      driver: expressions.source.driver(ofJoin: pairs.table))
  }

  /// Whether each pair occurs once. A relationship of the source has each pair once; longer paths may reach an object
  /// again, and merged objects may have common targets.
  private func givesPairsOnce(_ source: SetterSource, of setter: RelationshipSetter) -> Bool {
    guard case .lookup(let target, let node) = source, setter.range.isArithmetic, target.isArithmetic else {
      return false
    }
    if case .variable("source") = node { return true }
    return expressions.singleRelationship(node, of: setter.range.sourceEntity) != nil
  }

  /// Returns the condition for the objects of a policy that have the relationship.
  func owners(of setter: RelationshipSetter, number: SQLExpression) -> SQLExpression {
    let numbers = hop.destinationSchema.numbersOfSubtree(of: setter.declaring.name).map(String.init)
    return "\(number) IN (\(numbers.joined(separator: ", ")))"
  }

  private func writing(_ setter: RelationshipSetter, clears: Bool) -> [Action] {
    switch setter.storage {
    case .toOne(let own, let other): return writing(setter, own, other: other, clears: clears)
    case .members(let columns), .owned(let columns):
      return refuseContested(setter, column: columns.key, table: columns.table)
        + (columns.orderKey == nil ? [] : [numbering])
        + [
          update(
            columns.table, by: "target",
            [(columns.key, "owner"), (columns.discriminator, "owner_entity"), (columns.orderKey, "number")])
        ]
    case .join(let join): return writing(join, clears: clears)
    }
  }

  /// Sets the columns of a to-one, and those of its inverse if that is a to-one too.
  private func writing(
    _ setter: RelationshipSetter, _ own: ToOneColumns, other: ToOneColumns?, clears: Bool
  ) -> [Action] {
    var actions = [refuseSeveral(setter)]
    let table = compiler.qualified(own.table)
    if let other {
      actions += refuseContested(setter, column: other.key, table: other.table)
      // An object that had the target before loses it.
      let key = SQLiteIdentifier.quoted(other.key)
      let held = [own.key, own.discriminator].compactMap { $0 }
      actions.append(
        Action(
          .rows(of: own.table),
          "UPDATE \(table) SET \(cleared(held)) WHERE \"Z_PK\" IN (SELECT t.\(key) FROM \(MappedScratch.pairs) AS p"
            + " CROSS JOIN \(compiler.qualified(other.table)) AS t WHERE t.\"Z_PK\" = p.target AND t.\(key) <> p.owner)"
        ))
      actions.append(
        update(other.table, by: "target", [(other.key, "owner"), (other.discriminator, "owner_entity")]))
    } else if clears {
      let key = SQLiteIdentifier.quoted(own.key)
      actions.append(
        Action(
          .rows(of: own.table),
          "UPDATE \(table) AS t SET \(cleared(own.names)) WHERE t.\"Z_PK\" IN"
            + " (SELECT owner FROM \(MappedScratch.owners)) AND t.\(key) IS NOT NULL AND t.\(key) IS NOT"
            + " (SELECT p.target FROM \(MappedScratch.pairs) AS p WHERE p.owner = t.\"Z_PK\")"))
    }
    // A pair that exists keeps its position.
    actions.append(
      update(
        own.table, by: "owner",
        [(own.key, "target"), (own.discriminator, "target_entity"), (own.orderKey, "inverse_position")],
        where: " AND t.\(SQLiteIdentifier.quoted(own.key)) IS NULL"))
    return actions
  }

  /// Adds pairs to a join table.
  private func writing(_ join: JoinColumns, clears: Bool) -> [Action] {
    let pairs = [(join.owner, "owner"), (join.target, "target")]
    let orders = [(join.order, "number"), (join.inverseOrder, "inverse_position")].compactMap { column, value in
      column.map { ($0, value) }
    }
    let columns = (pairs + orders).map { SQLiteIdentifier.quoted($0.0) }
    // A pair that the other end has set keeps its position there.
    let resolution =
      join.order.map { "DO UPDATE SET \(SQLiteIdentifier.quoted($0)) = excluded.\(SQLiteIdentifier.quoted($0))" }
      ?? "DO NOTHING"
    let table = compiler.qualified(join.table)
    let owner = SQLiteIdentifier.quoted(join.owner)
    let target = SQLiteIdentifier.quoted(join.target)
    func clearing(_ owner: String, _ target: String) -> Action {
      Action(
        .rows(of: join.table),
        "DELETE FROM \(table) AS t WHERE t.\(owner) IN (SELECT owner FROM"
          + " \(MappedScratch.owners)) AND NOT EXISTS (SELECT 1 FROM \(MappedScratch.pairs) AS p"
          + " WHERE p.owner = t.\(owner) AND p.target = t.\(target))")
    }
    func adding(_ values: [String]) -> Action {
      Action(
        .rows(of: join.table),
        "INSERT INTO \(table) (\(columns.joined(separator: ", ")))"
          + " SELECT \(values.joined(separator: ", ")) FROM \(MappedScratch.pairs)"
          + " WHERE true ORDER BY owner, target ON CONFLICT (\(primaryKey(join))) \(resolution)", isCounted: true)
    }
    let added = adding((pairs + orders).map(\.1))
    let cleared = clears ? [clearing(owner, target)] : []
    guard !join.join.isOwnInverse else {
      // Each pair is in the table in both directions.
      return cleared + (clears ? [clearing(target, owner)] : []) + [added, adding(["target", "owner"])]
    }
    return cleared + (join.order == nil ? [] : [numbering]) + [added]
  }

  /// The columns of a join table's primary key.
  private func primaryKey(_ columns: JoinColumns) -> String {
    [columns.join.ownerColumn, columns.join.targetColumn].map(SQLiteIdentifier.quoted).joined(separator: ", ")
  }

  /// Numbers the pairs of an ordered relationship; by key if the source has no order.
  private var numbering: Action {
    let keys = OrderKey.numbering(partition: "owner", order: "position, target")
    return Action(
      .scratch,
      "UPDATE \(MappedScratch.pairs) SET number = n.k FROM (SELECT rowid AS r, \(keys) AS k"
        + " FROM \(MappedScratch.pairs)) AS n WHERE n.r = HOPD_PAIRS.rowid")
  }

  /// Returns an update of columns in the rows that are one end of a pair.
  private func update(
    _ table: String, by end: String, _ columns: [(column: String?, value: String)], where condition: String = ""
  ) -> Action {
    let present = columns.compactMap { column, value in column.map { (SQLiteIdentifier.quoted($0), "p.\(value)") } }
    let names = present.map(\.0).joined(separator: ", ")
    let values = present.map(\.1).joined(separator: ", ")
    let target = present.count == 1 ? names : "(\(names))"
    return Action(
      .rows(of: table),
      "UPDATE \(compiler.qualified(table)) AS t SET \(target) = (SELECT \(values) FROM \(MappedScratch.pairs) AS p"
        + " WHERE p.\(end) = t.\"Z_PK\") WHERE t.\"Z_PK\" IN (SELECT \(end) FROM \(MappedScratch.pairs))\(condition)")
  }
}
