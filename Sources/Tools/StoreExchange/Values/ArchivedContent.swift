// The plain values in the archives of transformable attributes. Only values that every program has are taken out of an
// archive; an object of any other class stays the archive, because only the app knows its class.

import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite

/// Reads archives of transformable attributes.
struct ArchivedContent {
  let dates: DateForm

  /// The bounds of a nested value; one beyond them stays an archive.
  private static let deepest = 16
  private static let most = 10_000

  /// Returns the value of an archive: a text, number or date; lists and dictionaries as JSON; any other archive as
  /// `{"class":"…","base64":"…"}`.
  func exported(_ bytes: [UInt8]) throws -> SQLiteValue {
    let root = try? KeyedArchive.decode(bytes).rootValue()
    switch root {
    case .string(let text)?: return .text(text)
    case .integer(let number)?: return .integer(number)
    case .real(let number)?: return .real(number)
    case .boolean(let flag)?: return .integer(flag ? 1 : 0)
    case .date(let seconds)?: return ExportedValue(options: options, external: nil).date(seconds)
    case .data(let content)?: return .blob(content)
    case .object(let object)?:
      var count = 0
      if let plain = try? json(.object(object), depth: 0, count: &count) { return .text(plain) }
      return .text(try archive(bytes, className: object.className))
    case .null?, nil: return .text(try archive(bytes, className: nil))
    }
  }

  /// Returns the same as text: a column has one kind of values.
  func text(_ bytes: [UInt8]) throws -> String {
    switch try exported(bytes) {
    case .text(let text): text
    case .integer(let number): String(number)
    case .real(let number): String(number)
    case .blob(let content): Base64.encode(content)
    case .null: ""
    }
  }

  /// Whether a text of this type is a whole archive.
  func isArchive(_ text: String) -> Bool { text.utf8.starts(with: Self.archivePrefix.utf8) }

  private static let archivePrefix = "{\"class\":"

  private var options: ExportOptions {
    var options = ExportOptions()
    options.dates = dates
    return options
  }

  private func archive(_ bytes: [UInt8], className: String?) throws -> String {
    let name = try className.map(JSONLines.quoted) ?? "null"
    return "\(Self.archivePrefix)\(name),\"base64\":\"\(Base64.encode(bytes))\"}"
  }

  /// Returns a plain value as JSON; nil if it is none.
  private func json(_ value: ArchivedValue, depth: Int, count: inout Int) throws -> String? {
    count += 1
    guard depth < ArchivedContent.deepest, count < ArchivedContent.most else { return nil }
    switch value {
    case .null: return "null"
    case .string(let text): return try JSONLines.quoted(text)
    case .integer(let number): return String(number)
    case .real(let number): return number.isFinite ? String(number) : nil
    case .boolean(let flag): return flag ? "true" : "false"
    case .date(let seconds):
      return switch ExportedValue(options: options, external: nil).date(seconds) {
      case .text(let text): try JSONLines.quoted(text)
      case .real(let number) where number.isFinite: String(number)
      default: nil
      }
    case .data(let bytes): return "\"\(Base64.encode(bytes))\""
    case .object(let object): return try json(object, depth: depth, count: &count)
    }
  }

  private func json(_ object: ArchivedObject, depth: Int, count: inout Int) throws -> String? {
    if object.className == "NSUUID", case .data(let bytes) = try object.value("NS.uuidbytes"), bytes.count == 16 {
      return "\"\(UUIDText.text(of: bytes))\""
    }
    if object.className == "NSURL", try object.object("NS.base") == nil, let text = try object.string("NS.relative") {
      return try JSONLines.quoted(text)
    }
    if object.isList {
      var members: [String] = []
      for element in try object.elements() {
        guard let member = try json(element, depth: depth + 1, count: &count) else { return nil }
        members.append(member)
      }
      return "[\(members.joined(separator: ","))]"
    }
    guard object.isDictionary else { return nil }
    var members: [String] = []
    for (key, value) in try object.entries() {
      guard let name = key.string, let member = try json(value, depth: depth + 1, count: &count) else { return nil }
      members.append("\(try JSONLines.quoted(name)):\(member)")
    }
    return "{\(members.joined(separator: ","))}"
  }
}
