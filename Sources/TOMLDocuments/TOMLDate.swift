// Which bare values begin like a date. Of all bare values only these must be checked before the parser sees them: toml++
// 3.4 looks for a time behind a date without looking whether there is one.

/// The text forms of dates in TOML.
enum TOMLDate {
  /// Whether a bare value begins with a date and goes on: the only such that the parser does not refuse by itself.
  static func looksLikeOne(_ text: some Collection<UInt8>) -> Bool {
    guard let first = text.first, isDigit(first), text.contains(UInt8(ascii: "-")) else { return false }
    return text.contains { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: " ") || $0 | 0x20 == UInt8(ascii: "t") }
  }

  /// Whether the text, up to blanks at its end, is a date alone or one with a time and an offset.
  static func isOne(_ text: some BidirectionalCollection<UInt8>) -> Bool {
    var rest = text[...]
    while let last = rest.last, last == 32 || last == 9 { rest.removeLast() }
    var form = Form(rest: Array(rest)[...])
    guard form.takeDigits(4), form.take("-"), form.takeDigits(2), form.take("-"), form.takeDigits(2) else {
      return false
    }
    if form.rest.isEmpty { return true }
    guard form.take("Tt "), form.takeDigits(2), form.take(":"), form.takeDigits(2) else { return false }
    if form.take(":") {
      guard form.takeDigits(2) else { return false }
      if form.take(".") {
        guard form.takeDigits(1) else { return false }
        while form.takeDigits(1) {}
      }
    }
    if form.take("+-") {
      guard form.takeDigits(2), form.take(":"), form.takeDigits(2) else { return false }
    } else {
      _ = form.take("Zz")
    }
    return form.rest.isEmpty
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  /// What is left of a text that is taken from its begin.
  private struct Form {
    var rest: ArraySlice<UInt8>

    mutating func take(_ anyOf: String) -> Bool {
      guard let byte = rest.first, anyOf.utf8.contains(byte) else { return false }
      rest.removeFirst()
      return true
    }

    mutating func takeDigits(_ count: Int) -> Bool {
      guard rest.count >= count, rest.prefix(count).allSatisfy(TOMLDate.isDigit) else { return false }
      rest.removeFirst(count)
      return true
    }
  }
}
