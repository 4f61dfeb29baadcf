// Orders version names by the numbers in them. No bundle records the order of its versions
// (docs/formats/model-files.md, "Version order"), and names are free text: "Model", "Model 2", "Modelv4", "1.8". A
// lexical sort puts "Model 10" before "Model 2", so numbers are compared as numbers.

/// The natural order of version names.
package enum NaturalOrder {
  /// Whether `left` comes before `right`.
  ///
  /// Names are compared word by word and number by number; spaces, dots, hyphens and underscores only separate. Case
  /// counts only if there is no other difference. A name that is the beginning of another comes first.
  package static func precedes(_ left: String, _ right: String) -> Bool {
    let (first, second) = (tokens(of: left), tokens(of: right))
    for (one, other) in zip(first, second) where one != other { return one < other }
    if first.count != second.count { return first.count < second.count }
    return left.utf8.lexicographicallyPrecedes(right.utf8)
  }

  /// Whether the names differ only in their numbers and in the positions of these.
  static func haveSameWords(_ left: String, _ right: String) -> Bool {
    func words(_ name: String) -> [String] {
      tokens(of: name).compactMap { if case .word(let word) = $0 { word } else { nil } }
    }
    return words(left) == words(right)
  }

  /// Returns each name with its words in the spelling of most others: a long word that differs from a more frequent one
  /// in one letter is taken for a typing mistake ("SBBDataModeV20" among twenty "SBBDataModelV…").
  static func spelledAlike(_ names: [String]) -> [String: String] {
    let parts = names.map { (name: $0, tokens: tokens(of: $0)) }
    var counts: [String: Int] = [:]
    for word in parts.flatMap({ $0.tokens.compactMap(\.word) }) where word.utf8.count >= 8 {
      counts[word, default: 0] += 1
    }
    let words = counts.keys.sorted {
      counts[$0] != counts[$1] ? counts[$0] ?? 0 > counts[$1] ?? 0 : $0.utf8.lexicographicallyPrecedes($1.utf8)
    }
    guard words.count > 1, words.count <= 100 else { return [:] }
    var spelling: [String: String] = [:]
    for (index, word) in words.enumerated() {
      spelling[word] = words[..<index].first { counts[$0] != counts[word] && differInOneLetter($0, word) }
    }
    guard !spelling.isEmpty else { return [:] }
    let spelled = parts.map { part in
      (
        part.name,
        part.tokens.map { token in
          switch token {
          case .number(let digits): String(decoding: digits, as: UTF8.self)
          case .word(let word): spelling[word] ?? word
          }
        }.joined(separator: " ")
      )
    }
    return Dictionary(spelled, uniquingKeysWith: { first, _ in first })
  }

  /// Whether one letter is missing, added or changed between the two.
  private static func differInOneLetter(_ left: String, _ right: String) -> Bool {
    let (short, long) = left.utf8.count < right.utf8.count ? (left, right) : (right, left)
    let (first, second) = (Array(short.utf8), Array(long.utf8))
    guard second.count - first.count <= 1 else { return false }
    let start = zip(first, second).prefix { $0 == $1 }.count
    let end = zip(first.reversed(), second.reversed()).prefix { $0 == $1 }.count
    return start + end >= second.count - 1
  }

  /// Returns the names in the order of the numbers at their ends; nil unless each has one number, at its end, and no
  /// two have the same.
  package static func byFinalNumber(_ names: [String]) -> [String]? {
    let numbers = names.compactMap { name -> [UInt8]? in
      let tokens = tokens(of: name)
      guard case .number(let digits)? = tokens.last, tokens.dropLast().allSatisfy({ $0.word != nil }) else {
        return nil
      }
      return digits
    }
    guard numbers.count == names.count, Set(numbers).count == numbers.count else { return nil }
    return zip(numbers, names).sorted { Token.number($0.0) < Token.number($1.0) }.map(\.1)
  }

  /// Whether a name mentions two others, the first before the second, as "Model 2 to Model 3" does.
  package static func names(_ name: String, _ first: String, before second: String) -> Bool {
    let (words, start, end) = (tokens(of: name), tokens(of: first), tokens(of: second))
    func position(of part: [Token], from: Int) -> Int? {
      guard !part.isEmpty, words.count >= part.count else { return nil }
      return (from...max(from, words.count - part.count)).first { index in
        index + part.count <= words.count && zip(words[index...], part).allSatisfy { $0 == $1 }
      }
    }
    guard let begin = position(of: start, from: 0) else { return false }
    return position(of: end, from: begin + start.count) != nil
  }

  private enum Token: Comparable {
    /// Digits without leading zeros, so that numbers of any length compare.
    case number([UInt8])
    case word(String)

    /// The word, or nil.
    var word: String? { if case .word(let word) = self { word } else { nil } }

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
      case " ", ".", "-", "_": close()
      default:
        if !digits.isEmpty { close() }
        word.unicodeScalars.append(scalar)
      }
    }
    close()
    return tokens
  }
}
