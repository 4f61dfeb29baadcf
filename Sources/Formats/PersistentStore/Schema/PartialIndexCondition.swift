// The condition of a partial fetch index: the predicate of the model as the SQL that Core Data writes after the columns
// (docs/formats/store-layout.md, "Partial fetch indexes"). Only the forms that stores show are written: comparisons of
// a property with a whole number, a truth value or nil, joined by AND and OR.

import SQLite

/// Writes the predicate of a partial fetch index as SQL.
struct PartialIndexCondition {
  private enum Token: Equatable {
    case word(String)
    case number(String)
    case symbol(String)
  }

  private enum Node {
    case comparison(String)
    case compound(joint: String, parts: [Node])

    var sql: String {
      switch self {
      case .comparison(let text): text
      case .compound(let joint, let parts): "(" + parts.map(\.sql).joined(separator: " \(joint) ") + ")"
      }
    }
  }

  /// Nesting of parentheses; no store shows more than two.
  private static let maximumDepth = 8

  private var tokens: ArraySlice<Token>
  private let column: (String) -> String?

  /// Returns the SQL; nil for a predicate of a form that no store shows. `column` returns the column of a property.
  static func sql(_ predicate: String, column: @escaping (String) -> String?) -> String? {
    guard let tokens = tokens(of: predicate) else { return nil }
    var reader = Self(tokens: tokens[...], column: column)
    guard let node = reader.joined("OR", by: { $0.joined("AND", by: { $0.term(depth: 0) }) }), reader.tokens.isEmpty
    else { return nil }
    return node.sql
  }

  /// Reads one part or more with the same joint between them.
  private mutating func joined(_ joint: String, by part: (inout Self) -> Node?) -> Node? {
    guard let first = part(&self) else { return nil }
    var parts = [first]
    while take(joint) || take(joint == "AND" ? "&&" : "||") {
      guard let next = part(&self) else { return nil }
      parts.append(next)
    }
    return parts.count == 1 ? first : .compound(joint: joint, parts: parts)
  }

  private mutating func term(depth: Int) -> Node? {
    guard take("(") else { return comparison() }
    guard depth < Self.maximumDepth,
      let node = joined("OR", by: { $0.joined("AND", by: { $0.term(depth: depth + 1) }) }), take(")")
    else { return nil }
    return node
  }

  private mutating func comparison() -> Node? {
    guard case .word(let path)? = tokens.popFirst(), case .symbol(let operation)? = tokens.popFirst(),
      let value = constant(),
      let column = column(path.lowercased().hasPrefix("self.") ? String(path.dropFirst(5)) : path)
    else { return nil }
    let name = SQLiteIdentifier.bareIfPossible(column)
    switch (operation, value) {
    case ("==", nil), ("=", nil): return .comparison("\(name) IS NULL")
    case ("!=", nil), ("<>", nil): return .comparison("\(name) IS NOT NULL")
    case ("==", let value?), ("=", let value?): return .comparison("\(name) = \(value)")
    case ("!=", let value?), ("<>", let value?): return .comparison("\(name) <> \(value)")
    case (">", let value?): return .comparison("\(name) > \(value)")
    default: return nil
    }
  }

  /// Reads a constant: a number, or nil as `.some(nil)`.
  private mutating func constant() -> String?? {
    switch tokens.popFirst() {
    case .number(let text): .some(text)
    case .word(let word):
      switch word.lowercased() {
      case "nil", "null": .some(nil)
      case "yes", "true": .some("1")
      case "no", "false": .some("0")
      default: nil
      }
    default: nil
    }
  }

  private mutating func take(_ text: String) -> Bool {
    let isNext =
      switch tokens.first {
      case .word(let word): word.uppercased() == text
      case .symbol(let symbol): symbol == text
      default: false
      }
    if isNext { tokens.removeFirst() }
    return isNext
  }

  /// Returns the words, whole numbers and symbols of a text; nil if it has anything else.
  private static func tokens(of text: String) -> [Token]? {
    var tokens: [Token] = []
    var rest = Substring(text)
    while let character = rest.first {
      if character.isWhitespace {
        rest.removeFirst()
      } else if character.isLetter || character == "_" {
        let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
        tokens.append(.word(String(word)))
        rest = rest.dropFirst(word.count)
      } else if character == "-" || character.isASCII && character.isNumber {
        let sign = character == "-" ? "-" : ""
        let digits = rest.dropFirst(sign.count).prefix { $0.isASCII && $0.isNumber }
        rest = rest.dropFirst(sign.count + digits.count)
        guard let number = Int64(sign + digits), rest.first != "." else { return nil }
        tokens.append(.number(String(number)))
      } else if character == "(" || character == ")" {
        tokens.append(.symbol(String(rest.removeFirst())))
      } else {
        let symbol = rest.prefix { "=!<>&|".contains($0) }
        guard !symbol.isEmpty else { return nil }
        tokens.append(.symbol(String(symbol)))
        rest = rest.dropFirst(symbol.count)
      }
    }
    return tokens
  }
}
