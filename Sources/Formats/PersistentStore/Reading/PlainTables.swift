// Checks that the tables of a store are plain tables. Core Data's consist of names and types only; with a virtual
// table, a view in a table's place or a computed column, merely reading a row would run a stranger's code.

import Diagnostics
import SQLite

extension StoreReader {
  /// Refuses a store in which an object with a name of Core Data's form is not a plain table.
  ///
  /// Called before the first row is read. Texts of tables that Core Data made contain none of the refused words (40
  /// stores of fw 419 to 1344). R-Tree indexes are virtual tables of SQLite's own
  /// (docs/formats/store-layout.md, "R-Tree indexes"): `Z_`, the name of an entity, and another.
  package static func requirePlainTables(_ objects: [SchemaObject], at place: Place) throws(HopdError) {
    for object in objects {
      if object.type == "table" || object.type == "view", isFunctionName(object.name) {
        throw HopdError(
          .schemaForeign, "the \(object.type) \(object.name) has the name of a table that SQLite computes", at: place,
          hint: "rename or drop it with the program that created it, or restore a backup")
      }
      guard isCoreDataName(object.name), !(object.isRTree && isIndexName(object.name)) else { continue }
      let text = object.sql ?? ""
      let problem: String? =
        switch object.type {
        case "table" where !text.uppercased().hasPrefix("CREATE TABLE"): "is not a plain table"
        case "table": foreignWord(in: text).map { "has a column that is more than a name and a type: \($0)" }
        case "view": "is a view"
        default: nil
        }
      guard let problem else { continue }
      throw HopdError(
        .schemaForeign, "\(object.name) \(problem), which no table of Core Data does", at: place,
        hint: "open it with the program that changed its tables and undo that, or restore a backup")
    }
  }

  /// Whether a name would hide one of SQLite's own from statements, so that a stranger's table would describe tables to
  /// them.
  private static func isFunctionName(_ name: String) -> Bool {
    let lower = name.prefix(7).lowercased()
    return lower == "pragma_" || lower.hasPrefix("json_")
  }

  /// Whether a name has the form of Core Data's names for tables of entities, joins and bookkeeping.
  private static func isCoreDataName(_ name: String) -> Bool {
    let upper = name.prefix(5).uppercased()
    return upper.hasPrefix("Z") && upper != "Z_RT_"
  }

  /// Whether a name has the form of an index, which no table of the bookkeeping has.
  private static func isIndexName(_ name: String) -> Bool { name.hasPrefix("Z_") && name.dropFirst(2).contains("_") }

  private static let foreignWords: Set<String> = ["AS", "CHECK", "COLLATE", "DEFAULT", "GENERATED"]

  /// The first word of a table's text that makes SQLite compute a value, or compare in another way than by type.
  private static func foreignWord(in text: String) -> String? {
    var word: [UInt8] = []
    var closing: UInt8?
    func foreign() -> String? {
      // The first letters and the lengths of the words of the list: most words are not compared.
      guard let first = word.first, "ACDGacdg".utf8.contains(first), 2...9 ~= word.count else { return nil }
      let text = String(decoding: word, as: UTF8.self).uppercased()
      return foreignWords.contains(text) ? text : nil
    }
    for byte in text.utf8 {
      if let end = closing {
        if byte == end { closing = nil }
        continue
      }
      if byte >= 0x80 || byte == UInt8(ascii: "$") || SQLiteIdentifier.isPlain(byte) {
        word.append(byte)
        continue
      }
      if let found = foreign() { return found }
      word.removeAll(keepingCapacity: true)
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "`"): closing = byte
      case UInt8(ascii: "["): closing = UInt8(ascii: "]")
      default: break
      }
    }
    return foreign()
  }
}

extension SchemaObject {
  /// Whether it is a virtual table of SQLite's R-Tree module, and of no other.
  ///
  /// SQLite keeps the text after the words CREATE VIRTUAL TABLE as it was typed. The words of the module alone prove
  /// nothing: they may be in a default value of a plain table, and all data in that table would be lost.
  package var isRTree: Bool {
    let start = "CREATE VIRTUAL TABLE "
    guard type == "table", let sql, sql.hasPrefix(start) else { return false }
    let text = sql.dropFirst(start.count)
    guard let written = [name, SQLiteIdentifier.quoted(name)].first(where: { text.hasPrefix($0) }) else { return false }
    let words = text.dropFirst(written.count).split(maxSplits: 2) { $0.isWhitespace || $0 == "(" }
    return words.count == 3 && text.dropFirst(written.count).first?.isWhitespace == true
      && words[0].uppercased() == "USING" && words[1].uppercased() == "RTREE"
  }
}
