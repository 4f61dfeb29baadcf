// Compiles a hop's mapping to SQL. One INSERT … SELECT per root table copies all entities of that table at once:
// lightweight migration keeps Z_PK, so a row stays a row and only its columns are rearranged and its entity renumbered.
// All names are quoted by `SQLiteIdentifier`; all values of the source stay inside SQLite.

import Diagnostics
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

extension HopdError.Code {
  /// An added attribute has a default that only the app can convert to a stored value.
  package static let defaultUnsupported = HopdError.Code("default-unsupported", exit: .dataError)
  /// A relationship changes in a form for which no statement is known; the planner should have refused it.
  package static let relationshipUnsupported = HopdError.Code("relationship-unsupported", exit: .dataError)
  /// A to-one that becomes a to-many without inverse has several owners for one target.
  package static let relationshipNotUnique = HopdError.Code("relationship-not-unique", exit: .dataError)
}

/// Compiles one hop.
package struct HopCompiler {
  let hop: Hop
  let source: SourceTables
  let destinationSchema: String
  /// Intermediate stores get no indexes: only the next hop reads them (docs/PERFORMANCE.md).
  let withIndexes: Bool

  var preconditions: [HopProgram.Precondition] = []
  /// The updates that need all rows of the tables.
  var updates: [HopProgram.StatementStep] = []

  /// Returns the hop's statements.
  package static func compile(
    hop: Hop, source: SourceTables, destinationSchema: String, withIndexes: Bool
  ) throws(HopdError) -> HopProgram {
    var compiler = HopCompiler(
      hop: hop, source: source, destinationSchema: destinationSchema, withIndexes: withIndexes)
    return try compiler.compile()
  }

  private mutating func compile() throws(HopdError) -> HopProgram {
    var steps: [HopProgram.Step] = []
    for table in hop.destinationSchema.tables {
      steps += try copySteps(into: table).map(HopProgram.Step.copy)
    }
    for join in hop.destinationSchema.joinTables {
      steps += try joinSteps(into: join).map(HopProgram.Step.copy)
    }
    steps += Self.closingSteps(
      hop: hop, destinationSchema: destinationSchema, updates: updates, withIndexes: withIndexes)
    return HopProgram(
      source: source, destination: destinationSchema, preconditions: preconditions, steps: steps)
  }

  /// Returns the steps at the end of every hop, for rows written by SQL or by policies: updates, derived attributes
  /// and, in the last store, its indexes and triggers.
  static func closingSteps(
    hop: Hop, destinationSchema: String, updates: [HopProgram.StatementStep], withIndexes: Bool
  ) -> [HopProgram.Step] {
    var steps: [HopProgram.Step] = []
    var updates = updates
    // Derived attributes come last: they need the references that updates set.
    updates += hop.computed.compactMap { derivation in
      derivation.fillStatement(in: destinationSchema).map {
        HopProgram.StatementStep(
          subject: "\(derivation.entity).\(derivation.attribute)", .rows(of: derivation.table), text: $0)
      }
    }
    // The triggers of the last store keep these: what they count may have changed in any hop.
    for count in withIndexes ? hop.destinationSchema.filteredCounts : [] {
      updates += count.fillStatements(in: destinationSchema).map {
        HopProgram.StatementStep(
          subject: "\(count.entity).\(count.attribute)", .rows(of: count.table), text: $0)
      }
    }
    steps += updates.map(HopProgram.Step.update)
    if withIndexes {
      steps += hop.destinationSchema.indexes.map {
        .index(HopProgram.StatementStep(subject: $0.name, .schema, text: $0.createStatement(in: destinationSchema)))
      }
      for rTree in hop.destinationSchema.rTrees {
        steps += [rTree.createStatement(in: destinationSchema), rTree.fillStatement(in: destinationSchema)].map {
          .index(HopProgram.StatementStep(subject: rTree.name, .schema, text: $0))
        }
      }
      // Triggers come after everything else: they call functions of Core Data's process, and would count again.
      steps += hop.destinationSchema.triggers.map {
        .trigger(HopProgram.StatementStep(subject: $0.name, .schema, text: $0.createStatement(in: destinationSchema)))
      }
    }
    return steps
  }

  // MARK: Entity tables

  /// A destination entity with rows, and its source.
  struct EntityCopy {
    let destination: Entity
    let destinationNumber: Int64
    let source: Entity
    let sourceNumber: Int64
    let mapping: EntityMapping
  }

  /// Returns the copies into a destination table.
  func entityCopies(into table: EntityTable) -> [EntityCopy] {
    table.entities.compactMap { name in
      guard let mapping = hop.mapping.mapping(toDestination: name), let sourceName = mapping.sourceEntity,
        let destination = hop.destination.entity(named: name), let source = hop.source.entity(named: sourceName),
        let destinationNumber = hop.destinationSchema.number(of: name),
        let sourceNumber = hop.sourceSchema.number(of: sourceName)
      else { return nil }
      return EntityCopy(
        destination: destination, destinationNumber: destinationNumber, source: source, sourceNumber: sourceNumber,
        mapping: mapping)
    }
  }

  private mutating func copySteps(into table: EntityTable) throws(HopdError) -> [HopProgram.CopyStep] {
    let all = entityCopies(into: table)
    // Inference lets the entities of a destination tree come from one source tree only, so there is one group. A later
    // kind of mapping may have several; each is copied from its own table.
    var groups: [(source: EntityTable, entityCopies: [EntityCopy])] = []
    for entityCopy in all {
      guard let source = hop.sourceSchema.table(of: entityCopy.source.name) else { continue }
      if let index = groups.firstIndex(where: { $0.source.name == source.name }) {
        groups[index].entityCopies.append(entityCopy)
      } else {
        groups.append((source, [entityCopy]))
      }
    }
    var steps: [HopProgram.CopyStep] = []
    for group in groups {
      steps.append(try copyStep(into: table, from: group.source, entityCopies: group.entityCopies))
    }
    return steps
  }

  private mutating func copyStep(
    into table: EntityTable, from source: EntityTable, entityCopies: [EntityCopy]
  ) throws(HopdError) -> HopProgram.CopyStep {
    var columns: [Insertion.Column] = []
    for column in table.columns {
      guard let expression = try expression(for: column, in: table, entityCopies: entityCopies) else { continue }
      columns.append(Insertion.Column(column.name, expression))
    }
    // If every entity of the source table is copied, no filter is needed.
    let carried = Set(entityCopies.map(\.sourceNumber))
    let present = Set(source.entities.compactMap { hop.sourceSchema.number(of: $0) })
    // The destination entities with one source entity each, for code that follows objects to the destination.
    let whole = Dictionary(entityCopies.map { ($0.destinationNumber, $0.sourceNumber) }) { first, _ in first }
    return HopProgram.CopyStep(
      subject: table.rootEntity,
      rows: Insertion(
        table: table.name, columns: Insertion.inOrder(columns, of: table),
        tables: ["\(self.source.qualified(source.name)) AS s"],
        sourceTable: source.name,
        conditions: carried == present ? [] : ["s.\"Z_ENT\" IN (\(list(carried)))"], numbers: carried,
        whole: Set(entityCopies.map(\.destinationNumber)).count == entityCopies.count ? whole : [:],
        rangeKey: "s.\"Z_PK\"",
        driver: self.source.driver(of: source.name)), schema: destinationSchema)
  }

  /// Returns the expression for a column; nil if it stays NULL or is filled later.
  private mutating func expression(
    for column: SchemaColumn, in table: EntityTable, entityCopies: [EntityCopy]
  ) throws(HopdError) -> SQLExpression? {
    switch column.role {
    case .primaryKey: return .column("Z_PK")
    case .saveCount: return .column("Z_OPT")
    case .entityNumber:
      return renumbering(
        of: .column("Z_ENT"), Dictionary(entityCopies.map { ($0.sourceNumber, $0.destinationNumber) }) { a, _ in a })
    case .attribute(let entity, let name):
      return try attributeExpression(entity: entity, attribute: name, entityCopies: entityCopies)
    case .toOne(let entity, let relationship):
      return try toOneExpression(
        entity, relationship, column: column, table: table, entityCopies: entityCopies, part: .key)
    case .discriminator(let entity, let relationship):
      return try toOneExpression(
        entity, relationship, column: column, table: table, entityCopies: entityCopies, part: .number)
    case .orderKey(let entity, let relationship):
      return try toOneExpression(
        entity, relationship, column: column, table: table, entityCopies: entityCopies, part: .order)
    case .owner(let entity, let relationship):
      return try ownerExpression(entity, relationship, column: column, table: table, part: .key)
    case .ownerOrder(let entity, let relationship):
      return try ownerExpression(entity, relationship, column: column, table: table, part: .order)
    }
  }

  private func attributeExpression(
    entity: String, attribute: String, entityCopies: [EntityCopy]
  ) throws(HopdError) -> SQLExpression? {
    guard let declaring = hop.destination.entity(named: entity),
      let value = declaring.attributes.first(where: { $0.name == attribute })
    else { return nil }
    if let derivation = hop.computed.first(where: { $0.entity == entity && $0.attribute == attribute }) {
      return derivation.isCount ? zeroExpression(below: declaring, entityCopies: entityCopies) : nil
    }
    let subtree = Set(hop.destination.subtree(of: declaring).map(\.name))
    let concerned = entityCopies.filter { subtree.contains($0.destination.name) }
    var cases: [(number: Int64, expression: SQLExpression)] = []
    var isAddedSomewhere = concerned.isEmpty
    var isRewritten = false
    for entityCopy in concerned {
      // A subentity that declares the attribute again has its own default, and may require a value.
      let own = hop.destination.allAttributes(of: entityCopy.destination)[attribute] ?? value
      let found = try entityCopyExpression(own, entityCopy: entityCopy)
      cases.append((entityCopy.sourceNumber, found.expression))
      isAddedSomewhere = isAddedSomewhere || found.isAdded
      isRewritten = isRewritten || found.isRewritten
    }
    // Core Data writes an added attribute's default into every row of the table, including rows of sibling entities
    // (docs/formats/store-layout.md, "Apple's migration in place"); a copied column is copied for all rows for the same
    // reason.
    let others = entityCopies.filter { !subtree.contains($0.destination.name) }
    // The content of sibling rows has no form that could be rewritten, and siblings do not have the attribute; under a
    // uniqueness constraint the same value in their rows would violate it.
    guard !others.isEmpty, isRewritten || isUnique(entity: entity, attribute: attribute) else {
      return choose(cases, otherwise: isAddedSomewhere ? SQLExpression.defaultValue(of: value) : nil)
    }
    return choose(cases + others.map { ($0.sourceNumber, .null) }, otherwise: nil)
  }

  /// Returns the value of an attribute, as the copy's entity defines it, in the copy's rows; whether they are given it
  /// by the hop, and whether its form changes.
  private func entityCopyExpression(
    _ value: Attribute, entityCopy: EntityCopy
  ) throws(HopdError) -> (expression: SQLExpression, isAdded: Bool, isRewritten: Bool) {
    // The ancestor's column has no value for a subentity that makes the attribute transient.
    if value.isTransient { return (.null, false, false) }
    let standard = SQLExpression.defaultValue(of: value)
    let source = entityCopy.mapping.attributes.first { $0.destination == value.name }?.source
    let before = source.flatMap { hop.source.allAttributes(of: entityCopy.source)[$0] }
    let needsDefault = source == nil || !value.isOptional
    if needsDefault, case .archived(let className)? = value.defaultValue {
      guard before?.isOptional == false else {
        throw unwritableDefault(
          className, entity: hop.destination.declarer(of: value.name, in: entityCopy.destination), attribute: value.name
        )
      }
    }
    guard let source, let column = hop.sourceSchema.column(ofAttribute: source, in: entityCopy.source.name) else {
      return (standard ?? .null, true, false)
    }
    let plain = SQLExpression.column(column)
    let carried = before.map { Self.carried(plain, from: $0, to: value) } ?? plain
    // Optional → required with a default: existing nils get the default (docs/formats/migration-semantics.md, "What
    // can be inferred").
    if let standard, !value.isOptional, before?.isOptional == true {
      return ("coalesce(\(carried), \(standard))", false, carried != plain)
    }
    return (carried, false, carried != plain)
  }

  /// Returns a column's value in the form of its new definition: the content with or without the byte of external
  /// storage.
  static func carried(_ column: SQLExpression, from before: Attribute, to value: Attribute) -> SQLExpression {
    if before.hasExternalForm, value.type == .binary, !value.hasExternalForm {
      return ExternalDataForm.plainExpression(ofExternal: column)
    }
    if before.type == .binary, !before.hasExternalForm, value.hasExternalForm {
      return ExternalDataForm.inlineExpression(ofPlain: column)
    }
    return column
  }

  /// Returns the initial value of a count: 0 for objects that have it, NULL for their siblings, as Core Data's trigger
  /// for new objects leaves them (docs/formats/store-layout.md, "Derived attributes").
  private func zeroExpression(below declaring: Entity, entityCopies: [EntityCopy]) -> SQLExpression? {
    let subtree = Set(hop.destination.subtree(of: declaring).map(\.name))
    return choose(
      entityCopies.map { ($0.sourceNumber, subtree.contains($0.destination.name) ? .integer(0) : .null) },
      otherwise: nil)
  }

  /// Whether a uniqueness constraint of the destination includes the attribute's column.
  private func isUnique(entity: String, attribute: String) -> Bool {
    guard let column = hop.destinationSchema.column(ofAttribute: attribute, in: entity),
      let table = hop.destinationSchema.table(of: entity)
    else { return false }
    return hop.destinationSchema.isUnique(column, in: table)
  }

  /// Returns one expression if all entities have the same, otherwise a CASE over the source's entity number.
  func choose(_ cases: [(number: Int64, expression: SQLExpression)], otherwise: SQLExpression?) -> SQLExpression? {
    let distinct = Set(cases.map(\.expression))
    if distinct.isEmpty { return otherwise }
    if distinct.count == 1, let only = distinct.first { return only.isNull ? nil : only }
    let arms = cases.map { "WHEN \($0.number) THEN \($0.expression)" as SQLExpression }.joined(separator: " ")
    return "CASE \(SQLExpression.column("Z_ENT")) \(arms) ELSE \(otherwise ?? .null) END"
  }

  // MARK: Helpers

  func qualified(_ table: String, in schema: String) -> String {
    SQLiteIdentifier.quoted(schema) + "." + SQLiteIdentifier.quoted(table)
  }

  func list(_ numbers: some Sequence<Int64>) -> String { numbers.sorted().map(String.init).joined(separator: ", ") }

  /// Returns the expression itself if no number changes, otherwise a CASE. A number that is not in the map becomes
  /// NULL.
  func renumbering(of expression: SQLExpression, _ map: [Int64: Int64]) -> SQLExpression {
    if map.allSatisfy({ $0.key == $0.value }) { return expression }
    let arms = map.sorted { $0.key < $1.key }.map { "WHEN \($0.key) THEN \($0.value)" }.joined(separator: " ")
    return "CASE \(expression) \(arms) END"
  }

  private func unwritableDefault(_ className: String, entity: String, attribute: String) -> HopdError {
    HopdError(
      .defaultUnsupported,
      "its default is an object of class \(className), which only the app can turn into a stored value",
      at: Place(hop: hop.title, entity: entity, property: attribute),
      hint: "make the attribute optional without a default in this version and fill it in the app")
  }

  func refuse(_ message: String, _ entity: String, _ property: String) -> HopdError {
    HopdError(
      .relationshipUnsupported, message, at: Place(hop: hop.title, entity: entity, property: property),
      hint: "split the change into two versions, or use a mapping model")
  }
}

extension StoreSchema {
  /// Whether a constraint of the table, or a unique index on it, includes the column.
  func isUnique(_ column: String, in table: EntityTable) -> Bool {
    table.uniqueConstraints.contains { $0.contains(column) }
      || indexes.contains { index in
        index.isUnique && index.table == table.name && index.columns.contains { $0.name == column }
      }
  }
}
