// Reads XML property lists: Xcode's settings such as `.xccurrentversion`. Built on XMLReader, which refuses hostile
// documents; Apple's DOCTYPE is allowed, because no external entity is ever fetched.

import Diagnostics

/// Builds the value of one XML property list from its events, which may be a part of another document's.
package final class XMLPropertyListReader: XMLEventHandler {
  private enum Container {
    case plist(PropertyListValue?)
    case array([PropertyListValue])
    case dictionary([String: PropertyListValue], key: String?)
    /// An element that contains only text, with its name.
    case scalar(String, text: String)
  }

  private let limits: PropertyListLimits
  private let place: Place
  private var stack: [Container] = []
  /// The value, when `</plist>` was read.
  package private(set) var result: PropertyListValue?
  private var values = 0

  /// Creates a reader of the events from `<plist>` to `</plist>`.
  package init(limits: PropertyListLimits, place: Place) {
    self.limits = limits
    self.place = place
  }

  /// The value inside `<plist>`.
  static func decode(
    _ bytes: [UInt8], limits: PropertyListLimits, at place: Place
  ) throws(HopdError) -> PropertyListValue {
    let reader = XMLPropertyListReader(limits: limits, place: place)
    // Xcode's XML lists take kilobytes, and large values are in binary ones: a limit of 4 MiB keeps a flood of
    // attributes small. One extra level for `<plist>` and one for the scalar inside the deepest container.
    let size = min(limits.maximumBytes, 4 << 20)
    let xml = XMLLimits(
      maximumBytes: size, maximumDepth: limits.maximumDepth + 2, maximumAttributes: 16, maximumTextBytes: size)
    try XMLReader.read(bytes, limits: xml, at: place, to: reader)
    guard let result = reader.result else {
      throw HopdError(.damagedPropertyList, "the property list is empty", at: place)
    }
    return result
  }

  package func startElement(_ name: String, attributes: [XMLAttribute], at position: XMLPosition) throws(HopdError) {
    if case .scalar(let outer, _)? = stack.last {
      throw damaged("<\(outer)> contains an element; only text is allowed", position)
    }
    if stack.isEmpty {
      guard name == "plist" else {
        throw damaged("the document is not a property list; it begins with <\(name)>", position)
      }
      stack.append(.plist(nil))
      return
    }
    values += 1
    guard values <= limits.maximumValues else {
      throw HopdError(
        .propertyListTooLarge, "the property list has more than \(limits.maximumValues) values", at: place)
    }
    switch name {
    case "dict": stack.append(.dictionary([:], key: nil))
    case "array": stack.append(.array([]))
    case "key", "string", "integer", "real", "true", "false", "date", "data": stack.append(.scalar(name, text: ""))
    default: throw damaged("<\(name)> is not a property list element", position)
    }
  }

  package func text(_ text: String, at position: XMLPosition) throws(HopdError) {
    if case .scalar(let name, _)? = stack.last {
      // A text arrives whole, but a comment inside it splits it into two pieces.
      guard case .scalar(_, let before)? = stack.popLast() else { return }
      stack.append(.scalar(name, text: before + text))
    } else if !text.allSatisfy(\.isWhitespace) {
      throw damaged("text outside of a value", position)
    }
  }

  package func endElement(_ name: String, at position: XMLPosition) throws(HopdError) {
    switch stack.popLast() {
    case .plist(let value)?: result = value
    case .array(let elements)?: try add(.array(elements), position)
    case .dictionary(let entries, let key)?:
      guard key == nil else { throw damaged("the last key of a dictionary has no value", position) }
      if entries.count == 1, let number = entries["CF$UID"]?.integer, number >= 0 {
        try add(.uid(UInt64(number)), position)
      } else {
        try add(.dictionary(entries), position)
      }
    case .scalar("key", let text)?:
      guard case .dictionary(let entries, nil)? = stack.popLast() else {
        throw damaged("a key outside of a dictionary, or two keys in a row", position)
      }
      guard entries[text] == nil else { throw damaged("a dictionary has the same key twice", position) }
      stack.append(.dictionary(entries, key: text))
    case .scalar(let kind, let text)?: try add(try scalar(kind, text, position), position)
    case nil: break
    }
  }

  private func add(_ value: PropertyListValue, _ position: XMLPosition) throws(HopdError) {
    // The container is removed, changed and put back, so that it is never copied.
    switch stack.popLast() {
    case .plist(nil)?: stack.append(.plist(value))
    case .plist?: throw damaged("a property list has one value on top", position)
    case .array(var elements)?:
      elements.append(value)
      stack.append(.array(elements))
    case .dictionary(var entries, let key?)?:
      entries[key] = value
      stack.append(.dictionary(entries, key: nil))
    case .dictionary?: throw damaged("a value in a dictionary has no key", position)
    case .scalar?, nil: throw damaged("a value in the wrong place", position)
    }
  }

  private func scalar(_ kind: String, _ text: String, _ position: XMLPosition) throws(HopdError) -> PropertyListValue {
    switch kind {
    case "string":
      guard text.utf8.count <= limits.maximumValueBytes else { throw tooLong(position) }
      return .string(text)
    case "true": return .boolean(true)
    case "false": return .boolean(false)
    case "data":
      guard let content = Base64.decode(text.utf8) else { throw damaged("<data> is not base64", position) }
      guard content.count <= limits.maximumValueBytes else { throw tooLong(position) }
      return .data(content)
    default: break
    }
    // Numbers and dates are short; megabytes of digits would take seconds to inspect.
    let trimmed = text.trimmingXMLSpace
    guard trimmed.utf8.count <= 512 else {
      throw damaged("<\(kind)> holds a text of \(trimmed.utf8.count) bytes", position)
    }
    switch kind {
    case "integer":
      guard let number = Self.integer(trimmed) else { throw damaged("<integer> is not a 64-bit integer", position) }
      return .integer(number)
    case "real":
      guard let number = Double(trimmed) else { throw damaged("<real> is not a number", position) }
      return .real(number)
    default:
      guard let seconds = Self.date(trimmed) else { throw damaged("<date> is not a date", position) }
      return .date(seconds)
    }
  }

  /// Decimal, or hexadecimal after 0x, with a sign.
  private static func integer(_ text: String) -> Int64? {
    let negative = text.hasPrefix("-")
    let digits = negative || text.hasPrefix("+") ? text.dropFirst() : text[...]
    guard let first = digits.utf8.first, first != UInt8(ascii: "-"), first != UInt8(ascii: "+") else { return nil }
    if digits.hasPrefix("0x") || digits.hasPrefix("0X") {
      return Int64((negative ? "-" : "") + digits.dropFirst(2), radix: 16)
    }
    return Int64((negative ? "-" : "") + digits)
  }

  /// `YYYY-MM-DDTHH:MM:SSZ` as seconds since 2001-01-01 00:00 UTC.
  static func date(_ text: String) -> Double? {
    guard text.hasSuffix("Z") else { return nil }
    let negative = text.hasPrefix("-")
    let halves = text.dropLast().drop { $0 == "-" }.split(separator: "T", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    let day = halves[0].split(separator: "-", omittingEmptySubsequences: false).map { number($0) }
    let time = halves[1].split(separator: ":", omittingEmptySubsequences: false).map { number($0) }
    guard day.count == 3, time.count == 3, let year = day[0], let month = day[1], let date = day[2],
      let hour = time[0], let minute = time[1], let second = time[2],
      (1...12).contains(month), (1...31).contains(date), hour <= 24, minute <= 59, second <= 60
    else { return nil }
    // Days since 1970 of the proleptic Gregorian calendar, with the year beginning in March.
    let shifted = (negative ? -year : year) - (month <= 2 ? 1 : 0)
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + date - 1
    let days = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    return Double(days * 86_400 + hour * 3_600 + minute * 60 + second) - 978_307_200
  }

  /// Up to seven digits, so that no sum of them overflows.
  private static func number(_ text: Substring) -> Int? {
    guard (1...7).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text)
  }

  private func damaged(_ what: String, _ position: XMLPosition) -> HopdError {
    HopdError(.damagedPropertyList, "the XML property list is damaged: \(what)", at: position.place.filled(from: place))
  }

  private func tooLong(_ position: XMLPosition) -> HopdError {
    HopdError(
      .propertyListTooLarge, "a value of the property list has more than \(limits.maximumValueBytes) bytes",
      at: Place(line: position.line).filled(from: place))
  }
}

extension String {
  /// The text without spaces, tabs and line ends at both ends.
  fileprivate var trimmingXMLSpace: String {
    // Works on bytes: a text can have megabytes, and finding its characters takes far longer.
    let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0a || $0 == 0x0d }
    guard let first = utf8.firstIndex(where: { !isSpace($0) }), let last = utf8.lastIndex(where: { !isSpace($0) })
    else { return "" }
    return String(self[first...last])
  }
}
