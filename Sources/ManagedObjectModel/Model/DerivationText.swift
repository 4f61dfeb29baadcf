// A derived attribute enters the hash by the text that NSExpression prints after parsing, not by the text of the model
// (docs/formats/version-hashes.md, "Derived attributes"). Only the forms that models hold are rewritten.

/// The printed form of a derivation expression.
struct DerivationText: Hashable {
  /// What NSExpression prints.
  let text: String
  /// Was this form compared with hashes made by Apple's software? So were counts over one key, canonical: and now().
  let isProven: Bool

  /// Rewrites the expression of a model; a printed one stays as it is.
  init(_ expression: String) {
    let keys = expression.split(separator: ".", omittingEmptySubsequences: false)
    if let position = keys.firstIndex(where: { $0.hasPrefix("@") }), position > 0,
      let function = Self.functions[String(keys[position])], keys.allSatisfy({ Self.isKey($0.drop { $0 == "@" }) })
    {
      let path = keys[..<position] + keys[(position + 1)...]
      text = "\(function):(\(path.joined(separator: ".")))"
      isProven = function == "count" && path.count == 1
      return
    }
    text = expression
    isProven =
      expression == "now()"
      || ["canonical:(", "count:("].contains {
        expression.hasPrefix($0) && expression.hasSuffix(")") && Self.isKey(expression.dropFirst($0.count).dropLast())
      }
  }

  private static let functions = ["@count": "count", "@sum": "sum", "@min": "min", "@max": "max", "@avg": "average"]

  /// Is it the name of one property?
  static func isKey(_ text: Substring) -> Bool {
    !text.isEmpty && text.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
  }
}
