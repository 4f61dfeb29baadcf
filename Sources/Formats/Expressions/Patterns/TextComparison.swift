// String operators of predicates (docs/formats/expressions.md, "Strings"), on code units; `[c]` and `[d]` fold both
// sides first. SQL calls the same code where SQLite's own operators would differ.

/// String operators.
enum TextComparison {
  /// Whether `left operation right` is true. An empty pattern never matches.
  static func holds(_ operation: Comparison.Operator, _ left: String, _ right: String) -> Bool {
    guard !right.isEmpty else { return false }
    switch operation {
    case .beginsWith: return left.utf8.starts(with: right.utf8)
    case .endsWith: return left.utf8.reversed().starts(with: right.utf8.reversed())
    case .contains: return contains(Array(left.utf8), Array(right.utf8))
    case .like: return WildcardPattern(right).matches(left)
    default: return false
    }
  }

  /// Knuth-Morris-Pratt: texts and patterns may be hostile, so the search must not be quadratic.
  private static func contains(_ text: [UInt8], _ part: [UInt8]) -> Bool {
    guard part.count <= text.count else { return false }
    var fallback = [Int](repeating: 0, count: part.count)
    var length = 0
    for index in part.indices.dropFirst() {
      while length > 0 && part[index] != part[length] { length = fallback[length - 1] }
      if part[index] == part[length] { length += 1 }
      fallback[index] = length
    }
    length = 0
    for byte in text {
      while length > 0 && byte != part[length] { length = fallback[length - 1] }
      if byte == part[length] { length += 1 }
      if length == part.count { return true }
    }
    return false
  }
}

/// A pattern of LIKE: `*` matches any text, `?` one character (a Unicode scalar); a backslash escapes the next one.
struct WildcardPattern {
  /// A part of a pattern.
  enum Part: Equatable {
    case any
    case one
    case scalar(Unicode.Scalar)
  }

  let parts: [Part]

  init(_ text: String) {
    var parts: [Part] = []
    var isEscaped = false
    for scalar in text.unicodeScalars {
      if isEscaped {
        parts.append(.scalar(scalar))
        isEscaped = false
        continue
      }
      switch scalar {
      case "\\": isEscaped = true
      case "*": if parts.last != .any { parts.append(.any) }
      case "?": parts.append(.one)
      default: parts.append(.scalar(scalar))
      }
    }
    // A backslash at the end is a literal backslash.
    if isEscaped { parts.append(.scalar("\\")) }
    self.parts = parts
  }

  /// Whether the whole text matches. After a mismatch only the last `*` is extended: no other choice can help.
  func matches(_ text: String) -> Bool {
    let scalars = Array(text.unicodeScalars)
    var (place, part) = (0, 0)
    var star: (part: Int, place: Int)?
    while place < scalars.count {
      if part < parts.count, parts[part] == .any {
        star = (part, place)
        part += 1
      } else if part < parts.count, parts[part] == .one || parts[part] == .scalar(scalars[place]) {
        part += 1
        place += 1
      } else if let last = star {
        star = (last.part, last.place + 1)
        part = last.part + 1
        place = last.place + 1
      } else {
        return false
      }
    }
    return parts[part...].allSatisfy { $0 == .any }
  }
}
