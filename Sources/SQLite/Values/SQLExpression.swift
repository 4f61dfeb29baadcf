// SQL as a value: a text with what its users have to know of it. Anyone who writes a piece of SQL says it once; nobody
// finds it out from the text again.

/// A piece of SQL: an expression, a condition, or a table with its alias.
///
/// A literal makes one, and what is interpolated hands on its traits:
///
///     let sum: SQLExpression = "(\(left) + \(right))"   // may fail if `left` or `right` may
package struct SQLExpression: Sendable, Hashable {
  /// What evaluating the SQL may do.
  package struct Traits: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// It may fail for the values of a row.
    package static let mayFail = Traits(rawValue: 1)
    /// It may read a file of external storage.
    package static let readsFiles = Traits(rawValue: 2)
    /// It asks tables beside the row that it stands beside.
    package static let readsTables = Traits(rawValue: 4)
  }

  /// What kind of expression it is.
  package enum Form: Sendable, Hashable {
    /// NULL.
    case null
    /// A value that is the same for every row, and never NULL.
    case constant
    /// A column, as it is, of the table with that alias.
    case column(String, of: String)
    /// Anything else.
    case computed
  }

  /// A column that is read, and the alias of its table.
  package struct Read: Sendable, Hashable {
    package let column: String
    package let alias: String
    /// Where it stands in the text, in bytes of UTF-8.
    fileprivate var offset = 0

    fileprivate var text: String { "\(alias).\(SQLiteIdentifier.quoted(column))" }

    fileprivate func moved(by bytes: Int) -> Read { Read(column: column, alias: alias, offset: offset + bytes) }
  }

  package let text: String
  package let form: Form
  package let traits: Traits
  /// The columns made by `column(_:of:)`, as often as they are in the text.
  package let reads: [Read]

  private init(_ text: String, _ form: Form, _ traits: Traits = [], reads: [Read] = []) {
    self.text = text
    self.form = form
    self.traits = traits
    self.reads = reads
  }

  /// May evaluating it fail for the values of a row?
  package var mayFail: Bool { traits.contains(.mayFail) }
  /// May evaluating it read a file of external storage?
  package var readsFiles: Bool { traits.contains(.readsFiles) }
  package var isNull: Bool { form == .null }
  /// Has it a value in every row, whatever the rows hold?
  package var isConstant: Bool { form == .constant }

  package static let null = SQLExpression("NULL", .null)

  /// The literal of a value.
  package static func value(_ value: SQLiteValue) -> SQLExpression {
    switch value {
    case .null: return .null
    // SQLite has no NaN: it is NULL.
    case .real(let number) where number.isNaN: return .null
    default: break
    }
    return SQLExpression(value.literal, .constant)
  }

  /// A whole number.
  package static func integer(_ number: some BinaryInteger) -> SQLExpression {
    .value(.integer(Int64(clamping: number)))
  }

  /// A column, by its name without quotes, of the table with that alias, as the statement writes it.
  package static func column(_ name: String, of alias: String = "s") -> SQLExpression {
    let read = Read(column: name, alias: alias)
    return SQLExpression(read.text, .column(name, of: alias), reads: [read])
  }

  /// The value of a SELECT, as an expression.
  package static func query(_ select: SQLExpression) -> SQLExpression {
    SQLExpression(
      "(\(select.text))", .computed, select.traits.union(.readsTables), reads: select.reads.map { $0.moved(by: 1) })
  }

  /// The name of a function that is called in front of parentheses.
  package static func function(_ name: String, _ traits: Traits = []) -> SQLExpression {
    SQLExpression(name, .computed, traits)
  }

  /// The column of the row under `alias` that it is, if it is nothing else.
  package func column(of alias: String) -> String? {
    if case .column(let name, of: alias) = form { name } else { nil }
  }

  /// The expression with a value in place of each column of the row under `alias`; NULL for a column without one.
  package func replacing(columnsOf alias: String, by values: [String: SQLExpression]) -> SQLExpression {
    if let name = column(of: alias) { return values[name] ?? .null }
    guard !reads.isEmpty else { return self }
    var parts = StringInterpolation(literalCapacity: text.utf8.count, interpolationCount: reads.count)
    var end = text.startIndex
    for read in reads {
      let start = text.utf8.index(text.startIndex, offsetBy: read.offset)
      let value = read.alias == alias ? values[read.column] ?? .null : SQLExpression.column(read.column, of: read.alias)
      parts.appendLiteral(String(text[end..<start]))
      parts.appendInterpolation(value.form == .computed ? "(\(value))" : value)
      end = text.utf8.index(start, offsetBy: read.text.utf8.count)
    }
    parts.appendLiteral(String(text[end...]))
    let result = SQLExpression(stringInterpolation: parts)
    return SQLExpression(result.text, .computed, traits.union(result.traits), reads: result.reads)
  }
}

extension SQLExpression: ExpressibleByStringInterpolation {
  /// Collects the parts of a literal.
  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""
    fileprivate var traits: Traits = []
    fileprivate var reads: [Read] = []

    package init(literalCapacity: Int, interpolationCount: Int) {
      text.reserveCapacity(literalCapacity + 16 * interpolationCount)
    }

    package mutating func appendLiteral(_ literal: String) { text += literal }

    package mutating func appendInterpolation(_ expression: SQLExpression) {
      reads += expression.reads.map { [bytes = text.utf8.count] in $0.moved(by: bytes) }
      text += expression.text
      traits.formUnion(expression.traits)
    }

    /// Text that calls nothing: names, quoted, and literals.
    package mutating func appendInterpolation(_ plain: String) { text += plain }

    package mutating func appendInterpolation(_ number: some BinaryInteger) { text += String(number) }
  }

  package init(stringLiteral text: String) { self.init(text, .computed) }

  package init(stringInterpolation parts: StringInterpolation) {
    self.init(parts.text, .computed, parts.traits, reads: parts.reads)
  }

  package static func + (left: SQLExpression, right: SQLExpression) -> SQLExpression {
    SQLExpression(
      left.text + right.text, .computed, left.traits.union(right.traits),
      reads: left.reads + right.reads.map { $0.moved(by: left.text.utf8.count) })
  }
}

extension Sequence<SQLExpression> {
  /// All of them with `separator` between.
  package func joined(separator: String) -> SQLExpression {
    var parts = SQLExpression.StringInterpolation(literalCapacity: 0, interpolationCount: underestimatedCount)
    for (index, expression) in enumerated() {
      if index > 0 { parts.appendLiteral(separator) }
      parts.appendInterpolation(expression)
    }
    return SQLExpression(stringInterpolation: parts)
  }

  /// May evaluating any of them fail?
  package var mayFail: Bool { contains(where: \.mayFail) }
}

extension DefaultStringInterpolation {
  /// A text forgets what is known of an expression.
  @available(*, deprecated, message: "make an SQLExpression of the literal, or write .text at the end of the way")
  package mutating func appendInterpolation(_ expression: SQLExpression) { appendLiteral(expression.text) }
}
