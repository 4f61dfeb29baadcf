// Checks that a text of sqlite_master is one CREATE TRIGGER statement of that trigger. The text runs again in the
// migrated store. SQLite writes such texts itself, but a foreign file may contain anything: SQLite reads the first
// statement and ignores the rest.

import SQLite

extension SchemaTrigger {
  /// The beginning of every text of sqlite_master, whatever the original statement was.
  static let start = "CREATE TRIGGER "

  /// Whether the text creates a trigger of that name, and nothing else.
  static func isWhole(_ text: String, name: String) -> Bool {
    guard text.hasPrefix(start), !text.utf8.contains(0) else { return false }
    let rest = text.dropFirst(start.count)
    guard let written = [name, SQLiteIdentifier.quoted(name)].first(where: { rest.hasPrefix($0) }) else { return false }
    let body = Array(rest.dropFirst(written.count).utf8)
    guard let first = body.first, isSpace(first) else { return false }
    return endsOnce(body)
  }

  /// A trigger's statement ends with the first END after a semicolon (as for sqlite3_complete): nothing may follow.
  private static func endsOnce(_ text: [UInt8]) -> Bool {
    var place = 0
    var isBehindSemicolon = false
    while place < text.count {
      let byte = text[place]
      if isSpace(byte) {
        place += 1
      } else if let end = endOfComment(text, from: place) {
        place = end
      } else if byte == UInt8(ascii: ";") {
        isBehindSemicolon = true
        place += 1
      } else if let close = closingQuote(byte) {
        guard let end = text[(place + 1)...].firstIndex(of: close) else { return false }
        isBehindSemicolon = false
        place = end + 1
      } else {
        var end = place + 1
        if isWord(byte) { while end < text.count, isWord(text[end]) { end += 1 } }
        if isBehindSemicolon, String(decoding: text[place..<end], as: UTF8.self).uppercased() == "END" {
          return end == text.count
        }
        isBehindSemicolon = false
        place = end
      }
    }
    return false
  }

  private static func endOfComment(_ text: [UInt8], from place: Int) -> Int? {
    guard place + 1 < text.count else { return nil }
    switch (text[place], text[place + 1]) {
    case (UInt8(ascii: "-"), UInt8(ascii: "-")):
      return text[place...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? text.count
    case (UInt8(ascii: "/"), UInt8(ascii: "*")):
      var end = place + 2
      while end + 1 < text.count, text[end] != UInt8(ascii: "*") || text[end + 1] != UInt8(ascii: "/") { end += 1 }
      return min(end + 2, text.count)
    default: return nil
    }
  }

  /// The quote that closes one; a doubled quote inside counts as two adjacent strings, with the same result.
  private static func closingQuote(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): byte
    case UInt8(ascii: "["): UInt8(ascii: "]")
    default: nil
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) && byte != 0x0b }

  private static func isWord(_ byte: UInt8) -> Bool {
    SQLiteIdentifier.isPlain(byte) || byte == 0x24 || byte >= 0x80
  }
}
