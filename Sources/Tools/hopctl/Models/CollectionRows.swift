// What rows of a store show about a form on which no hash decides: SwiftData keeps an array either as a keyed archive
// of JSON text (Transformable) or as that text itself (Binary) (docs/formats/swiftdata-source.md, "Values"). Only the
// kind of the first element is inspected, and no value leaves this file.

import Diagnostics
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite
import SwiftDataSource

/// Rows of one store.
struct CollectionRows {
  private let reader: StoreReader
  private let frameworkVersion: Int64
  private let numbers: [String: Int64]

  private static let mostRows = 1000
  private static let mostBytes = 1 << 20

  init(_ reader: StoreReader) throws {
    self.reader = reader
    frameworkVersion = try reader.metadata().frameworkVersion
    numbers = Dictionary(try reader.primaryKeys().map { ($0.name, $0.number) }) { first, _ in first }
  }

  /// Returns what the rows show about a form, with the property; nil if there is no such row, or they differ.
  func reading(of open: Calibration.OpenForm) throws -> (alternative: String, property: String)? {
    guard Set(open.form.alternatives) == [Storage.text.alternative, Storage.archive.alternative] else { return nil }
    let schema = StoreSchema(model: open.model, frameworkVersion: frameworkVersion)
    var found: Set<Storage> = []
    var property: String?
    for place in open.places {
      guard let entity = place.entity, let name = place.property, let number = numbers[entity],
        let (table, column) = Self.column(entity, name, schema)
      else { continue }
      guard try reader.columns(of: table).contains(where: { $0.name == column }) else { continue }
      let values = try reader.connection.rows(
        "SELECT \(SQLiteIdentifier.quoted(column)) FROM \(reader.qualified(table)) WHERE Z_ENT = ? "
          + "AND length(\(SQLiteIdentifier.quoted(column))) BETWEEN 3 AND \(Self.mostBytes) LIMIT \(Self.mostRows)",
        [.integer(number)]
      ) { $0.blob(at: 0) ?? [] }
      let shown = values.compactMap { Self.storage(of: $0, as: open.form) }
      if !shown.isEmpty, property == nil { property = "\(entity).\(name)" }
      found.formUnion(shown)
    }
    guard found.count == 1, let only = found.first, let property else { return nil }
    return (only.alternative, property)
  }

  private static func column(_ entity: String, _ name: String, _ schema: StoreSchema) -> (String, String)? {
    for table in schema.tables where table.entities.contains(entity) {
      for column in table.columns {
        if case .attribute(_, name) = column.role { return (table.name, column.name) }
      }
    }
    return nil
  }

  // MARK: Values

  private enum Storage: Hashable {
    case archive
    case text

    var alternative: String { self == .archive ? "transformable" : "binary" }
  }

  /// The kind of a JSON value, by its first character.
  private enum Kind: Hashable {
    case object, array, string, number, boolean
  }

  /// How a value is stored; nil if it could be a value of another form as well.
  private static func storage(of value: [UInt8], as form: UnprovenForm) -> Storage? {
    if let top = kind(value[...]) { return fits(value, top, form) ? .text : nil }
    guard value.starts(with: Array("bplist00".utf8)), let root = try? KeyedArchive.decode(value).rootValue(),
      case .data(let text) = root, let top = kind(text[...]), fits(text, top, form)
    else { return nil }
    // Arrays of String and of Int are archives too, and may have been here before the enum was.
    return form.name.hasPrefix("array of an enum with raw values") ? nil : .archive
  }

  /// Whether JSON text has the shape of a form; an empty collection has no shape.
  private static func fits(_ text: [UInt8], _ top: Kind, _ form: UnprovenForm) -> Bool {
    if form.name.hasPrefix("dictionary") { return top == .object }
    guard top == .array, let open = text.firstIndex(of: UInt8(ascii: "[")), let element = kind(text[(open + 1)...])
    else { return false }
    switch form.name.split(separator: " ").dropFirst(2).first ?? "" {
    case "a", "colors": return element == .object
    case "an": return form.name.contains("without") ? element == .object : element == .string || element == .number
    case "arrays": return element == .array
    case "Bool": return element == .boolean
    case "UUID", "URL", "Character": return element == .string
    case "optionals", "": return true
    default: return element == .number
    }
  }

  private static func kind(_ text: ArraySlice<UInt8>) -> Kind? {
    guard let first = text.first(where: { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }) else { return nil }
    return switch first {
    case UInt8(ascii: "{"): .object
    case UInt8(ascii: "["): .array
    case UInt8(ascii: "\""): .string
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): .number
    case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
    default: nil
    }
  }
}
