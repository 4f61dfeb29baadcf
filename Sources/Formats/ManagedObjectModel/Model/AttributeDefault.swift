// Converts the text of a default in `.xcdatamodel` XML to the value that Apple's compiler makes of it
// (docs/formats/model-files.md, "Default values"; found by comparing sources with compiled models).

extension AttributeDefault {
  /// The default of an attribute of `type` with `text` as `defaultValueString`; nil where it has none.
  ///
  /// `interval` is `defaultDateTimeInterval`, which decides for dates; their text is in the language of the editor.
  package init?(text: String?, interval: String?, type: AttributeType) {
    if type == .date {
      guard let seconds = interval.flatMap({ Double($0) }), seconds.isFinite else { return nil }
      self = .date(seconds)
      return
    }
    guard let text, !text.isEmpty || type == .string else { return nil }
    switch type.form {
    case .integer: self = .integer(Self.leadingInteger(text))
    case .boolean: self = .boolean(Self.isTrue(text))
    // Rounded to the precision of the stored value.
    case .real: self = .double(type.traits.real(text) ?? 0)
    case .decimal: self = .decimal(DecimalText.normalized(text) ?? "0")
    case .string, .uri: self = .string(text)
    case .uuid:
      guard let bytes = UUIDText.bytes(of: text) else { return nil }
      self = .uuid(bytes)
    case .other, .date, .binary, .transformable: return nil
    }
  }

  /// The number at the beginning of the text; 0 if there is none ("YES" compiled to 0, ten times).
  private static func leadingInteger(_ text: String) -> Int64 {
    let trimmed = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }
    return leadingInteger(trimmed)
  }

  /// The number at the beginning of the text, with its sign; clamped to 64 bits.
  package static func leadingInteger(_ text: Substring.UTF8View) -> Int64 {
    let isNegative = text.first == UInt8(ascii: "-")
    let digits = isNegative || text.first == UInt8(ascii: "+") ? text.dropFirst() : text
    var value: Int64 = 0
    for digit in digits {
      guard (0x30...0x39).contains(digit) else { break }
      let (shifted, overflow) = value.multipliedReportingOverflow(by: 10)
      let step = Int64(digit) - 0x30
      let (sum, carry) = isNegative ? shifted.subtractingReportingOverflow(step) : shifted.addingReportingOverflow(step)
      if overflow || carry { return isNegative ? .min : .max }
      value = sum
    }
    return value
  }

  /// Whether the text is YES, true or a number other than 0.
  private static func isTrue(_ text: String) -> Bool {
    let rest = text.utf8.drop { $0 == 0x20 || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") || $0 == 0x30 }
    guard let first = rest.first else { return false }
    return "YyTt123456789".utf8.contains(first)
  }
}
