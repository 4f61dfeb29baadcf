// The rules of a model as constraints of a clean table. A store may hold objects that break a rule of its own model,
// because older versions of the app saved them: such a rule is left out, and no object is.

import ManagedObjectModel
import PersistentStore
import SQLite

/// A constraint of a table.
struct CleanRule {
  /// The columns that it is about, for messages.
  let column: String
  /// Whether it is NOT NULL at its column instead of a CHECK of the table.
  let isNotNull: Bool
  /// SQL that is false for a row that breaks it; the value of a column is what the closure gives.
  let condition: (_ value: (CleanColumn) -> String, _ entity: String) -> String

  /// The rules of a table.
  static func all(of table: CleanTable, options: ExportOptions) -> [CleanRule] {
    var rules: [CleanRule] = []
    if let column = table.entityColumn {
      let names = table.entities.map { SQLiteIdentifier.literal($0.entity.name) }.joined(separator: ", ")
      rules.append(CleanRule(column: column, isNotNull: false) { _, entity in "\(entity) IN (\(names))" })
    }
    for column in table.columns {
      rules += required(column, in: table) + bounds(column, options: options)
    }
    return rules
  }

  private static func required(_ column: CleanColumn, in table: CleanTable) -> [CleanRule] {
    guard !column.requiredBy.isEmpty else { return [] }
    if Set(column.requiredBy).isSuperset(of: table.entities.map(\.entity.name)) {
      return [CleanRule(column: column.name, isNotNull: true) { value, _ in "\(value(column)) IS NOT NULL" }]
    }
    let names = column.requiredBy.map(SQLiteIdentifier.literal).joined(separator: ", ")
    return [
      CleanRule(column: column.name, isNotNull: false) { value, entity in
        "\(entity) NOT IN (\(names)) OR \(value(column)) IS NOT NULL"
      }
    ]
  }

  private static func bounds(_ column: CleanColumn, options: ExportOptions) -> [CleanRule] {
    guard case .attribute(let attribute) = column.content else { return [] }
    if attribute.type.form == .boolean {
      return [CleanRule(column: column.name, isNotNull: false) { value, _ in "\(value(column)) IN (0, 1)" }]
    }
    let bounds = [(attribute.minimum, ">=", false), (attribute.maximum, "<=", true)]
    return bounds.compactMap { text, operation, isMaximum -> CleanRule? in
      guard let text, let limit = literal(text, of: attribute, isMaximum: isMaximum, options: options) else {
        return nil
      }
      let isText = attribute.type.form == .string
      return CleanRule(column: column.name, isNotNull: false) { value, _ in
        (isText ? "length(\(value(column)))" : value(column)) + " \(operation) \(limit)"
      }
    }
  }

  /// A bound of the model as SQL; nil if the type has none.
  private static func literal(
    _ text: String, of attribute: Attribute, isMaximum: Bool, options: ExportOptions
  ) -> String? {
    switch attribute.type.form {
    case .integer, .string, .decimal, .real:
      if !attribute.type.traits.isFloat, let whole = Int64(text) { return SQLiteValue.integer(whole).literal }
      return attribute.type.limit(text, isMaximum: isMaximum).map { SQLiteValue.real($0).literal }
    case .date:
      return Double(text).map { ExportedValue(options: options, external: nil).date($0).literal }
    default: return nil
    }
  }
}
