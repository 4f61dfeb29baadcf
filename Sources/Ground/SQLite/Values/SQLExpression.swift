// SQL as a value: a text with the traits that its users need. The code that writes a piece of SQL declares them once;
// no code derives them from the text again.

/// A piece of SQL: an expression, a condition, or a table with its alias.
///
/// A literal makes one, and interpolated expressions pass on their traits:
///
///     let sum: SQLExpression = "(\(left) + \(right))"   // may fail if `left` or `right` may
package struct SQLExpression: Sendable, Hashable {
  /// What evaluating the SQL may do.
  package struct Traits: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Its evaluation may fail for the values of a row.
    package static let mayFail = Traits(rawValue: 1)
    /// Its evaluation may read a file of external storage.
    package static let readsFiles = Traits(rawValue: 2)
    /// Its evaluation reads tables other than that of its row.
    package static let readsTables = Traits(rawValue: 4)
  }

  /// The kind of an expression.
  package enum Form: Sendable, Hashable {
    /// NULL.
    case null
    /// A value that is the same for every row, and never NULL.
    case constant
    /// An unchanged column of the table with that alias.
    case column(String, of: String)
    /// Anything else.
    case computed
  }

  package let text: String
  package let form: Form
  package let traits: Traits

  private init(_ text: String, _ form: Form, _ traits: Traits = []) {
    self.text = text
    self.form = form
    self.traits = traits
  }

  /// Whether its evaluation may fail for the values of a row.
  package var mayFail: Bool { traits.contains(.mayFail) }
  /// Whether its evaluation may read a file of external storage.
  package var readsFiles: Bool { traits.contains(.readsFiles) }
  /// Whether its evaluation reads tables other than that of its row.
  package var readsTables: Bool { traits.contains(.readsTables) }
  package var isNull: Bool { form == .null }
  /// Whether it has the same value, not NULL, in every row.
  package var isConstant: Bool { form == .constant }

  package static let null = SQLExpression("NULL", .null)

  /// The literal of a value.
  package static func value(_ value: SQLiteValue) -> SQLExpression {
    switch value {
    case .null: return .null
    // SQLite has no NaN: it stores NULL.
    case .real(let number) where number.isNaN: return .null
    default: break
    }
    return SQLExpression(value.literal, .constant)
  }

  /// A whole number.
  package static func integer(_ number: some BinaryInteger) -> SQLExpression {
    .value(.integer(Int64(clamping: number)))
  }

  /// A column of the table with that alias in the statement; `name` is without quotes.
  package static func column(_ name: String, of alias: String = "s") -> SQLExpression {
    SQLExpression("\(alias).\(SQLiteIdentifier.quoted(name))", .column(name, of: alias))
  }

  /// The value of a SELECT, as an expression.
  package static func query(_ select: SQLExpression) -> SQLExpression {
    SQLExpression("(\(select.text))", .computed, select.traits.union(.readsTables))
  }

  /// The name of a function, to be followed by parentheses.
  package static func function(_ name: String, _ traits: Traits = []) -> SQLExpression {
    SQLExpression(name, .computed, traits)
  }

  /// The column's name, if the expression is just a column of the row under `alias`.
  package func column(of alias: String) -> String? {
    if case .column(let name, of: alias) = form { name } else { nil }
  }
}

extension SQLExpression: ExpressibleByStringInterpolation {
  /// Collects the parts of a literal.
  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""
    fileprivate var traits: Traits = []

    package init(literalCapacity: Int, interpolationCount: Int) {
      text.reserveCapacity(literalCapacity + 16 * interpolationCount)
    }

    package mutating func appendLiteral(_ literal: String) { text += literal }

    package mutating func appendInterpolation(_ expression: SQLExpression) {
      text += expression.text
      traits.formUnion(expression.traits)
    }

    /// Text that calls nothing: quoted names, and literals.
    package mutating func appendInterpolation(_ plain: String) { text += plain }

    package mutating func appendInterpolation(_ number: some BinaryInteger) { text += String(number) }
  }

  package init(stringLiteral text: String) { self.init(text, .computed) }

  package init(stringInterpolation parts: StringInterpolation) {
    self.init(parts.text, .computed, parts.traits)
  }

  package static func + (left: SQLExpression, right: SQLExpression) -> SQLExpression {
    SQLExpression(left.text + right.text, .computed, left.traits.union(right.traits))
  }
}

extension Sequence<SQLExpression> {
  /// Joins all of them with `separator`.
  package func joined(separator: String) -> SQLExpression {
    var parts = SQLExpression.StringInterpolation(literalCapacity: 0, interpolationCount: underestimatedCount)
    for (index, expression) in enumerated() {
      if index > 0 { parts.appendLiteral(separator) }
      parts.appendInterpolation(expression)
    }
    return SQLExpression(stringInterpolation: parts)
  }

  /// Whether the evaluation of any of them may fail.
  package var mayFail: Bool { contains(where: \.mayFail) }
}

extension DefaultStringInterpolation {
  /// Deprecated: interpolation into a plain text loses the traits.
  @available(*, deprecated, message: "make an SQLExpression of the literal, or write .text at the end of the way")
  package mutating func appendInterpolation(_ expression: SQLExpression) { appendLiteral(expression.text) }
}
