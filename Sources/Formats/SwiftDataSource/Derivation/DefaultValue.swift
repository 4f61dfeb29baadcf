// Defaults. They do not enter the hash, but a migration needs them. The model has the initial value of the property, as
// it was when the schema was made: a value that is computed is another one in each process of the app.

import ManagedObjectModel

/// Reads defaults.
enum DefaultValue {
  /// Returns the default of an attribute; an object that only the app can make, where the value is not a constant.
  static func of(_ value: SourceExpression, type: AttributeType) -> AttributeDefault? {
    if case .none = value { return nil }
    if case .cast(let inner, _) = value { return of(inner, type: type) }
    return constant(value, type) ?? .archived(className: className(of: value))
  }

  private static func constant(_ value: SourceExpression, _ type: AttributeType) -> AttributeDefault? {
    switch (type.form, value) {
    case (.integer, .integer(let text)): Int64(text).map { .integer($0) }
    case (.boolean, .boolean(let value)): .boolean(value)
    case (.real, .integer(let text)), (.real, .real(let text)): Double(text).map { .double(rounded($0, type)) }
    case (.decimal, .integer(let text)), (.decimal, .real(let text)):
      DecimalText.normalized(text).map { .decimal($0) }
    case (.decimal, .call(.path(["Decimal"]), let arguments)) where arguments.count == 1:
      arguments[0].label == nil ? constant(arguments[0].value, type) : nil
    case (.transformable, .array([])), (.transformable, .call(.type(.array), [])): .binary(emptyArray)
    case (.string, .string(let text)): .string(text)
    case (.string, .call(.path(["String"]), [])): .string("")
    case (.binary, .call(.path(["Data"]), [])): .binary([])
    case (.date, .path(["Date", "distantPast"])), (.date, .path(["", "distantPast"])): .date(-63_114_076_800)
    case (.date, .path(["Date", "distantFuture"])), (.date, .path(["", "distantFuture"])): .date(63_113_904_000)
    case (.date, .call(.path(let path), let arguments)) where arguments.count == 1 && isDate(path):
      date(arguments[0])
    case (.integer, .path(let path)) where path.last == "zero": .integer(0)
    case (.real, .path(let path)) where path.last == "zero": .double(0)
    case (.decimal, .path(let path)) where path.last == "zero": .decimal("0")
    default: nil
    }
  }

  private static func isDate(_ path: [String]) -> Bool { path == ["Date"] || path == ["", "init"] }

  private static func rounded(_ number: Double, _ type: AttributeType) -> Double { type.traits.rounded(number) }

  /// Seconds since 1970 or 2001 as seconds since 2001.
  private static func date(_ argument: SourceArgument) -> AttributeDefault? {
    let number: Double?
    switch argument.value {
    case .integer(let text), .real(let text): number = Double(text)
    default: number = nil
    }
    guard let number else { return nil }
    switch argument.label {
    case "timeIntervalSinceReferenceDate": return .date(number)
    case "timeIntervalSince1970": return .date(number - 978_307_200)
    default: return nil
    }
  }

  /// An empty array as SwiftData stores it: the text `[]` in a keyed archive (38 of 38 rows of one store, fw 1327).
  private static let emptyArray: [UInt8] = {
    let text =
      "bplist00\u{d4}\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\nX$versionY$archiverT$topX$objects\u{12}\0\u{1}\u{86}"
      + "\u{a0}_\u{10}\u{f}NSKeyedArchiver\u{d1}\u{8}\tTroot\u{80}\u{1}\u{a2}\u{b}\u{c}U$nullB[]\u{8}\u{11}\u{1a}$)"
      + "27ILQSV\\\0\0\0\0\0\0\u{1}\u{1}" + String(repeating: "\0", count: 7) + "\r"
      + String(repeating: "\0", count: 15)
      + "_"
    // Each character is a byte.
    return text.unicodeScalars.map { UInt8($0.value) }
  }()

  /// A name for a value that only the app can make.
  private static func className(of value: SourceExpression) -> String {
    switch value {
    case .array: "NSArray"
    case .call(.path(let path), _): path.first { !$0.isEmpty } ?? "init"
    case .path(let path): path.joined(separator: ".")
    default: value.text
    }
  }
}
