// Expressions over the columns of a row. To an expression every column is a text, whatever file it is in: CAST makes
// numbers of it.

import Diagnostics
import Expressions
import ManagedObjectModel
import PersistentStore
import SQLite

/// Reads and evaluates the expressions of one source.
final class RowExpressions: InstanceSource {
  private let places: [String: Int]
  /// The places by the names in expressions.
  private let named: [String: Int]
  private let model: ManagedObjectModel
  private let moment: Double
  private var row = DataRecord(line: 0, cells: [])

  private static let entity = "Row"
  private static let object = InstanceID(entity: entity, key: 1)

  init(columns: [String], moment: Double) {
    places = Dictionary(columns.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    var named = places.filter { Self.name(of: $0.key) == $0.key }
    for (column, place) in places.sorted(by: { $0.value < $1.value }) where named[Self.name(of: column)] == nil {
      named[Self.name(of: column)] = place
    }
    self.named = named
    model = ManagedObjectModel(
      name: "Data",
      entities: [
        Entity(
          name: Self.entity,
          attributes: named.keys.filter { !$0.isEmpty }.sorted().map {
            Attribute(name: $0, type: .string, isOptional: true)
          })
      ])
    self.moment = moment
  }

  /// The name of a column in expressions: `_` for each character that a name cannot have.
  private static func name(of column: String) -> String {
    let name = String(column.map { $0.isLetter || $0.isNumber || "_.".contains($0) ? $0 : "_" })
    return name.first?.isNumber == true ? "_" + name : name
  }

  /// The place of a column; nil if there is none of that name.
  func place(of column: String) -> Int? { places[column] }

  /// The place of a column by its name in expressions.
  func place(ofName name: String) -> Int? { named[name] }

  /// Parses and checks an expression that gives one value.
  func expression(_ text: String, at place: Place) throws(HopdError) -> ExpressionNode {
    var paths = BareKeyPaths(model: model, source: Self.entity)
    let node = paths.named(try ExpressionParser.expression(text, at: place))
    do {
      try ExpressionChecker(scope(.attribute)).checkKey(node)
    } catch {
      throw error.located(place)
    }
    return node
  }

  /// Checks a filter.
  func check(_ predicate: PredicateNode, at place: Place) throws(HopdError) {
    do {
      try ExpressionChecker(scope(.sourceFilter)).check(predicate)
    } catch {
      throw error.located(place)
    }
  }

  private func scope(_ place: ExpressionScope.Place) -> ExpressionScope {
    ExpressionScope(model: model, sourceEntity: Self.entity, place: place)
  }

  private lazy var values = ExpressionEvaluator(scope: scope(.attribute), source: self, moment: moment)
  private lazy var filters = ExpressionEvaluator(scope: scope(.sourceFilter), source: self, moment: moment)

  /// Creates a row the one that expressions read.
  func begin(_ row: DataRecord) { self.row = row }

  /// Whether the row satisfies a filter.
  func isTrue(_ predicate: PredicateNode) throws -> Bool {
    try asRow { try filters.isTrue(predicate, on: Self.object) }
  }

  /// Returns the value of an expression for an attribute. A text is converted as one of a column.
  func value(
    _ node: ExpressionNode, of attribute: Attribute, _ values: ImportedValue
  ) throws -> SQLiteValue {
    let value = try asRow { try self.values.value(node, on: Self.object) }
    if case .string(let text) = value { return try values.stored(.text(text), as: attribute) }
    return try asRow { try StorageForm.stored(value, as: attribute) }
  }

  /// Errors of an expression are errors of the row, and name the data instead of an object.
  private func asRow<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as HopdError {
      throw HopdError(.rowInvalid, error.message, hint: error.hint, reasons: error.reasons)
    }
  }

  func value(ofAttribute name: String, in object: InstanceID) throws -> ExpressionValue {
    guard let place = named[name], row.cells.indices.contains(place), let text = row.cells[place].text else {
      return .null
    }
    return .string(text)
  }

  func objects(ofRelationship name: String, in object: InstanceID) throws -> [InstanceID] { [] }
}
