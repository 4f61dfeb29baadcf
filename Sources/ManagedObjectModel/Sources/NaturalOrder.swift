// Version order is recorded nowhere in a bundle (docs/formats/model-files.md, "Version order"), and names are free
// text: "Model", "Model 2", "Modelv4", "1.8". A lexical sort puts "Model 10" before "Model 2", so numbers are compared
// as numbers.

/// The order of version names as people read them.
package enum NaturalOrder {
  /// Does `left` come before `right`?
  ///
  /// Names are compared word by word and number by number; spaces, dots, hyphens and underscores only separate. Case
  /// does not count unless nothing else differs. A name that is the beginning of another comes first.
  package static func precedes(_ left: String, _ right: String) -> Bool {
    let (first, second) = (tokens(of: left), tokens(of: right))
    for (one, other) in zip(first, second) where one != other { return one < other }
    if first.count != second.count { return first.count < second.count }
    return left.utf8.lexicographicallyPrecedes(right.utf8)
  }

  /// The names in order; `first` leads where it occurs: Xcode names the first version as the bundle.
  package static func sorted(_ names: [String], first: String? = nil) -> [String] {
    names.sorted { left, right in
      if (left == first) != (right == first) { return left == first }
      return precedes(left, right)
    }
  }

  private enum Token: Comparable {
    /// Digits without leading zeros, so that numbers of any length compare.
    case number([UInt8])
    case word(String)

    static func < (left: Token, right: Token) -> Bool {
      switch (left, right) {
      case (.number(let one), .number(let other)):
        one.count != other.count ? one.count < other.count : one.lexicographicallyPrecedes(other)
      case (.word(let one), .word(let other)): one.utf8.lexicographicallyPrecedes(other.utf8)
      case (.number, .word): true
      case (.word, .number): false
      }
    }

    static func == (left: Token, right: Token) -> Bool { !(left < right) && !(right < left) }
  }

  private static func tokens(of name: String) -> [Token] {
    var tokens: [Token] = []
    var digits: [UInt8] = []
    var word = ""
    func close() {
      if !digits.isEmpty { tokens.append(.number(Array(digits.drop { $0 == UInt8(ascii: "0") }))) }
      if !word.isEmpty { tokens.append(.word(word.lowercased())) }
      digits = []
      word = ""
    }
    for scalar in name.unicodeScalars {
      switch scalar {
      case "0"..."9":
        if !word.isEmpty { close() }
        digits.append(UInt8(truncatingIfNeeded: scalar.value))
      case " ", ".", "-", "_":
        close()
      default:
        if !digits.isEmpty { close() }
        word.unicodeScalars.append(scalar)
      }
    }
    close()
    return tokens
  }
}
