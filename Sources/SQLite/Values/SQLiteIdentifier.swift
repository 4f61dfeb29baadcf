/// The one place where names become SQL text.
///
/// Table and column names come from strangers' models, so every generated statement writes them through here.
package enum SQLiteIdentifier {
  /// The name in double quotes, quotes inside doubled: always safe.
  ///
  /// A NUL cannot be in SQL text; names with one are refused where models are read.
  package static func quoted(_ name: String) -> String { enclosed(name, in: UInt8(ascii: "\"")) }

  /// The name as Core Data writes it into schema text: bare where SQL allows that, quoted otherwise.
  ///
  /// Core Data's names begin with Z or A and are never keywords (docs/formats/store-layout.md); everything else is
  /// quoted.
  package static func bareIfPossible(_ name: String) -> String {
    let bytes = Array(name.utf8)
    guard let first = bytes.first, first == UInt8(ascii: "Z") || first == UInt8(ascii: "A"), bytes.count > 1 else {
      return quoted(name)
    }
    let isPlain = bytes.allSatisfy {
      ($0 >= 0x30 && $0 <= 0x39) || ($0 >= 0x41 && $0 <= 0x5a) || ($0 >= 0x61 && $0 <= 0x7a) || $0 == 0x5f
    }
    return isPlain && !keywordsFromAorZ.contains(name.uppercased()) ? name : quoted(name)
  }

  /// A string as an SQL literal.
  package static func literal(_ text: String) -> String { enclosed(text, in: UInt8(ascii: "'")) }

  /// By bytes, as SQLite reads them: a mark that a combining character follows is no character of its own, and still a
  /// mark.
  private static func enclosed(_ text: String, in mark: UInt8) -> String {
    let side = String(UnicodeScalar(mark))
    guard text.utf8.contains(mark) else { return side + text + side }
    var bytes = [mark]
    bytes.reserveCapacity(text.utf8.count + 8)
    for byte in text.utf8 {
      bytes.append(byte)
      if byte == mark { bytes.append(mark) }
    }
    bytes.append(mark)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// SQLite's keywords that begin with A (none begins with Z), from its list of keywords (lang_keywords.html).
  private static let keywordsFromAorZ: Set<String> = [
    "ABORT", "ACTION", "ADD", "AFTER", "ALL", "ALTER", "ALWAYS", "ANALYZE", "AND", "AS", "ASC", "ATTACH",
    "AUTOINCREMENT",
  ]
}
