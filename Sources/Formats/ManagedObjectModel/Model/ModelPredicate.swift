// The predicate of a partial fetch index or a fetched property, as far as stores and compiled models of Apple's
// software show its form: comparisons of keys, variables, whole numbers, truth values and nil, joined by AND and OR.
// The layout writes it as SQL, and the copy of the model as objects of Foundation's classes.

/// A predicate of a model.
package indirect enum ModelPredicate: Sendable, Hashable {
  case comparison(Operand, Operation, Operand)
  case and([ModelPredicate])
  case or([ModelPredicate])

  /// One side of a comparison.
  package enum Operand: Sendable, Hashable {
    /// The value of a key path of the object.
    case path([String])
    /// The value of a key path of a variable, or the variable itself.
    case variable(String, path: [String])
    case integer(Int64)
    case boolean(Bool)
    case null
  }

  /// The operator of a comparison.
  package enum Operation: Sendable, Hashable {
    case equal, notEqual, greater
    case contains(ignoresCase: Bool)
  }

  /// Reads a predicate's text; nil for a form that is not known.
  package init?(_ text: String) {
    guard var reader = ModelPredicateReader(text), let found = reader.predicate() else { return nil }
    self = found
  }
}

/// Reads the text of a predicate.
private struct ModelPredicateReader {
  private enum Token: Equatable {
    case word(String)
    case number(Int64)
    case symbol(String)
  }

  /// Nesting of parentheses; no model shows more than two.
  private static let maximumDepth = 8

  private var tokens: ArraySlice<Token>

  /// nil if the text has anything but words, whole numbers and symbols.
  init?(_ text: String) {
    var found: [Token] = []
    var rest = Substring(text)
    while let character = rest.first {
      if character.isWhitespace {
        rest.removeFirst()
      } else if character.isLetter || character == "_" || character == "$" {
        let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." || $0 == "$" }
        found.append(.word(String(word)))
        rest = rest.dropFirst(word.count)
      } else if character == "-" || character.isASCII && character.isNumber {
        let sign = character == "-" ? "-" : ""
        let digits = rest.dropFirst(sign.count).prefix { $0.isASCII && $0.isNumber }
        rest = rest.dropFirst(sign.count + digits.count)
        guard let number = Int64(sign + digits), rest.first != "." else { return nil }
        found.append(.number(number))
      } else if character == "(" || character == ")" {
        found.append(.symbol(String(rest.removeFirst())))
      } else if rest.hasPrefix("[c]") {
        found.append(.symbol("[c]"))
        rest = rest.dropFirst(3)
      } else {
        let symbol = rest.prefix { "=!<>&|".contains($0) }
        guard !symbol.isEmpty else { return nil }
        found.append(.symbol(String(symbol)))
        rest = rest.dropFirst(symbol.count)
      }
    }
    tokens = found[...]
  }

  /// Reads the whole text.
  mutating func predicate() -> ModelPredicate? {
    guard let found = alternatives(depth: 0), tokens.isEmpty else { return nil }
    return found
  }

  private mutating func alternatives(depth: Int) -> ModelPredicate? {
    joined(["OR", "||"], ModelPredicate.or) { reader in
      reader.joined(["AND", "&&"], ModelPredicate.and) { $0.term(depth: depth) }
    }
  }

  /// Reads one part or more with the same joint between them.
  private mutating func joined(
    _ joints: [String], _ compound: ([ModelPredicate]) -> ModelPredicate, by part: (inout Self) -> ModelPredicate?
  ) -> ModelPredicate? {
    guard let first = part(&self) else { return nil }
    var parts = [first]
    while joints.contains(where: { take($0) }) {
      guard let next = part(&self) else { return nil }
      parts.append(next)
    }
    return parts.count == 1 ? first : compound(parts)
  }

  private mutating func term(depth: Int) -> ModelPredicate? {
    guard take("(") else { return comparison() }
    guard depth < Self.maximumDepth, let found = alternatives(depth: depth + 1), take(")") else { return nil }
    return found
  }

  private mutating func comparison() -> ModelPredicate? {
    guard let left = operand(), let operation = operation(), let right = operand() else { return nil }
    return .comparison(left, operation, right)
  }

  private mutating func operation() -> ModelPredicate.Operation? {
    if take("==") || take("=") { return .equal }
    if take("!=") || take("<>") { return .notEqual }
    if take(">") { return .greater }
    return take("CONTAINS") ? .contains(ignoresCase: take("[c]")) : nil
  }

  private mutating func operand() -> ModelPredicate.Operand? {
    switch tokens.popFirst() {
    case .number(let number)?: return .integer(number)
    case .word(let word)?:
      switch word.lowercased() {
      case "nil", "null": return .null
      case "yes", "true": return .boolean(true)
      case "no", "false": return .boolean(false)
      default: break
      }
      let isVariable = word.hasPrefix("$")
      guard var keys = DerivationText.keys(of: String(word.drop { $0 == "$" })) else { return nil }
      if isVariable { return .variable(keys.removeFirst(), path: keys) }
      if keys.count > 1, keys[0].lowercased() == "self" { keys.removeFirst() }
      return .path(keys)
    default: return nil
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
}
