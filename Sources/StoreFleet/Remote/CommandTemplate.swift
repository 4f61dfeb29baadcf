// A command that a user types for an option: words with placeholders. No shell reads it, so a key with blanks or quotes
// in it is one word and nothing else, whatever it holds.

import Diagnostics

/// A command with placeholders.
package struct CommandTemplate: Sendable, Hashable {
  /// A placeholder in a command, in braces.
  package enum Placeholder: String, Sendable, Hashable, CaseIterable {
    /// The object's name, as the manifest has it.
    case key
    /// The file of the database.
    case path
    /// The folder of the database, which also holds its external data.
    case directory
    /// The version of the object that was fetched.
    case version
  }

  private enum Piece: Sendable, Hashable {
    case text(String)
    case placeholder(Placeholder)
  }

  private let pieces: [[Piece]]

  /// The first word: the program.
  package let program: String

  /// Parses a command. Blanks separate words. Within '…' every character is literal, within "…" a backslash quotes a
  /// quote or a backslash after it, and outside of both any character.
  package init(_ text: String, option: String) throws(HopdError) {
    let words = try Self.words(of: text, option)
    guard let first = words.first else {
      throw Self.wrong(option, "has no command", "type a program and its arguments")
    }
    var pieces: [[Piece]] = []
    for word in words { pieces.append(try Self.pieces(of: word, option)) }
    guard pieces[0] == [.text(first)] else {
      throw Self.wrong(option, "begins with a placeholder", "the first word is the program")
    }
    program = first
    self.pieces = pieces
  }

  /// Whether it has this placeholder.
  package func has(_ placeholder: Placeholder) -> Bool { pieces.joined().contains(.placeholder(placeholder)) }

  /// The words after the program, with all values put in. Nil where a value would begin a word with a dash: a program
  /// would take it for an option.
  package func arguments(_ values: [Placeholder: String]) -> [String]? {
    var words: [String] = []
    for word in pieces.dropFirst() {
      var text = ""
      for (place, piece) in word.enumerated() {
        switch piece {
        case .text(let part): text += part
        case .placeholder(let name):
          let value = values[name] ?? ""
          if place == 0, value.utf8.first == UInt8(ascii: "-") { return nil }
          text += value
        }
      }
      words.append(text)
    }
    return words
  }

  private static func words(of text: String, _ option: String) throws(HopdError) -> [String] {
    guard let words = ShellWords.split(text, escapedInQuotes: "\"\\") else {
      throw wrong(option, "ends within a quote", "close every ' and \"")
    }
    guard !text.utf8.contains(0) else { throw wrong(option, "has a NUL character", "leave it out") }
    return words
  }

  /// Braces around anything but a placeholder's name are literal.
  private static func pieces(of word: String, _ option: String) throws(HopdError) -> [Piece] {
    var pieces: [Piece] = []
    var (text, rest) = ("", word[...])
    while let brace = rest.firstIndex(of: "{") {
      text += rest[..<brace]
      let after = rest[rest.index(after: brace)...]
      let name = after.prefix { $0.isLowercase || $0 == "-" }
      guard !name.isEmpty, name.endIndex < after.endIndex, after[name.endIndex] == "}" else {
        text.append("{")
        rest = after
        continue
      }
      guard let known = Placeholder(rawValue: String(name)) else {
        let all = Placeholder.allCases.map { "{\($0.rawValue)}" }.joined(separator: ", ")
        throw wrong(option, "has an unknown placeholder {\(name)}", "there are \(all)")
      }
      if !text.isEmpty { pieces.append(.text(text)) }
      pieces.append(.placeholder(known))
      text = ""
      rest = after[after.index(after: name.endIndex)...]
    }
    text += rest
    if !text.isEmpty || pieces.isEmpty { pieces.append(.text(text)) }
    return pieces
  }

  static func wrong(_ option: String, _ what: String, _ hint: String) -> HopdError {
    HopdError(.usage, "\(option) \(what)".printableLine, hint: hint)
  }
}
