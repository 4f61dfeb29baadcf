// The objects that an export takes, by their entities and a predicate.

import Diagnostics
import Expressions
import Glibc
import ManagedObjectModel
import PersistentStore
import SQLite

extension StoreSelection {
  /// Selects the objects of the named entities, subentities included; all objects without a name. With a predicate one
  /// entity is named, and its objects are those for which the predicate is true. With a history only objects that it
  /// names, and references to others stay.
  package init(
    entities names: [String], predicate: String?, history: HistorySelection? = nil, in reader: StoreReader,
    schema: StoreSchema
  ) throws {
    guard !names.isEmpty || history != nil else {
      self = .all
      return
    }
    let entities =
      try names.isEmpty
      ? schema.model.rootEntities
      : names.map { name throws(HopdError) in
        guard let entity = schema.model.entity(named: name) else {
          throw HopdError(
            .usage, "no such entity in the model: \(name.printableLine)",
            hint: NearestName.among(schema.model.entities.map(\.name), to: name).map { "pass --entity \($0)" }
              ?? "run `hopctl model schema` to list the entities")
        }
        return entity
      }
    guard let predicate, let entity = entities.first else {
      try self.init(of: entities, in: reader, schema: schema) { history?.condition(of: $0) }
      keepsReferences = history != nil
      return
    }
    let fallbacks = ExpressionFallbacks()
    let condition = try StoreSelection.condition(predicate, on: entity, reader, schema, fallbacks)
    try ExpressionFunctions.register(on: reader.connection)
    if !fallbacks.isEmpty {
      try fallbacks.register(on: reader.connection, schema: schema, tables: reader.tables)
    }
    defer { fallbacks.unregister() }
    do {
      try self.init(of: [entity], in: reader, schema: schema) { entity in
        history.map { "(\(condition)) AND \($0.condition(of: entity))" } ?? condition
      }
      keepsReferences = history != nil
    } catch let error as SQLiteError {
      throw reader.connection.takeFunctionFailure() ?? error
    }
  }

  private static func condition(
    _ text: String, on entity: Entity, _ reader: StoreReader, _ schema: StoreSchema, _ fallbacks: ExpressionFallbacks
  ) throws -> String {
    let predicate = ElementPaths(model: schema.model, source: entity.name)
      .joined(try ExpressionParser.predicate(text))
    let scope = ExpressionScope(model: schema.model, sourceEntity: entity.name, place: .sourceFilter)
    try ExpressionChecker(scope).check(predicate)
    let moment = Double(time(nil)) - Double(DateText.secondsFrom1970)
    let compiler = SQLExpressionCompiler(
      scope: scope, schema: schema, tables: reader.tables, moment: moment, fallbacks: fallbacks)
    do throws(NotCompilable) {
      return try compiler.filter(predicate, row: SQLRow(alias: "s", entity: entity.name)).text
    } catch {
      throw HopdError(.expressionUnsupported, "the predicate cannot be evaluated: \(error.reason)")
    }
  }
}
