// How command lines are split into words: commands of policies, those that fetch and store objects, lists of units.

/// A command line in words, without a shell: only quotes and backslashes have the meaning that they have in one.
package enum ShellWords {
  /// The words; nil where a quote is not closed or a backslash is the last character. Inside double quotes a backslash
  /// quotes only `escapedInQuotes`, and is literal before any other character.
  package static func split(_ text: some StringProtocol, escapedInQuotes: String) -> [String]? {
    var words: [String] = []
    var word: String?
    var quote: Character?
    var isEscaped = false
    for character in text {
      if isEscaped {
        if quote == "\"", !escapedInQuotes.contains(character) { word = (word ?? "") + "\\" }
        word = (word ?? "") + String(character)
        isEscaped = false
      } else if character == "\\", quote != "'" {
        isEscaped = true
      } else if let open = quote {
        if character == open { quote = nil } else { word = (word ?? "") + String(character) }
      } else if character == "'" || character == "\"" {
        quote = character
        word = word ?? ""
      } else if character == " " || character == "\t" || character == "\n" {
        if let done = word { words.append(done) }
        word = nil
      } else {
        word = (word ?? "") + String(character)
      }
    }
    guard !isEscaped, quote == nil else { return nil }
    if let word { words.append(word) }
    return words
  }
}
