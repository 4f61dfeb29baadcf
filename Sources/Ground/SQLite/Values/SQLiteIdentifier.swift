/// The only place where names become SQL text.
///
/// Table and column names come from strangers' models, so every generated statement writes them with these functions.
package enum SQLiteIdentifier {
  /// The name in double quotes, inner quotes doubled: always safe.
  ///
  /// SQL text cannot contain NUL; the readers of models refuse names with one.
  package static func quoted(_ name: String) -> String { enclosed(name, in: UInt8(ascii: "\"")) }

  /// A schema's name and a dot, to precede a table's name; empty without a schema.
  package static func prefix(_ schema: String?) -> String { schema.map { quoted($0) + "." } ?? "" }

  /// The name as Core Data writes it into schema text: bare where SQL allows that, quoted otherwise.
  ///
  /// Core Data's names begin with Z or A and are never keywords, but for the column REFLEXIVE
  /// (docs/formats/store-layout.md); all others are quoted.
  package static func bareIfPossible(_ name: String) -> String {
    let isLikeCoreData =
      name == "REFLEXIVE" || name.utf8.count > 1 && (name.utf8.first.map("ZA".utf8.contains) ?? false)
    return isLikeCoreData && name.utf8.allSatisfy(isPlain) && !keywordsFromAorZ.contains(name.uppercased())
      ? name : quoted(name)
  }

  /// Whether the byte is an ASCII letter or digit, or `_`.
  package static func isPlain(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) || byte == 0x5f
  }

  /// A string as an SQL literal.
  package static func literal(_ text: String) -> String { enclosed(text, in: UInt8(ascii: "'")) }

  /// Works on bytes, as SQLite does: a mark followed by a combining character is not a Character of its own, but still
  /// a mark.
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
