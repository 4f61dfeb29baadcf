// SQL and evaluator must agree, row by row, on values, conditions, objects, storage forms, and on which rows fail.
// Random shapes over random stores; a failure names the seed.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import PersistentStore
import SQLite
import SeededRandom
import Testing

@testable import Expressions

#if canImport(Glibc)
  import Glibc
#endif

@Suite(.blocking) struct CompilerAgreementTests {
  private static let moment = 700_000_000.125
  /// HOPD_SEEDS=50 tests more worlds, as in ConformanceTests.
  private static let worlds = getenv("HOPD_SEEDS").flatMap { Int(String(cString: $0)) } ?? 4
  private static let shapes = 200

  /// The result for one row.
  private enum Outcome: Equatable, CustomStringConvertible {
    case value(ExpressionValue)
    case failure(String, row: Int64?)

    var description: String {
      switch self {
      case .value(let value): "\(value)"
      case .failure(let code, let row): "\(code) in row \(row ?? -1)"
      }
    }

    /// Two parts of one expression may fail: either error may come first.
    func agrees(_ other: Outcome) -> Bool {
      switch (self, other) {
      case (.failure(_, let row), .failure(_, let otherRow)): row == otherRow
      default: self == other
      }
    }
  }

  private static func value(_ stored: SQLiteValue) -> ExpressionValue {
    switch stored {
    case .null: .null
    case .integer(let value): .integer(value)
    case .real(let value): .double(value)
    case .text(let text): .string(text)
    case .blob(let bytes): .data(bytes)
    }
  }

  private static func outcome(_ body: () throws -> SQLiteValue) throws -> Outcome {
    do {
      return .value(value(try body()))
    } catch let error as HopdError {
      guard error.code.isRowError else { throw error }
      return .failure(error.code.name, row: error.place.row)
    }
  }

  private static func query(_ world: ExpressionWorld, _ sql: String, _ object: InstanceID) throws -> Outcome {
    try outcome {
      do {
        let table = try #require(world.schema.table(of: object.entity))
        return try world.connection.value(
          "SELECT \(sql) FROM store.\(SQLiteIdentifier.quoted(table.name)) AS s WHERE s.Z_PK = \(object.key)") ?? .null
      } catch {
        throw world.connection.takeFunctionFailure() ?? error
      }
    }
  }

  private func scope(_ world: ExpressionWorld, _ entity: String) -> ExpressionScope {
    ExpressionScope(model: world.model, sourceEntity: entity, place: .attribute)
  }

  private func compiler(
    _ world: ExpressionWorld, _ entity: String, _ fallbacks: ExpressionFallbacks? = nil
  ) -> SQLExpressionCompiler {
    SQLExpressionCompiler(
      scope: scope(world, entity), schema: world.schema, tables: .schema("store"), moment: Self.moment,
      fallbacks: fallbacks)
  }

  private func evaluator(_ world: ExpressionWorld, _ entity: String) -> ExpressionEvaluator {
    ExpressionEvaluator(scope: scope(world, entity), source: world.source, moment: Self.moment)
  }

  @Test(arguments: 0..<worlds) func valuesAgree(_ number: Int) throws {
    let seed = UInt64(1000 + number)
    let world = try ExpressionWorld(seed: seed)
    var nodes = RandomNodes(seed: seed, model: world.model)
    var compiled = 0
    for index in 0..<Self.shapes {
      let entity = nodes.dice.pick(["Item", "Special", "Person", "Tag"])
      let base = RandomNodes.Base(node: .variable("source"), entity: entity)
      let node: ExpressionNode =
        switch nodes.dice.below(4) {
        case 0: nodes.text(base, 3)
        case 1: nodes.date(base, 2)
        default: nodes.number(base, 3)
        }
      let row = SQLRow(alias: "s", entity: entity)
      let fallbacks = ExpressionFallbacks()
      let sql: SQLExpression
      do {
        sql = try compiler(world, entity).value(node, row: row)
        compiled += 1
      } catch {
        // An expression without a form in SQL goes through the function.
        sql = try compiler(world, entity, fallbacks).value(node, row: row)
        try fallbacks.register(on: world.connection, schema: world.schema, tables: .schema("store"))
      }
      for object in world.objects[entity] ?? [] {
        let expected = try Self.outcome {
          try StorageForm.plain(evaluator(world, entity).value(node, on: object))
        }
        let found = try Self.query(world, sql.text, object)
        try #require(
          expected.agrees(found), "seed \(seed), shape \(index), \(object): \(expected) and \(found)\n\(node)\n\(sql)")
      }
    }
    #expect(compiled > Self.shapes * 6 / 10, "only \(compiled) of \(Self.shapes) were compiled, seed \(seed)")
  }

  @Test(arguments: 0..<worlds) func conditionsAgree(_ number: Int) throws {
    let seed = UInt64(2000 + number)
    let world = try ExpressionWorld(seed: seed)
    var nodes = RandomNodes(seed: seed, model: world.model)
    var compiled = 0
    var (holding, failing) = (0, 0)
    for index in 0..<Self.shapes {
      let entity = nodes.dice.pick(["Item", "Special", "Person", "Tag"])
      let predicate = nodes.predicate(RandomNodes.Base(node: .selfObject, entity: entity), 3)
      let row = SQLRow(alias: "s", entity: entity)
      let fallbacks = ExpressionFallbacks()
      let (sql, filter): (SQLExpression, SQLExpression)
      do {
        let plain = compiler(world, entity)
        (sql, filter) = (try plain.condition(predicate, row: row), try plain.filter(predicate, row: row))
        compiled += 1
      } catch {
        let other = compiler(world, entity, fallbacks)
        (sql, filter) = (try other.condition(predicate, row: row), try other.filter(predicate, row: row))
        try fallbacks.register(on: world.connection, schema: world.schema, tables: .schema("store"))
      }
      for object in world.objects[entity] ?? [] {
        let expected = try Self.outcome {
          .integer(try evaluator(world, entity).isTrue(predicate, on: object) ? 1 : 0)
        }
        if expected == .value(.integer(1)) { holding += 1 }
        if case .failure = expected { failing += 1 }
        for (text, kind) in [(sql.text, "condition"), ("coalesce(\(filter.text), 0)", "filter")] {
          let found = try Self.query(world, text, object)
          try #require(
            expected.agrees(found),
            "seed \(seed), shape \(index), \(object), \(kind): \(expected) and \(found)\n\(predicate)\n\(text)")
        }
      }
    }
    #expect(compiled > Self.shapes * 6 / 10, "only \(compiled) of \(Self.shapes) were compiled, seed \(seed)")
    #expect(holding > 200 && failing > 10, "seed \(seed): \(holding) hold, \(failing) fail")
  }

  /// A to-one without an object counts under a modifier as it does in a SUBQUERY, on instances and in statements.
  @Test(arguments: 0..<worlds) func modifiersSeeToOnesWithoutObjects(_ number: Int) throws {
    let world = try ExpressionWorld(seed: UInt64(6000 + number))
    var holding = 0
    for (modified, plain) in [
      ("ANY marked.owner == nil", "SUBQUERY(marked, $x, $x.owner == nil).@count > 0"),
      ("ALL marked.owner != nil", "SUBQUERY(marked, $x, $x.owner == nil).@count == 0"),
      ("NONE marked.owner == nil", "SUBQUERY(marked, $x, $x.owner == nil).@count == 0"),
      ("ANY marked.next.owner == nil", "SUBQUERY(marked, $x, $x.next.owner == nil).@count > 0"),
    ] {
      let predicate = try ExpressionParser.predicate(modified, at: Place())
      let wanted = try ExpressionParser.predicate(plain, at: Place())
      let fallbacks = ExpressionFallbacks()
      let sql = try compiler(world, "Tag", fallbacks).condition(predicate, row: SQLRow(alias: "s", entity: "Tag"))
      try fallbacks.register(on: world.connection, schema: world.schema, tables: .schema("store"))
      for object in world.objects["Tag"] ?? [] {
        let expected = try evaluator(world, "Tag").isTrue(wanted, on: object)
        holding += expected ? 1 : 0
        #expect(try evaluator(world, "Tag").isTrue(predicate, on: object) == expected, "\(modified), \(object)")
        #expect(try Self.query(world, sql.text, object) == .value(.integer(expected ? 1 : 0)), "\(modified), \(object)")
      }
    }
    #expect(holding > 0)
  }

  @Test(arguments: 0..<worlds) func objectsAgree(_ number: Int) throws {
    let seed = UInt64(3000 + number)
    let world = try ExpressionWorld(seed: seed)
    var nodes = RandomNodes(seed: seed, model: world.model)
    var (compiled, reached) = (0, 0)
    for index in 0..<Self.shapes {
      let entity = nodes.dice.pick(["Item", "Special", "Person", "Tag"])
      guard let members = nodes.many(RandomNodes.Base(node: .variable("source"), entity: entity), 2) else { continue }
      let node: ExpressionNode =
        switch nodes.dice.below(5) {
        case 0: .element(members.node, nodes.dice.pick([.first, .last, .position(1)]))
        case 1: .variable("source")
        default: members.node
        }
      let row = SQLRow(alias: "s", entity: entity)
      let fallbacks = ExpressionFallbacks()
      let objects: SQLObjects
      do {
        objects = try compiler(world, entity).objects(node, row: row)
        compiled += 1
      } catch {
        objects = try compiler(world, entity, fallbacks).objects(node, row: row)
        try fallbacks.register(on: world.connection, schema: world.schema, tables: .schema("store"))
      }
      let table = try #require(world.schema.table(of: entity))
      for object in world.objects[entity] ?? [] {
        var seen: Set<Int64> = []
        let sql =
          "SELECT \(objects.alias).Z_PK FROM store.\(SQLiteIdentifier.quoted(table.name)) AS s, \(objects.from.text)"
          + " WHERE s.Z_PK = \(object.key) AND (\(objects.condition.text)) ORDER BY \(objects.order.text)"
        // Another test covers rows that fail.
        guard let expected = try? evaluator(world, entity).objects(node, on: object).map(\.key) else { continue }
        let rows = try world.connection.rows(sql) { $0.integer(at: 0) }
        let found = rows.filter { seen.insert($0).inserted }
        reached += found.count
        try #require(found == expected, "seed \(seed), shape \(index), \(object)\n\(node)\n\(sql)")
        #expect(objects.mayRepeat || rows.count == found.count, "seed \(seed), shape \(index): repeats\n\(sql)")
        #expect(!objects.isToOne || rows.count <= 1, "seed \(seed), shape \(index): several\n\(sql)")
      }
    }
    #expect(compiled > Self.shapes / 2 && reached > 500, "seed \(seed): \(compiled) compiled, \(reached) reached")
  }

  @Test(arguments: 0..<worlds) func storageFormsAgree(_ number: Int) throws {
    let seed = UInt64(4000 + number)
    let world = try ExpressionWorld(seed: seed)
    var nodes = RandomNodes(seed: seed, model: world.model)
    let numbers: [AttributeType] = [
      .integer16, .integer32, .integer64, .boolean, .double, .float, .decimal, .date,
    ]
    for index in 0..<Self.shapes {
      let entity = nodes.dice.pick(["Item", "Special", "Person", "Tag"])
      let base = RandomNodes.Base(node: .variable("source"), entity: entity)
      let isText = nodes.dice.chance(25)
      let node = isText ? nodes.text(base, 2) : nodes.dice.chance(20) ? nodes.date(base, 2) : nodes.number(base, 2)
      let attribute = Attribute(name: "target", type: isText ? .string : nodes.dice.pick(numbers), isOptional: true)
      let row = SQLRow(alias: "s", entity: entity)
      for forced in [false, true] {
        let fallbacks = ExpressionFallbacks()
        let compiler = compiler(world, entity, fallbacks)
        let sql =
          forced
          ? fallbacks.call(.stored(node, attribute), compiler, row, property: attribute.name, because: "")
          : try compiler.value(node, row: row, storedAs: attribute)
        try fallbacks.register(on: world.connection, schema: world.schema, tables: .schema("store"))
        for object in world.objects[entity] ?? [] {
          let expected = try Self.outcome {
            do {
              return try StorageForm.stored(evaluator(world, entity).value(node, on: object), as: attribute)
            } catch let error as HopdError {
              throw error.located(Place(row: object.key))
            }
          }
          let found = try Self.query(world, sql.text, object)
          try #require(
            expected.agrees(found),
            """
            seed \(seed), shape \(index), \(object), \(attribute.type), forced \(forced): \(expected) and \(found)
            \(node)
            \(sql)
            """)
        }
      }
    }
  }
}

extension HopdError.Code {
  /// Whether the error is about the values of one row, so that another row may succeed.
  var isRowError: Bool {
    [.divisionByZero, .numberOverflow, .castFailed, .valueMismatch, .matchTooLong].contains(self)
  }
}
