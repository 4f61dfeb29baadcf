// Patterns of MATCHES before any row: Apple's engine is ICU, hopd's is Swift's Regex. What only one of them knows, or both
// understand differently, is refused; so is what would take either of them very long to read (expressions §6.4).

/// Looks at regular expressions.
package enum MatchPattern {
  private static let maximumLength = 1_000
  private static let maximumNesting = 20
  private static let maximumRepeat = 1_000

  /// Why a pattern is refused; nil where both engines take it.
  package static func problem(of pattern: String) -> String? {
    let scalars = Array(pattern.unicodeScalars)
    guard scalars.count <= maximumLength else {
      return "the pattern has \(scalars.count) characters; more than \(maximumLength) are not read"
    }
    if let problem = constructs(scalars) { return problem }
    // Nesting is bounded by now, and so is the reader's recursion.
    guard (try? Regex(pattern)) != nil else { return "the pattern is no regular expression" }
    return nil
  }

  private static func constructs(_ scalars: [Unicode.Scalar]) -> String? {
    var depth = 0
    var setDepth = 0
    var index = 0
    func at(_ offset: Int) -> Unicode.Scalar? { index + offset < scalars.count ? scalars[index + offset] : nil }
    while let scalar = at(0) {
      defer { index += 1 }
      if scalar == "\\" {
        index += 1
        if let problem = escape(at(0)) { return problem }
        if let problem = possessive(at(1), at(2)) { return problem }
        continue
      }
      if setDepth > 0 {
        switch scalar {
        case "[":
          return at(1) == ":"
            ? "named sets ([:alpha:]) are not supported in patterns" : "a set in a set is not supported in patterns"
        case "]": setDepth -= 1
        case "&" where at(1) == "&", "-" where at(1) == "-":
          return "operations on sets (&&, --) are not supported in patterns"
        default: break
        }
        continue
      }
      switch scalar {
      case "[":
        setDepth += 1
        // A bracket that comes first is one of the set's own.
        if at(1) == "^" { index += 1 }
        if at(1) == "]" { index += 1 }
      case "(":
        depth += 1
        if depth > maximumNesting { return "the pattern is nested deeper than \(maximumNesting)" }
        if at(1) == "?", let problem = group(at(2), at(3)) { return problem }
      case ")": depth -= 1
      case "{":
        if let problem = bounds(scalars[(index + 1)...]) { return problem }
      case "*", "+", "?", "}":
        if at(1) == "+" { return "possessive quantifiers (\(scalar)+) are not supported in patterns" }
      default: break
      }
    }
    return nil
  }

  private static func possessive(_ next: Unicode.Scalar?, _ behind: Unicode.Scalar?) -> String? {
    guard let next, ["*", "+", "?"].contains(next), behind == "+" else { return nil }
    return "possessive quantifiers (\(next)+) are not supported in patterns"
  }

  private static func escape(_ scalar: Unicode.Scalar?) -> String? {
    switch scalar {
    case nil: return "the pattern ends with a backslash"
    case "p", "P", "N": return "named sets (\\p, \\N) are not supported in patterns"
    case "Q", "E", "G", "K", "R", "X", "x", "c", "C", "O", "k", "g", "Z", "y", "Y", "h", "H", "v", "V":
      return "the escape \\\(scalar.map { String($0) } ?? "") is not supported in patterns"
    default: return nil
    }
  }

  /// What stands behind `(?`.
  private static func group(_ first: Unicode.Scalar?, _ second: Unicode.Scalar?) -> String? {
    switch (first, second) {
    case (":", _), ("=", _), ("!", _), ("i", ")"), ("i", ":"): nil
    case ("<", "="), ("<", "!"): "assertions backwards ((?<=…), (?<!…)) are not supported in patterns"
    case (">", _): "atomic groups ((?>…)) are not supported in patterns"
    default: "groups of this kind ((?…)) are not supported in patterns"
    }
  }

  /// Counts behind `{`: each turn is unfolded when the pattern is made ready.
  private static func bounds(_ rest: ArraySlice<Unicode.Scalar>) -> String? {
    var number = 0
    for scalar in rest {
      switch scalar {
      case "0"..."9":
        number = number * 10 + Int(scalar.value - 0x30)
        if number > maximumRepeat { return "a part of the pattern is repeated more than \(maximumRepeat) times" }
      case ",": number = 0
      default: return nil
      }
    }
    return nil
  }
}
