// Reads TOML 1.0, strictly: everything that the specification does not allow is refused, so that a typing mistake never
// becomes another configuration. The text may be hostile. Every loop consumes input, nesting and the number of values
// are bounded, and no input causes a trap.

import Diagnostics
import SystemPackage

/// Reads one document.
struct TOMLReader {
  /// The largest number of keys and indexes on the path to a value. It also bounds recursion.
  static let deepest = 32
  /// The largest number of keys, elements and tables in one document.
  static let most = 1 << 16

  var cursor: TextCursor
  private let file: FilePath
  private let code: HopdError.Code
  private var count = 0
  private let root = TableDraft(.header, at: nil, depth: 0)

  init(_ text: String, file: FilePath, code: HopdError.Code) {
    cursor = TextCursor(text)
    self.file = file
    self.code = code
  }

  /// Reads the whole text.
  mutating func document() throws(HopdError) -> TOMLNode {
    var table = root
    while cursor.next != nil {
      cursor.skipBlanks()
      switch cursor.next {
      case nil: break
      case UInt8(ascii: "#"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): try endLine(in: .document)
      case UInt8(ascii: "["):
        table = try header()
        try endLine(in: .header)
      default:
        try keyAndValue(in: table)
        try endLine(in: .keyAndValue)
      }
    }
    return finished(root)
  }

  // MARK: Errors

  /// A part of the grammar, as messages name it.
  enum Part: String {
    case document
    case header = "table header"
    case keyAndValue = "key-value pair"
    case key, string, array, comment
    case inlineTable = "inline table"
  }

  /// The error for a mistake at the next character, or at `position`.
  func mistake(_ problem: String, in part: Part, at position: SourcePosition? = nil) -> HopdError {
    error("Error while parsing \(part.rawValue): \(problem)", at: position ?? cursor.position)
  }

  /// The error for a character that should be another one.
  func expected(_ what: String, in part: Part) -> HopdError {
    mistake("expected \(what), saw \(cursor.shown)", in: part)
  }

  private func error(_ message: String, at position: SourcePosition) -> HopdError {
    HopdError(code, "no valid TOML: \(message)", at: Place(file: file, line: position.line, column: position.column))
  }

  /// Counts a key, an element or a table that is `depth` steps from the root.
  private mutating func admit(depth: Int, at position: SourcePosition) throws(HopdError) {
    count += 1
    if depth > Self.deepest { throw error("expected at most \(Self.deepest) names, one in the other", at: position) }
    if count > Self.most { throw error("expected at most \(Self.most) keys and values", at: position) }
  }

  // MARK: Lines

  /// Takes the rest of a line, which may only be a comment.
  private mutating func endLine(in part: Part) throws(HopdError) {
    cursor.skipBlanks()
    try skipComment()
    if cursor.next != nil, !cursor.takeLineEnd() { throw expected("the end of the line", in: part) }
  }

  private mutating func skipComment() throws(HopdError) {
    guard cursor.take("#") else { return }
    while let byte = cursor.next, byte != UInt8(ascii: "\n") {
      if byte == UInt8(ascii: "\r"), cursor.second == UInt8(ascii: "\n") { return }
      if TOMLReader.isControl(byte) { throw expected("no control character", in: .comment) }
      cursor.advance()
    }
  }

  /// Whether TOML forbids a character in comments and strings; a tab is allowed.
  static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != 0x09 || byte == 0x7f }

  /// Takes blanks, line ends and comments, which are allowed between the elements of an array.
  private mutating func skipLines() throws(HopdError) {
    repeat {
      cursor.skipBlanks()
      try skipComment()
    } while cursor.takeLineEnd()
  }

  // MARK: Tables

  /// A name of a dotted key with its place.
  private typealias Name = (text: String, position: SourcePosition)

  /// Reads `[a.b]` or `[[a.b]]`; returns the table of the keys below it.
  private mutating func header() throws(HopdError) -> TableDraft {
    let position = cursor.position
    cursor.advance()
    let isList = cursor.take("[")
    cursor.skipBlanks()
    let (parents, last) = try dottedKey()
    for _ in 0..<(isList ? 2 : 1) {
      guard cursor.take("]") else { throw expected("']'", in: .header) }
    }
    var table = root
    for name in parents {
      switch table.entries[name.text] {
      case .table(let inner): table = inner
      case .list(let list): table = list.last
      case .value(let node): throw redefined(node.value.kind, name, as: " as table", at: position)
      case nil: table = try add(TableDraft(.implied, at: position, depth: table.depth + 1), to: table, as: name)
      }
    }
    return isList
      ? try defineListElement(last, in: table, at: position) : try defineTable(last, in: table, at: position)
  }

  /// Defines `[name]` in `parent`.
  private mutating func defineTable(
    _ name: Name, in parent: TableDraft, at position: SourcePosition
  ) throws(HopdError) -> TableDraft {
    switch parent.entries[name.text] {
    case nil: return try add(TableDraft(.header, at: position, depth: parent.depth + 1), to: parent, as: name)
    case .table(let known):
      guard case .implied = known.definition else { throw redefined("table", name, at: position) }
      known.definition = .header
      known.position = position
      return known
    case let other?: throw redefined(other.kind, name, as: " as table", at: position)
    }
  }

  /// Defines `[[name]]` in `parent`.
  private mutating func defineListElement(
    _ name: Name, in parent: TableDraft, at position: SourcePosition
  ) throws(HopdError) -> TableDraft {
    let table = TableDraft(.header, at: position, depth: parent.depth + 2)
    try admit(depth: table.depth, at: position)
    switch parent.entries[name.text] {
    case nil: parent.entries[name.text] = .list(TableListDraft(table, at: position))
    case .list(let list): list.append(table)
    case let other?: throw redefined(other.kind, name, as: " as array of tables", at: position)
    }
    return table
  }

  private mutating func add(
    _ table: TableDraft, to parent: TableDraft, as name: Name
  ) throws(HopdError) -> TableDraft {
    try admit(depth: table.depth, at: name.position)
    parent.entries[name.text] = .table(table)
    return table
  }

  private func redefined(
    _ kind: String, _ name: Name, as form: String = "", in part: Part = .header, at position: SourcePosition
  ) -> HopdError {
    mistake("cannot redefine existing \(kind) \(TextCursor.shown(name.text))\(form)", in: part, at: position)
  }

  /// Reads `a.b = value` into `table`.
  private mutating func keyAndValue(in table: TableDraft) throws(HopdError) {
    let (parents, last) = try dottedKey()
    guard cursor.take("=") else { throw expected("'='", in: .keyAndValue) }
    cursor.skipBlanks()
    var table = table
    for name in parents {
      switch table.entries[name.text] {
      case nil: table = try add(TableDraft(.dottedKey, at: name.position, depth: table.depth + 1), to: table, as: name)
      case .table(let known):
        guard known.definition != .header else {
          throw redefined("table", name, as: " by a dotted key", in: .keyAndValue, at: name.position)
        }
        known.definition = .dottedKey
        table = known
      case let other?: throw redefined(other.kind, name, as: " as table", in: .keyAndValue, at: name.position)
      }
    }
    if let known = table.entries[last.text] {
      throw redefined(known.kind, last, in: .keyAndValue, at: cursor.position)
    }
    try admit(depth: table.depth + 1, at: last.position)
    let value = try value(in: .keyAndValue, depth: table.depth + 1)
    table.entries[last.text] = .value(TOMLNode(value: value, file: file, position: last.position))
  }

  /// Reads one name or several with dots between them, and the blanks after them.
  private mutating func dottedKey() throws(HopdError) -> (parents: [Name], last: Name) {
    var parents: [Name] = []
    while true {
      let position = cursor.position
      let name = (text: try name(), position: position)
      cursor.skipBlanks()
      guard cursor.take(".") else { return (parents, name) }
      parents.append(name)
      if parents.count >= Self.deepest { try admit(depth: parents.count + 1, at: position) }
      cursor.skipBlanks()
    }
  }

  private mutating func name() throws(HopdError) -> String {
    if let quote = cursor.next, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
      cursor.advance()
      return try line(quotedBy: quote)
    }
    let bare = cursor.takeAll(where: TOMLText.isOfBareKey)
    if bare.isEmpty { throw expected("a key", in: .key) }
    return String(decoding: bare, as: UTF8.self)
  }

  // MARK: Values

  /// Reads any value; `depth` is its distance from the root, `part` the construct that contains it.
  private mutating func value(in part: Part, depth: Int) throws(HopdError) -> TOMLNode.Value {
    switch cursor.next {
    case UInt8(ascii: "\""), UInt8(ascii: "'"): return .string(try string())
    case UInt8(ascii: "["): return .array(try array(depth: depth))
    case UInt8(ascii: "{"): return try inlineTable(depth: depth)
    default: return try bareValue(in: part)
    }
  }

  private mutating func bareValue(in part: Part) throws(HopdError) -> TOMLNode.Value {
    func belongs(_ byte: UInt8) -> Bool {
      TOMLBareValue.isDigit(byte) || (0x61...0x7a).contains(byte | 0x20) || "+-_.:".utf8.contains(byte)
    }
    let start = cursor
    var text = cursor.takeAll(where: belongs)
    if text.isEmpty { throw expected("a value", in: part) }
    // A space instead of the T between a date and a time.
    if TOMLBareValue.isDate(text), cursor.next == 0x20, let second = cursor.second, TOMLBareValue.isDigit(second) {
      cursor.advance()
      _ = cursor.takeAll(where: belongs)
      text = cursor.text(since: start)
    }
    switch TOMLBareValue(text) {
    case .value(let value): return value
    case .wrong(let problem): throw mistake(problem, in: part, at: start.position)
    }
  }

  private mutating func array(depth: Int) throws(HopdError) -> [TOMLNode] {
    cursor.advance()
    var elements: [TOMLNode] = []
    while true {
      try skipLines()
      if cursor.take("]") { return elements }
      let position = cursor.position
      try admit(depth: depth + 1, at: position)
      let value = try value(in: .array, depth: depth + 1)
      elements.append(TOMLNode(value: value, file: file, position: position))
      try skipLines()
      if cursor.take("]") { return elements }
      guard cursor.take(",") else { throw expected("',' or ']'", in: .array) }
    }
  }

  private mutating func inlineTable(depth: Int) throws(HopdError) -> TOMLNode.Value {
    let table = TableDraft(.header, at: cursor.position, depth: depth)
    cursor.advance()
    cursor.skipBlanks()
    if cursor.take("}") { return .table([:]) }
    while true {
      try keyAndValue(in: table)
      cursor.skipBlanks()
      if cursor.take("}") { return finished(table).value }
      guard cursor.take(",") else { throw expected("',' or '}'", in: .inlineTable) }
      cursor.skipBlanks()
    }
  }

  /// Returns the finished table with its content.
  private func finished(_ table: TableDraft) -> TOMLNode {
    let entries = table.entries.mapValues { entry in
      switch entry {
      case .value(let node): node
      case .table(let inner): finished(inner)
      case .list(let list):
        TOMLNode(value: .array(list.tables.map(finished)), file: file, position: list.position)
      }
    }
    return TOMLNode(value: .table(entries), file: file, position: table.position)
  }
}

// The four kinds of strings; two of them may also be keys.

extension TOMLReader {
  /// Reads a string of any kind, from its first quotation mark.
  mutating func string() throws(HopdError) -> String {
    guard let quote = cursor.next else { throw expected("a string", in: .string) }
    if cursor.takeThree(of: quote) { return try lines(quotedBy: quote) }
    cursor.advance()
    return try line(quotedBy: quote)
  }

  /// Reads the rest of a single-line string, after its first quotation mark.
  mutating func line(quotedBy quote: UInt8) throws(HopdError) -> String {
    var content: [UInt8] = []
    while let byte = cursor.next, byte != quote {
      try takeCharacter(byte, quotedBy: quote, into: &content)
    }
    guard cursor.next == quote else { throw unfinished(quote, 1) }
    cursor.advance()
    return String(decoding: content, as: UTF8.self)
  }

  /// Reads the rest of a multi-line string, after its first three quotation marks. The value has LF as end of line,
  /// also for CR LF.
  private mutating func lines(quotedBy quote: UInt8) throws(HopdError) -> String {
    _ = cursor.takeLineEnd()
    var content: [UInt8] = []
    while let byte = cursor.next {
      if byte == quote {
        // Up to two marks may precede the three that end the string.
        let run = cursor.count(of: quote, upTo: 5)
        for _ in 0..<run { cursor.advance() }
        content += [UInt8](repeating: quote, count: run < 3 ? run : run - 3)
        if run >= 3 { return String(decoding: content, as: UTF8.self) }
      } else if cursor.takeLineEnd() {
        content.append(UInt8(ascii: "\n"))
      } else if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\""), takeJoinedLines() {
        continue
      } else {
        try takeCharacter(byte, quotedBy: quote, into: &content)
      }
    }
    throw unfinished(quote, 3)
  }

  private func unfinished(_ quote: UInt8, _ count: Int) -> HopdError {
    expected("\(count == 1 ? "a" : "three") closing \(Unicode.Scalar(quote))", in: .string)
  }

  /// Takes one byte of the content, or one escape sequence if the string allows them.
  private mutating func takeCharacter(
    _ byte: UInt8, quotedBy quote: UInt8, into content: inout [UInt8]
  ) throws(HopdError) {
    if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
      content += try escapedCharacter()
    } else if byte == UInt8(ascii: "\n") {
      throw unfinished(quote, 1)
    } else if Self.isControl(byte) {
      throw expected("no control character", in: .string)
    } else {
      content.append(byte)
      cursor.advance()
    }
  }

  /// Takes a backslash at the end of a line, with all white space up to the next character; returns false and takes
  /// nothing if the backslash has another meaning.
  private mutating func takeJoinedLines() -> Bool {
    var ahead = cursor
    ahead.advance()
    // A backslash followed by blanks alone is a mistake, which the caller reports.
    ahead.skipBlanks()
    guard ahead.takeLineEnd() else { return false }
    repeat { ahead.skipBlanks() } while ahead.takeLineEnd()
    cursor = ahead
    return true
  }

  /// Returns the UTF-8 bytes of an escape sequence.
  private mutating func escapedCharacter() throws(HopdError) -> [UInt8] {
    cursor.advance()
    guard let byte = cursor.next else { throw expected("an escape sequence", in: .string) }
    if let character = Self.simpleEscape(byte) {
      cursor.advance()
      return [character]
    }
    guard byte == UInt8(ascii: "u") || byte == UInt8(ascii: "U") else {
      throw expected("one of b, t, n, f, r, u, U, \" and \\ after a backslash", in: .string)
    }
    cursor.advance()
    let position = cursor.position
    var number: UInt32 = 0
    for _ in 0..<(byte == UInt8(ascii: "u") ? 4 : 8) {
      guard let next = cursor.next, next < 0x80, let digit = Character(Unicode.Scalar(next)).hexDigitValue else {
        throw expected("a hexadecimal digit", in: .string)
      }
      // At most eight digits fit in 32 bits.
      number = number << 4 | UInt32(digit)
      cursor.advance()
    }
    // NUL would end the value where the system reads it, as a path or an argument.
    guard number != 0 else { throw mistake("expected a character other than NUL", in: .string, at: position) }
    guard let scalar = Unicode.Scalar(number) else {
      throw mistake("expected the number of a Unicode character", in: .string, at: position)
    }
    return Array(String(Character(scalar)).utf8)
  }

  /// The character for one letter after a backslash.
  private static func simpleEscape(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "t"): 0x09
    case UInt8(ascii: "n"): 0x0a
    case UInt8(ascii: "f"): 0x0c
    case UInt8(ascii: "r"): 0x0d
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): byte
    default: nil
    }
  }
}
