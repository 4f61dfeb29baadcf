// Values of data as the columns of a store have them, by the type of their attribute. A value that does not fit is an
// error of its row, never cut or rounded; messages never contain the value.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite

extension HopdError.Code {
  /// A row of data cannot become an object.
  package static let rowInvalid = HopdError.Code("row-invalid", exit: .dataError)
}

/// The form of dates in data.
enum ImportedDates: Hashable {
  case iso
  /// Units of that many seconds since 1970.
  case unix(Double)
  /// Seconds since 2001, as Core Data stores them.
  case reference
  /// A text in this pattern, with %Y %m %d %H %M %S.
  case pattern(String)

  /// The form in words.
  var words: String {
    switch self {
    case .iso: "iso, as 2026-11-28T10:00:00Z"
    case .unix(let unit): unit == 1 ? "unix" : "unix-ms"
    case .reference: "reference"
    case .pattern(let pattern): pattern
    }
  }
}

/// Converts cells.
struct ImportedValue {
  var dates = ImportedDates.iso
  /// Whether the data is hopctl's own, whose numbers are those of a store: nothing is rounded.
  var isExact = false
  /// Whether a whole number beyond its type's range stays, as a column holds it.
  var keepsNumbers = false

  /// Returns the value of a cell; binary content without the form of external storage.
  func stored(_ cell: DataCell, as attribute: Attribute) throws(HopdError) -> SQLiteValue {
    switch (cell, attribute.type.form) {
    case (.null, _): return .null
    case (.invalidText, _):
      throw HopdError(
        .rowInvalid, "\(attribute.name) is not UTF-8", at: Place(property: attribute.name),
        hint: "set encoding = \"windows-1252\" in the mapping, or convert the file")
    case (.storedText, _): throw unfit(attribute, "is not UTF-8")
    case (.list, _): throw unfit(attribute, "has several values")
    case (_, .integer): return .integer(try integer(cell, attribute))
    case (_, .boolean): return .integer(try boolean(cell, attribute))
    case (_, .real): return .real(try real(cell, attribute))
    case (_, .decimal): return try decimal(cell, attribute)
    case (_, .date): return .real(try date(cell, attribute))
    case (_, .string), (_, .uri):
      guard let text = cell.text else { throw unfit(attribute, "has bytes where text is needed") }
      return .text(text)
    case (_, .uuid): return .blob(try uuid(cell, attribute))
    case (.blob(let bytes), .binary): return .blob(bytes)
    case (_, .binary):
      guard case .text(let text) = cell, let bytes = Base64.decode(text.utf8) else {
        throw unfit(attribute, "is not base64")
      }
      return .blob(bytes)
    case (_, .transformable): return .blob(try archive(cell, attribute))
    case (_, .other): throw unfit(attribute, "has a value, and its type takes none")
    }
  }

  /// The error of a value.
  func unfit(_ attribute: Attribute, _ what: String) -> HopdError {
    HopdError(
      .rowInvalid, "\(attribute.name) \(what)", at: Place(property: attribute.name))
  }

  private func notA(_ attribute: Attribute) -> HopdError {
    unfit(attribute, "is not a value of type \(attribute.type.name)")
  }

  // MARK: Numbers

  private static func trimmed(_ text: String) -> String {
    var view = Substring(text)
    while let first = view.first, first == " " || first == "\t" { view.removeFirst() }
    while let last = view.last, last == " " || last == "\t" { view.removeLast() }
    return String(view)
  }

  private func integer(_ cell: DataCell, _ attribute: Attribute) throws(HopdError) -> Int64 {
    let number: Int64? =
      switch cell {
      case .integer(let number): number
      case .boolean(let flag): flag ? 1 : 0
      case .real(let number): Int64(exactly: number)
      case .text(let text), .number(let text): Self.integer(isExact ? text : Self.trimmed(text))
      default: nil
      }
    guard let number else { throw notA(attribute) }
    guard keepsNumbers || attribute.type.integers?.contains(number) ?? true else {
      throw unfit(attribute, "does not fit \(attribute.type.name)\(Self.range(of: attribute))")
    }
    return number
  }

  /// The range of an integer type, in words.
  private static func range(of attribute: Attribute) -> String {
    attribute.type.integers.map { " (\($0.lowerBound) to \($0.upperBound))" } ?? ""
  }

  /// A whole number, also as 5.0 or 5e3, which spreadsheets write.
  private static func integer(_ text: String) -> Int64? {
    if let number = Int64(text) { return number }
    guard isNumber(text), let number = Double(text), abs(number) < 9_007_199_254_740_992 else { return nil }
    return Int64(exactly: number)
  }

  /// Whether a text is a number in digits: Swift would take "inf" and hexadecimal, too.
  private static func isNumber(_ text: String) -> Bool {
    guard let parts = DecimalParts(text) else { return false }
    return parts.exponent.map { Int64($0) != nil } ?? true
  }

  private func boolean(_ cell: DataCell, _ attribute: Attribute) throws(HopdError) -> Int64 {
    switch cell {
    case .boolean(let flag): return flag ? 1 : 0
    case .text(let text) where !isExact:
      switch Self.trimmed(text).lowercased() {
      case "true", "yes", "y", "t": return 1
      case "false", "no", "n", "f": return 0
      default: return try integer(cell, attribute)
      }
    default: return try integer(cell, attribute)
    }
  }

  private func number(_ cell: DataCell) -> Double? {
    switch cell {
    case .integer(let number): return Double(number)
    case .real(let number): return number
    case .text(let text), .number(let text):
      let digits = Self.trimmed(text)
      switch digits {
      case "Infinity": return .infinity
      case "-Infinity": return -.infinity
      default: return Self.isNumber(digits) ? Double(digits) : nil
      }
    default: return nil
    }
  }

  private func real(_ cell: DataCell, _ attribute: Attribute) throws(HopdError) -> Double {
    guard let number = number(cell), !number.isNaN else { throw notA(attribute) }
    if isExact, number.isFinite || isInfinity(cell) { return number }
    guard let real = attribute.type.real(number), real.isFinite || isInfinity(cell) else {
      throw unfit(attribute, "does not fit \(attribute.type.name)")
    }
    return real
  }

  /// Whether a value is infinite as written: digits beyond the range are a mistake.
  private func isInfinity(_ cell: DataCell) -> Bool {
    switch cell {
    case .real: true
    case .text(let text): text.utf8.last == UInt8(ascii: "y")
    default: false
    }
  }

  /// NSDecimalNumber has 38 digits, and a column the number that SQLite makes of them.
  private func decimal(_ cell: DataCell, _ attribute: Attribute) throws(HopdError) -> SQLiteValue {
    switch cell {
    case .integer(let number): return .integer(number)
    case .text(let text), .number(let text):
      if let whole = Int64(Self.trimmed(text)) { return .integer(whole) }
    default: break
    }
    guard let number = number(cell), !number.isNaN, number.isFinite || isInfinity(cell) else { throw notA(attribute) }
    return .real(number)
  }

  // MARK: Dates, UUIDs, archives

  private func date(_ cell: DataCell, _ attribute: Attribute) throws(HopdError) -> Double {
    let seconds: Double? =
      switch (dates, cell) {
      case (.iso, .text(let text)):
        DateText.secondsSince2001(rfc3339: isExact ? text : Self.trimmed(text))
          ?? (isExact ? number(cell) : distantDate(cell))
      // A date that RFC 3339 cannot write is a number.
      case (.iso, _) where isExact: number(cell)
      case (.iso, _): number(cell).map { $0 - Double(DateText.secondsFrom1970) }
      case (.unix(let unit), _): number(cell).map { $0 * unit - Double(DateText.secondsFrom1970) }
      case (.reference, _): number(cell)
      case (.pattern(let pattern), _): cell.text.flatMap { DatePattern.seconds(of: Self.trimmed($0), in: pattern) }
      }
    guard let seconds, !seconds.isNaN else {
      guard !isExact else { throw notA(attribute) }
      throw HopdError(
        .rowInvalid, "\(attribute.name) is not a date of the form \(dates.words)", at: Place(property: attribute.name),
        hint: "set dates in the mapping, e.g. dates = \"%d.%m.%Y\", or correct the row")
    }
    return seconds
  }

  /// The Unix seconds of a date that RFC 3339 cannot write, as an export has them; nil for any other number, which may
  /// be a date in another form.
  private func distantDate(_ cell: DataCell) -> Double? {
    guard let seconds = number(cell).map({ $0 - Double(DateText.secondsFrom1970) }) else { return nil }
    return DateText.rfc3339(secondsSince2001: seconds) == nil ? seconds : nil
  }

  private func uuid(_ cell: DataCell, _ attribute: Attribute) throws(HopdError) -> [UInt8] {
    switch cell {
    case .blob(let bytes) where bytes.count == 16: return bytes
    case .text(let text):
      if let bytes = UUIDText.bytes(of: Self.trimmed(text)) { return bytes }
    default: break
    }
    throw notA(attribute)
  }

  private func archive(_ cell: DataCell, _ attribute: Attribute) throws(HopdError) -> [UInt8] {
    switch cell {
    case .blob(let bytes): return bytes
    case .text(let text):
      if isExact {
        guard let bytes = Base64.decode(text.utf8) else { throw unfit(attribute, "is not base64") }
        return bytes
      }
      // The form of an archive in an export; any other text is a value of its own.
      if text.hasPrefix("{\"class\":"), let node = try? JSONNode(Array(text.utf8)), let digits = node["base64"]?.string,
        let bytes = Base64.decode(digits.utf8)
      {
        return bytes
      }
      return Self.archive(of: .string(text))
    case .integer(let number): return Self.archive(of: .integer(number))
    case .boolean(let flag): return Self.archive(of: .boolean(flag))
    default:
      guard let number = number(cell) else { throw notA(attribute) }
      return Self.archive(of: Int64(exactly: number).map { .integer($0) } ?? .real(number))
    }
  }

  /// The keyed archive of a plain value, as Core Data's default transformer writes one.
  private static func archive(of value: PropertyListValue) -> [UInt8] {
    PropertyList.encodeBinary(
      .dictionary([
        "$version": .integer(100_000), "$archiver": .string("NSKeyedArchiver"),
        "$top": .dictionary(["root": .uid(1)]), "$objects": .array([.string("$null"), value]),
      ]))
  }
}

/// Reads dates by a pattern.
enum DatePattern {
  /// Returns the seconds since 2001 of a text; nil if it does not have the form.
  static func seconds(of text: String, in pattern: String) -> Double? {
    var rest = text.utf8[...]
    var fields: [UInt8: String] = [:]
    var letters = pattern.utf8[...]
    while let letter = letters.popFirst() {
      guard letter == UInt8(ascii: "%"), let field = letters.popFirst() else {
        guard rest.popFirst() == letter else { return nil }
        continue
      }
      let most = field == UInt8(ascii: "Y") ? 4 : 2
      let digits = rest.prefix(most).prefix { (0x30...0x39).contains($0) }
      guard !digits.isEmpty, field != UInt8(ascii: "Y") || digits.count == 4 else { return nil }
      let padding = String(repeating: "0", count: most - digits.count)
      fields[field] = padding + String(decoding: digits, as: UTF8.self)
      rest = rest.dropFirst(digits.count)
    }
    guard rest.isEmpty, let year = fields[UInt8(ascii: "Y")], let month = fields[UInt8(ascii: "m")],
      let day = fields[UInt8(ascii: "d")]
    else { return nil }
    let time = "HMS".utf8.map { fields[$0] ?? "00" }.joined(separator: ":")
    return DateText.secondsSince2001(rfc3339: "\(year)-\(month)-\(day)T\(time)Z")
  }

  /// Whether a pattern names year, month and day, and nothing that is not known.
  static func isValid(_ pattern: String) -> Bool {
    var letters = pattern.utf8[...]
    var fields: Set<UInt8> = []
    while let letter = letters.popFirst() {
      guard letter == UInt8(ascii: "%") else { continue }
      guard let field = letters.popFirst(), "YmdHMS".utf8.contains(field), fields.insert(field).inserted else {
        return false
      }
    }
    return fields.isSuperset(of: "Ymd".utf8)
  }
}
