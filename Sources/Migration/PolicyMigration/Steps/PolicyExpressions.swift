// Compiles expressions for the policies' part of the engine: the attribute expressions and filters of a mapping,
// predicates that policies send as text, and the associations of every mapping of the hop as parts of a SELECT.

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPlanning
import MigrationPolicy
import PersistentStore
import SQLite

/// A predicate that a policy sent.
enum PolicyPredicate {
  /// A condition on the row `s`.
  case sql(String)
  /// A test of each object, with the variables.
  case evaluated((PolicyObjectID, [String: PolicyObjectID]) throws -> Bool)
}

/// A fetch request without the keys of its variables: the part that can be compiled once.
struct PolicyFetchText: Hashable {
  let side: PolicyObjectID.Side
  let entity: String
  let predicate: String?
  let sort: [PolicySort]
  /// The entities of the variables by name without `$`.
  let variables: [String: String]

  /// Returns the table alias of a variable's row.
  static func alias(_ index: Int) -> String { "v\(index)" }
  /// The variables in order.
  var names: [String] { variables.keys.sorted() }
}

/// Compiles for the policies of one hop.
struct PolicyExpressions {
  private let hop: Hop
  private let layout: AssociationLayout
  private let mapped: MappedExpressions
  private let associations: AssociationSQL
  private let moment: Double

  init(_ context: PolicyStepContext) {
    hop = context.hop
    layout = context.layout
    moment = context.moment
    mapped = MappedExpressions(
      hop: context.hop, source: context.source, moment: context.moment,
      fallbacks: context.fallbacks)
    associations = AssociationSQL(
      layout: context.layout, expressions: mapped, destinationSchema: context.destinationSchema)
  }

  /// Returns the expressions of a range's mapping; the source row has the alias `s`.
  func forRange(_ range: AssociationRange) -> PolicyExpressionSQL {
    let row = SQLRow(alias: "s", entity: range.sourceEntity)
    let scope = ExpressionScope(
      model: hop.source, sourceEntity: range.sourceEntity, place: .attribute,
      entityMappings: Set(hop.mapped?.entityMappings.map(\.name) ?? []), hasPolicy: true)
    return PolicyExpressionSQL(
      value: { try mapped.value($0, row: row, storedAs: $1, range: range).text },
      argument: { node, property in
        guard case .value(let type) = ExpressionChecker(scope).type(of: node) else {
          throw HopdError(
            .mappingUnsupported, "an argument of a policy's method is neither $source, a property of it, nor a value",
            at: Place(hop: hop.title, entity: range.destinationEntity, property: property),
            hint: "pass $source and let the policy follow its relationships")
        }
        return (
          try mapped.value(node, row: row, storedAs: Attribute(name: property, type: type), range: range).text, type
        )
      },
      filter: { try mapped.condition($0, row: row, range: range).text })
  }

  /// Returns the predicate of a fetch request.
  func predicate(
    _ text: String, of fetch: PolicyFetchText, _ side: PolicySide, connection: Connection
  ) throws -> PolicyPredicate {
    let predicate = ElementPaths(model: side.model, source: fetch.entity, variables: fetch.variables)
      .joined(try ExpressionParser.predicate(text, at: Place(hop: hop.title, entity: fetch.entity)))
    let scope = scope(fetch, side)
    try ExpressionChecker(scope).check(predicate)
    let compiler = SQLExpressionCompiler(
      scope: scope, schema: side.schema, tables: side.tables, moment: moment)
    if let sql = try? compiler.filter(predicate, row: row(fetch)) { return .sql(sql.text) }
    // A predicate without an exact form in SQL is evaluated for each object.
    let evaluator = ExpressionEvaluator(
      scope: scope,
      source: StoreInstanceSource(
        reader: StoreReader(connection: connection, tables: side.tables), schema: side.schema), moment: moment)
    return .evaluated { id, variables in
      try evaluator.isTrue(
        predicate, on: InstanceID(entity: id.entity, key: id.key),
        variables: variables.mapValues { InstanceID(entity: $0.entity, key: $0.key) })
    }
  }

  /// Returns a term of ORDER BY.
  func order(_ sort: PolicySort, of fetch: PolicyFetchText, _ side: PolicySide) throws -> String {
    let place = Place(hop: hop.title, entity: fetch.entity)
    let node = ElementPaths(model: side.model, source: fetch.entity)
      .joined(try ExpressionParser.expression(sort.keyPath, at: place))
    guard case .keyPath = node else {
      throw HopdError(.expressionInvalid, "an order is a key path, as name or author.name", at: place)
    }
    let scope = scope(fetch, side)
    try ExpressionChecker(scope).checkKey(node)
    let compiler = SQLExpressionCompiler(scope: scope, schema: side.schema, tables: side.tables, moment: moment)
    return "\(try compiler.value(node, row: row(fetch)).text) \(sort.ascending ? "ASC" : "DESC")"
  }

  private func scope(_ fetch: PolicyFetchText, _ side: PolicySide) -> ExpressionScope {
    ExpressionScope(
      model: side.model, sourceEntity: fetch.entity, place: .sourceFilter, variables: fetch.variables)
  }

  private func row(_ fetch: PolicyFetchText) -> SQLRow {
    var row = SQLRow(alias: "s", entity: fetch.entity)
    for (index, name) in fetch.names.enumerated() {
      row.variables[name] = SQLRow(alias: PolicyFetchText.alias(index), entity: fetch.variables[name] ?? "")
    }
    return row
  }

  /// Returns the associations of a mapping; nil if it does not make objects from source objects.
  func relation(
    of name: String, source: PolicySide, destination: PolicySide
  ) throws -> (index: Int, relation: PolicyRelation)? {
    guard let mappings = hop.mapped?.entityMappings, let index = mappings.firstIndex(where: { $0.name == name }) else {
      return nil
    }
    if mappings[index].policy != nil {
      return (
        index,
        PolicyRelation(
          tables: "\(destination.qualified(AssociationLayout.associationTable)) AS a",
          conditions: ["a.mapping = \(index)"],
          source: .init(number: "a.source_entity", key: "a.source"),
          destination: .init(number: "a.destination_entity", key: "a.destination"), order: "a.rowid")
      )
    }
    guard let range = layout.range(at: index) else { return nil }
    let targets = try associations.targets(range, of: "s", prefix: "p")
    var conditions = targets.conditions + ["d.\"Z_PK\" = \(targets.key)", "d.\"Z_ENT\" = \(targets.number)"]
    // With this condition the source row is found by its key if the destination's is given.
    if range.isArithmetic { conditions.append("s.\"Z_PK\" = d.\"Z_PK\" - \(range.offset)") }
    return (
      index,
      PolicyRelation(
        tables: (["\(source.qualified(range.sourceTable)) AS s"] + targets.tables
          + ["\(destination.qualified(range.destinationTable)) AS d"]).joined(separator: ", ").text,
        conditions: conditions.map(\.text), source: .init(number: "s.\"Z_ENT\"", key: "s.\"Z_PK\""),
        destination: .init(number: "d.\"Z_ENT\"", key: "d.\"Z_PK\""), order: "s.\"Z_PK\", d.\"Z_PK\"")
    )
  }
}
