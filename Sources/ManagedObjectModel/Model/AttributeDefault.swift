// The text of a default in `.xcdatamodel` XML and the value that Apple's compiler makes of it
// (docs/formats/model-files.md, "Default values"; found by comparing sources with compiled models).

extension AttributeDefault {
  /// The default for an attribute of `type` with `text` as `defaultValueString`; nil where it has none.
  ///
  /// `interval` is `defaultDateTimeInterval`, the truth for dates; their text is in the language of the editor.
  package init?(text: String?, interval: String?, type: AttributeType) {
    if type == .date {
      guard let seconds = interval.flatMap({ Double($0) }), seconds.isFinite else { return nil }
      self = .date(seconds)
      return
    }
    guard let text, !text.isEmpty || type == .string else { return nil }
    switch type {
    case .integer16, .integer32, .integer64: self = .integer(Self.leadingInteger(text))
    case .boolean: self = .boolean(Self.isTrue(text))
    case .double:
      let number = Double(text) ?? 0
      self = .double(number.isFinite ? number : 0)
    case .float:
      // Kept with the precision that the value will have.
      let number = Float(text) ?? 0
      self = .double(number.isFinite ? Double(number) : 0)
    case .decimal: self = .decimal(DecimalText.normalized(text) ?? "0")
    case .string: self = .string(text)
    case .uri: self = .string(text)
    case .uuid:
      guard let bytes = Self.uuidBytes(text) else { return nil }
      self = .uuid(bytes)
    case .undefined, .date, .binary, .transformable, .objectID, .composite: return nil
    }
  }

  /// The number at the beginning of the text; 0 where there is none ("YES" compiled to 0, ten times).
  private static func leadingInteger(_ text: String) -> Int64 {
    let trimmed = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }
    let isNegative = trimmed.first == UInt8(ascii: "-")
    let digits = isNegative || trimmed.first == UInt8(ascii: "+") ? trimmed.dropFirst() : trimmed
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

  /// YES, true and numbers other than 0.
  private static func isTrue(_ text: String) -> Bool {
    let rest = text.utf8.drop { $0 == 0x20 || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") || $0 == 0x30 }
    guard let first = rest.first else { return false }
    return "YyTt123456789".utf8.contains(first)
  }

  /// `8-4-4-4-12` hexadecimal digits as 16 bytes.
  private static func uuidBytes(_ text: String) -> [UInt8]? {
    // Most texts that are no UUID are told by their length, however long they are.
    guard text.utf8.count == 36 else { return nil }
    let groups = text.split(separator: "-", omittingEmptySubsequences: false)
    guard groups.map(\.utf8.count) == [8, 4, 4, 4, 12] else { return nil }
    let digits = groups.joined().utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count == 32 else { return nil }
    return stride(from: 0, to: 32, by: 2).map { UInt8(truncatingIfNeeded: digits[$0] << 4 | digits[$0 + 1]) }
  }
}
