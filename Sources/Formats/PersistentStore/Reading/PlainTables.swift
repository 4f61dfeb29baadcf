// Checks that the tables of a store are plain tables. Core Data's consist of names and types only; with a virtual
// table, a view in a table's place or a computed column, merely reading a row would run a stranger's code.

import Diagnostics
import SQLite

extension StoreReader {
  /// Refuses a store in which an object with a name of Core Data's form is not a plain table.
  ///
  /// Called before the first row is read. Texts of tables that Core Data made contain none of the refused words (40
  /// stores of fw 419 to 1344). R-Tree indexes are virtual tables with names of another form
  /// (docs/formats/store-layout.md, "R-Tree indexes").
  package static func requirePlainTables(_ objects: [SchemaObject], at place: Place) throws(HopdError) {
    for object in objects {
      if object.type == "table" || object.type == "view", isFunctionName(object.name) {
        throw HopdError(
          .schemaForeign, "the \(object.type) \(object.name) has the name of a table that SQLite computes", at: place,
          hint: "rename or drop it with the program that made it, or restore a backup")
      }
      guard isCoreDataName(object.name) else { continue }
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
