// The condition of a partial fetch index: the predicate of the model as the SQL that Core Data writes after the columns
// (docs/formats/store-layout.md, "Partial fetch indexes"). Only the forms that stores show are written: comparisons of
// a property with a whole number, a truth value or nil, joined by AND and OR.

import ManagedObjectModel
import SQLite

/// Writes the predicate of a partial fetch index as SQL.
enum PartialIndexCondition {
  /// Returns the SQL; nil for a predicate of a form that no store shows. `column` returns the column of a property.
  static func sql(_ predicate: String, column: (String) -> String?) -> String? {
    ModelPredicate(predicate).flatMap { sql($0, column) }
  }

  private static func sql(_ predicate: ModelPredicate, _ column: (String) -> String?) -> String? {
    switch predicate {
    case .and(let parts): joined(parts, " AND ", column)
    case .or(let parts): joined(parts, " OR ", column)
    case .comparison(.path(let keys), let operation, let value): comparison(keys, operation, value, column)
    case .comparison: nil
    }
  }

  private static func joined(
    _ parts: [ModelPredicate], _ joint: String, _ column: (String) -> String?
  ) -> String? {
    let texts = parts.compactMap { sql($0, column) }
    return texts.count == parts.count ? "(" + texts.joined(separator: joint) + ")" : nil
  }

  private static func comparison(
    _ keys: [String], _ operation: ModelPredicate.Operation, _ value: ModelPredicate.Operand,
    _ column: (String) -> String?
  ) -> String? {
    guard let column = column(keys.joined(separator: ".")) else { return nil }
    let name = SQLiteIdentifier.bareIfPossible(column)
    let number: Int64
    switch value {
    case .integer(let value): number = value
    case .boolean(let flag): number = flag ? 1 : 0
    case .null:
      switch operation {
      case .equal: return "\(name) IS NULL"
      case .notEqual: return "\(name) IS NOT NULL"
      default: return nil
      }
    case .path, .variable: return nil
    }
    switch operation {
    case .equal: return "\(name) = \(number)"
    case .notEqual: return "\(name) <> \(number)"
    case .greater: return "\(name) > \(number)"
    case .contains: return nil
    }
  }
}
