// The computation of a derived attribute, as far as the form of its triggers is known. The layout and the planner use
// it; `DerivationText` is the expression's form in the version hash.

/// The derivation of an attribute.
package enum Derivation: Sendable, Hashable {
  /// The number of objects in a relationship of the same entity: `pages.@count`.
  case count(relationship: String)
  /// The value of an attribute of a relationship's target: `book.title`.
  case value(relationship: String, attribute: String)
  /// Any other expression, as in the model.
  case other(expression: String)

  /// Parses an expression, as Xcode writes it (`pages.@count`) or as NSExpression prints it (`count:(pages)`).
  package init(_ expression: String) {
    let keys = DerivationText.keys(of: expression)
    if keys?.count == 2, let first = keys?.first, let last = keys?.last {
      self = .value(relationship: first, attribute: last)
      return
    }
    var key = Substring(expression)
    if key.hasSuffix(".@count") {
      key = key.dropLast(".@count".utf8.count)
    } else if key.hasPrefix("count:("), key.hasSuffix(")") {
      key = key.dropFirst("count:(".utf8.count).dropLast()
    } else {
      key = ""
    }
    self = DerivationText.isKey(key) ? .count(relationship: String(key)) : .other(expression: expression)
  }

  /// The key path inside an expression: the keys of `sum:(a.b)`, `a.@sum.b`, `canonical:(s)` and `a.b`, none for
  /// `now()`; nil for any other form.
  package static func keyPath(in expression: String) -> [String]? {
    if expression == "now()" { return [] }
    var path = Substring(expression)
    if let start = path.firstIndex(of: "("), path.hasSuffix(")") {
      guard path[..<start].hasSuffix(":") else { return nil }
      path = path[path.index(after: start)...].dropLast()
    }
    let keys = path.split(separator: ".", omittingEmptySubsequences: false).filter { !$0.hasPrefix("@") }
    return keys.isEmpty ? nil : DerivationText.keys(of: keys.joined(separator: "."))
  }
}

extension Attribute {
  /// The computation of the attribute; nil for ordinary attributes.
  package var derivation: Derivation? { derivationExpression.map { Derivation($0) } }
}
