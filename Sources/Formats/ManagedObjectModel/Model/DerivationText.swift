// The hash of a derived attribute includes the text that NSExpression prints after parsing, not the text of the model
// (docs/formats/version-hashes.md, "Derived attributes"). Only forms that occur in models are rewritten.

/// The printed form of a derivation expression.
struct DerivationText: Hashable {
  /// The text that NSExpression prints.
  let text: String
  /// Whether this form was compared with hashes made by Apple's software. Proven are counts over one key, canonical:,
  /// now(), and paths of two keys.
  let isProven: Bool

  /// Rewrites the expression of a model; an already printed one stays unchanged.
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
      expression == "now()" || Self.keys(of: expression)?.count == 2
      || ["canonical:(", "count:("].contains {
        expression.hasPrefix($0) && expression.hasSuffix(")") && Self.isKey(expression.dropFirst($0.count).dropLast())
      }
  }

  private static let functions = ["@count": "count", "@sum": "sum", "@min": "min", "@max": "max", "@avg": "average"]

  /// Returns the keys of a path, as of `book.title`; nil for any other text.
  static func keys(of path: String) -> [String]? {
    let keys = path.split(separator: ".", omittingEmptySubsequences: false)
    return keys.allSatisfy(isKey) ? keys.map(String.init) : nil
  }

  /// Whether it is the name of one property.
  static func isKey(_ text: Substring) -> Bool {
    !text.isEmpty && text.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
  }
}
