// The classes \w, \d and \s, and what \b passes over, as ICU has them (docs/formats/expressions.md, "Strings"). ASCII
// is decided without Unicode's tables, because most texts have nothing else.

extension RegularPattern {
  /// What \w, \d or \s accepts, or with a capital letter every other character.
  struct CharacterClass: Sendable {
    enum Kind: Sendable { case word, digit, space }

    let kind: Kind
    let isNegated: Bool

    func contains(_ scalar: UInt32) -> Bool {
      let isMember =
        switch kind {
        case .word: RegularPattern.isWord(scalar)
        case .digit: RegularPattern.isDigit(scalar)
        case .space: RegularPattern.isSpace(scalar)
        }
      return isMember != isNegated
    }
  }

  /// Alphabetic, a mark, a decimal digit, connector punctuation, or one of the two characters that join letters.
  static func isWord(_ scalar: UInt32) -> Bool {
    if scalar < 0x80 {
      return (0x61...0x7a).contains(scalar | 0x20) || (0x30...0x39).contains(scalar) || scalar == 0x5f
    }
    guard let properties = Unicode.Scalar(scalar)?.properties else { return false }
    if properties.isAlphabetic { return true }
    switch properties.generalCategory {
    case .nonspacingMark, .spacingMark, .enclosingMark, .decimalNumber, .connectorPunctuation: return true
    default: return scalar == 0x200c || scalar == 0x200d
    }
  }

  static func isDigit(_ scalar: UInt32) -> Bool {
    if scalar < 0x80 { return (0x30...0x39).contains(scalar) }
    return Unicode.Scalar(scalar)?.properties.generalCategory == .decimalNumber
  }

  /// White_Space. ICU's guide leaves out U+000B and U+0085, its code does not.
  static func isSpace(_ scalar: UInt32) -> Bool {
    if scalar < 0x80 { return (0x09...0x0d).contains(scalar) || scalar == 0x20 }
    return Unicode.Scalar(scalar)?.properties.isWhitespace ?? false
  }

  /// Whether a character belongs to the one before it, so that \b looks past it: combining marks and format characters.
  static func isPassedOver(_ scalar: UInt32) -> Bool {
    guard scalar >= 0x80, let properties = Unicode.Scalar(scalar)?.properties else { return false }
    return properties.isGraphemeExtend || properties.generalCategory == .format
  }
}
