// The text of a table as Core Data leaves it in sqlite_master: as created, or with columns that its in-place migrations
// have appended. The engine decides with it whether a table may be altered, and the verifier compares an altered one
// with it.

import SQLite

/// The parts of a table's text without constraints.
package struct TableText: Sendable, Hashable {
  /// The whole text.
  package let text: String
  /// "ZNAME VARCHAR" and so on, in the table's order.
  package let definitions: [String]

  /// Parses the text of `table`; nil unless it is, character by character, one that Core Data writes.
  ///
  /// `CREATE TABLE ZCAR ( A, B )` as created; `CREATE TABLE ZCAR ( A, B , C, D)` after C and D were appended; the name
  /// in quotes after `ALTER TABLE … RENAME` (docs/formats/store-layout.md, "Entity tables" and "Apple's migration in
  /// place"). The caller compares the definitions between the commas.
  package init?(_ text: String, table: String) {
    let names = [SQLiteIdentifier.bareIfPossible(table), SQLiteIdentifier.quoted(table)]
    guard let start = names.map({ "CREATE TABLE \($0) ( " }).first(where: text.hasPrefix), text.hasSuffix(")") else {
      return nil
    }
    let body = text.dropFirst(start.count).dropLast()
    var definitions: [String] = []
    // A created table has a space before the parenthesis, which stays in place when columns are appended.
    var spaces = 0
    for piece in Self.pieces(of: body) {
      if piece.hasSuffix(" ") { spaces += 1 }
      let definition = piece.hasSuffix(" ") ? piece.dropLast() : piece
      if definition.isEmpty || definition.hasSuffix(" ") || definition.hasPrefix(" ") { return nil }
      definitions.append(String(definition))
    }
    guard spaces == 1 else { return nil }
    self.text = text
    self.definitions = definitions
  }

  /// Returns the text of a table after `ALTER TABLE … RENAME TO`: SQLite writes the new name in quotes.
  package static func renaming(_ text: String, from table: String, to name: String) -> String {
    replacingName(in: text, of: table, by: SQLiteIdentifier.quoted(name))
  }

  /// Returns the text with the table's name as in a created table: without quotes, if possible.
  package static func withPlainName(_ text: String, of table: String) -> String {
    replacingName(in: text, of: table, by: SQLiteIdentifier.bareIfPossible(table))
  }

  private static func replacingName(in text: String, of table: String, by name: String) -> String {
    for written in [SQLiteIdentifier.bareIfPossible(table), SQLiteIdentifier.quoted(table)] {
      let start = "CREATE TABLE \(written) "
      if text.hasPrefix(start) { return "CREATE TABLE \(name) " + text.dropFirst(start.count) }
    }
    return text
  }

  private static func pieces(of body: Substring) -> [Substring] {
    var pieces: [Substring] = []
    var rest = body
    while let comma = rest.firstRange(of: ", ") {
      pieces.append(rest[..<comma.lowerBound])
      rest = rest[comma.upperBound...]
    }
    return pieces + [rest]
  }

  /// Returns the definition of a column in such a text.
  package static func definition(of column: String, type: String) -> String {
    "\(SQLiteIdentifier.bareIfPossible(column)) \(type)"
  }

  /// Returns the text of a table after one `ALTER TABLE … ADD COLUMN` per definition: SQLite writes each before the
  /// closing parenthesis, as in `…ZDATA BLOB , ZNONCE BLOB)` (docs/formats/store-layout.md, "Apple's migration in
  /// place").
  package static func appending(_ definitions: [String], to text: String) -> String {
    definitions.reduce(text) { "\($0.dropLast()), \($1))" }
  }
}
