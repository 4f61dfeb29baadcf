// Writes one stored value as JSON, by its type in the model (docs/formats/store-layout.md, "Values in columns"). A
// value of another storage class than the type requires is shown in its own class, never dropped: dumps are also for
// damaged stores.

import ManagedObjectModel
import PropertyLists
import SQLite

/// Values of attributes as JSON.
enum AttributeText {
  static func write(
    _ value: SQLiteValue, of attribute: Attribute, binary: BinaryValues, isExact: Bool, into lines: inout JSONLines
  ) throws {
    switch (attribute.type, value) {
    case (_, .null): try lines.raw("null")
    case (.boolean, .integer(0)): try lines.raw("false")
    case (.boolean, .integer(1)): try lines.raw("true")
    case (.date, .integer(let seconds)): try write(date: Double(seconds), isExact: isExact, into: &lines)
    case (.date, .real(let seconds)): try write(date: seconds, isExact: isExact, into: &lines)
    // As text, so that readers do not convert it to a double.
    case (.decimal, .integer(let number)): try lines.string(String(number))
    case (.decimal, .real(let number)): try lines.string(decimal(number))
    case (.uuid, .blob(let bytes)) where bytes.count == 16: try lines.string(UUIDText.text(of: bytes))
    case (.binary, .blob(let bytes)) where attribute.hasExternalForm: try binary.write(external: bytes, into: &lines)
    case (.binary, .blob(let bytes)), (.transformable, .blob(let bytes)), (.uuid, .blob(let bytes)):
      try binary.write(bytes[...], into: &lines)
    case (_, .blob(let bytes)):
      // Base64 would look like the text or the number that belongs there.
      try lines.raw("{\"blob\":")
      try binary.write(bytes[...], into: &lines)
      try lines.raw("}")
    case (_, .integer(let number)): try lines.raw(String(number))
    case (_, .real(let number)): try lines.number(number)
    case (_, .text(let text)): try lines.string(text)
    }
  }

  /// Seconds stay a number if RFC 3339 cannot write the year; with `isExact` also if the text means another number.
  private static func write(date seconds: Double, isExact: Bool, into lines: inout JSONLines) throws {
    guard let text = DateText.rfc3339(secondsSince2001: seconds),
      !isExact || DateText.secondsSince2001(rfc3339: text) == seconds
    else { return try lines.number(seconds) }
    try lines.string(text)
  }

  /// Writes text that is not UTF-8 as its bytes: two different texts must not look alike.
  static func write(invalidText bytes: [UInt8], into lines: inout JSONLines) throws {
    try lines.raw("{\"invalidText\":")
    try lines.string(Base64.encode(bytes[...]))
    try lines.raw("}")
  }

  private static func decimal(_ number: Double) -> String {
    if number.isNaN { return "NaN" }
    if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
    let text = String(number)
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
