// The condition of a filtered count, as `(faces.hidden == NO) && (faces.centerX != 0)`: the only form that stores show
// (docs/formats/store-layout.md, "Filtered counts").

/// The condition of a filtered count as the model has it.
struct FilteredCountCondition {
  struct Comparison {
    let attribute: String
    /// == or !=.
    let operation: String
    /// A whole number; truth values are 1 and 0.
    let number: String
  }

  /// The relationship whose objects are counted.
  let relationship: String
  let comparisons: [Comparison]

  /// Reads a condition; nil for one of another form.
  init?(_ text: String) {
    var relationship: String?
    var comparisons: [Comparison] = []
    var rest = text[...]
    while true {
      rest = rest.drop { $0 == " " }
      guard rest.first == "(", let close = rest.firstIndex(of: ")") else { return nil }
      let words = rest[..<close].dropFirst().split(separator: " ")
      guard words.count == 3, words[1] == "==" || words[1] == "!=", let number = Self.number(words[2]) else {
        return nil
      }
      let keys = words[0].split(separator: ".", omittingEmptySubsequences: false).map(String.init)
      guard keys.count == 2, relationship ?? keys[0] == keys[0] else { return nil }
      relationship = keys[0]
      comparisons.append(Comparison(attribute: keys[1], operation: String(words[1]), number: number))
      rest = rest[close...].dropFirst().drop { $0 == " " }
      if rest.isEmpty { break }
      guard rest.hasPrefix("&&") else { return nil }
      rest = rest.dropFirst(2)
    }
    guard let relationship else { return nil }
    self.relationship = relationship
    self.comparisons = comparisons
  }

  private static func number(_ word: Substring) -> String? {
    switch word {
    case "YES": "1"
    case "NO": "0"
    default: Int64(word).map(String.init)
    }
  }
}
