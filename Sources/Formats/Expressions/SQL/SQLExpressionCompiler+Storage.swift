// Converts a value to the content of a destination column: unchanged if the types guarantee that it fits, else by a
// checked function.

import ManagedObjectModel
import PersistentStore
import SQLite

extension SQLExpressionCompiler {
  func stored(
    _ value: SQLFragment, as attribute: Attribute, _ frame: Frame
  ) throws(NotCompilable) -> SQLExpression {
    if value.kind == .null { return value.sql }
    let wanted = kind(of: attribute)
    switch (value.kind, attribute.type.form) {
    case (.carried, _): throw NotCompilable("content that is only carried has no other form")
    case (.object, _): throw NotCompilable("an object is used where the value of an attribute is required")
    // Other numbers need not fit a float.
    case (_, .real) where attribute.type.traits.isFloat && value.kind != .float: break
    case (.boolean, .boolean), (.boolean, .integer), (.float, .real), (.real, .real), (.string, .string),
      (.string, .uri), (.uuid, .uuid), (.date, .date), (.decimal, .decimal), (.boolean, .decimal), (.integer, .decimal),
      (.data, .transformable):
      return value.sql
    case (.data, .binary):
      return attribute.hasExternalForm ? ExternalDataForm.inlineExpression(ofPlain: value.sql) : value.sql
    case (.integer(let range), .integer), (.integer(let range), .boolean):
      if let limits = wanted.range, limits.contains(range.lowerBound), limits.contains(range.upperBound) {
        return value.sql
      }
    case (.boolean, .real), (.integer, .real), (.number, .real), (.date, .real), (.boolean, .date),
      (.integer, .date), (.number, .date), (.real, .date), (.float, .date):
      return "CAST(\(value.sql) AS REAL)"
    default: break
    }
    let isUUID = value.kind == .uuid ? "1" : "0"
    // A decimal has the digits of its double.
    return "\(ExpressionFunctions.store)(\(attribute.type.rawValue), \(isUUID), \(value.sql)\(frame.site))"
  }

  /// Returns a key path to content that is only copied, in the destination's form; nil for all other expressions.
  ///
  /// The SQL for content that leaves external storage calls `ExternalDataForm.contentFunction`, which the engine
  /// registers.
  func carried(
    _ node: ExpressionNode, _ frame: Frame, as attribute: Attribute
  ) throws(NotCompilable) -> SQLExpression? {
    guard Self.needsEngine(node) == nil, case .value(let value)? = try? reach(node, frame) else { return nil }
    switch (value.kind, attribute.type) {
    case (.carried(isExternal: true), .binary):
      return attribute.hasExternalForm
        ? value.sql : "(\(ExternalDataForm.plainExpression(ofExternal: value.sql)))"
    case (.carried(isExternal: false), .transformable): return value.sql
    case (.data, .binary) where attribute.hasExternalForm:
      return "(\(ExternalDataForm.inlineExpression(ofPlain: value.sql)))"
    default: return nil
    }
  }
}
