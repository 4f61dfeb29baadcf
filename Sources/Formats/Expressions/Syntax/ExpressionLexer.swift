// Splits the text of an expression into tokens, in one pass. The longest operator wins. Strings and numbers become
// values here, so that the parser sees no escapes.

import Diagnostics

/// A token with its position in the text.
struct ExpressionToken {
  /// The signs of the language.
  enum Symbol: String {
    case open = "("
    case close = ")"
    case openBrace = "{"
    case closeBrace = "}"
    case openBracket = "["
    case closeBracket = "]"
    case comma = ","
    case dot = "."
    case plus = "+"
    case minus = "-"
    case times = "*"
    case divide = "/"
    case power = "**"
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case and = "&&"
    case or = "||"
    case not = "!"
    case bitAnd = "&"
    case bitOr = "|"
    case bitXor = "^"
    case bitNot = "~"
    case shiftLeft = "<<"
    case shiftRight = ">>"
  }

  /// The kind of a token, with its value.
  enum Kind: Equatable {
    case name(String)
    /// As written; after a dot it is a key like any other.
    case keyword(ExpressionKeyword, String)
    /// `#name`
    case escapedName(String)
    /// `modulus:by:`
    case functionName(String)
    case variable(String)
    /// `@count`, as written.
    case collectionOperator(String)
    case string(String)
    case integer(UInt64)
    case double(Double)
    case symbol(Symbol)
    case end
  }

  let kind: Kind
  /// The position of the first character in the text, in Unicode scalars.
  let offset: Int
}

/// Splits a text into tokens.
struct ExpressionLexer {
  let source: ExpressionSource
  private let scalars: [Unicode.Scalar]
  private var index = 0

  init(_ source: ExpressionSource) {
    self.source = source
    scalars = source.scalars
  }

  /// Returns all tokens, with `end` last.
  static func tokens(_ source: ExpressionSource) throws(HopdError) -> [ExpressionToken] {
    var lexer = ExpressionLexer(source)
    var tokens: [ExpressionToken] = []
    repeat { tokens.append(try lexer.next()) } while tokens.last?.kind != .end
    return tokens
  }

  private func peek(_ distance: Int = 0) -> Unicode.Scalar? {
    index + distance < scalars.count ? scalars[index + distance] : nil
  }

  private mutating func next() throws(HopdError) -> ExpressionToken {
    while let scalar = peek(), scalar.properties.isWhitespace { index += 1 }
    let start = index
    guard let scalar = peek() else { return ExpressionToken(kind: .end, offset: start) }
    return ExpressionToken(kind: try kind(beginningWith: scalar), offset: start)
  }

  private mutating func kind(beginningWith scalar: Unicode.Scalar) throws(HopdError) -> ExpressionToken.Kind {
    if KeyPathSteps.isNameStart(scalar) { return word() }
    switch scalar {
    case "0"..."9": return try number()
    case "'", "\"": return .string(try string(endingWith: scalar))
    case "$": return .variable(try name(behind: "$"))
    case "#": return .escapedName(try name(behind: "#"))
    case "@": return .collectionOperator("@" + (try name(behind: "@")))
    default: return .symbol(try symbol(scalar))
    }
  }

  // MARK: Names

  private mutating func takeName() -> String {
    let start = index
    while let scalar = peek(), KeyPathSteps.isNamePart(scalar) { index += 1 }
    return source.text(start..<index)
  }

  private mutating func name(behind sign: String) throws(HopdError) -> String {
    index += 1
    guard let scalar = peek(), KeyPathSteps.isNameStart(scalar) else {
      throw source.syntax("a name is missing after \(sign)", at: index)
    }
    return takeName()
  }

  private mutating func word() -> ExpressionToken.Kind {
    let start = index
    let first = takeName()
    // The colons of a function's name follow its parts directly; `:=` is another sign.
    guard peek() == ":", peek(1) != "=" else {
      if let keyword = ExpressionKeyword(name: first) { return .keyword(keyword, first) }
      return .name(first)
    }
    while peek() == ":" {
      index += 1
      while let scalar = peek(), KeyPathSteps.isNamePart(scalar) { index += 1 }
    }
    return .functionName(source.text(start..<index))
  }

  // MARK: Tokens

  private mutating func symbol(_ scalar: Unicode.Scalar) throws(HopdError) -> ExpressionToken.Symbol {
    if let second = peek(1), let symbol = try pair(scalar, second) {
      index += 2
      return symbol
    }
    // A single = means the same as two.
    let symbol: ExpressionToken.Symbol? = scalar == "=" ? .equal : ExpressionToken.Symbol(rawValue: String(scalar))
    if let symbol {
      index += 1
      return symbol
    }
    switch scalar {
    case "%":
      throw source.unsupported(
        "arguments as %@ and %K are not supported: the text must be complete", at: index,
        hint: "write the value or the key itself")
    case ":": throw source.syntax("a colon is allowed only in the name of a function, as in abs:(x)", at: index)
    case "\u{2018}", "\u{2019}", "\u{201C}", "\u{201D}":
      throw source.syntax("a typographic quotation mark is not a quote", at: index, hint: "write ' or \"")
    default:
      let code = String(scalar.value, radix: 16, uppercase: true)
      let digits = String(repeating: "0", count: max(0, 4 - code.utf8.count)) + code
      throw source.syntax("the character U+\(digits) means nothing here", at: index)
    }
  }

  private func pair(
    _ first: Unicode.Scalar, _ second: Unicode.Scalar
  ) throws(HopdError) -> ExpressionToken.Symbol? {
    switch (first, second) {
    case ("<", ">"): return .notEqual
    case ("=", "<"): return .lessOrEqual
    case ("=", ">"): return .greaterOrEqual
    case (":", "="): throw source.unsupported("assignment (:=) is not supported", at: index)
    default: return ExpressionToken.Symbol(rawValue: "\(first)\(second)")
    }
  }

  // MARK: Numbers

  private mutating func number() throws(HopdError) -> ExpressionToken.Kind {
    let start = index
    if peek() == "0", let mark = peek(1), let radix = [("x" as Unicode.Scalar): 16, "o": 8, "b": 2][mark] {
      index += 2
      let digits = takeName()
      guard let value = UInt64(digits, radix: radix) else {
        throw source.syntax("\(source.text(start..<index)) is not an integer of 64 bits", at: start)
      }
      return .integer(value)
    }
    takeDigits()
    var isDouble = false
    if peek() == ".", let digit = peek(1), isDigit(digit) {
      isDouble = true
      index += 1
      takeDigits()
    }
    if peek() == "e" || peek() == "E" {
      let isSigned = peek(1) == "+" || peek(1) == "-"
      if let digit = peek(isSigned ? 2 : 1), isDigit(digit) {
        isDouble = true
        index += isSigned ? 2 : 1
        takeDigits()
      }
    }
    if let scalar = peek(), KeyPathSteps.isNamePart(scalar) {
      throw source.syntax("a number runs into a name", at: index, hint: "start the name with a letter or _")
    }
    let text = source.text(start..<index)
    if isDouble {
      guard let value = Double(text), value.isFinite else {
        throw source.syntax("the number is too large for a Double", at: start)
      }
      return .double(value)
    }
    guard let value = UInt64(text) else { throw source.syntax("the number is not an integer of 64 bits", at: start) }
    return .integer(value)
  }

  private mutating func takeDigits() {
    while let scalar = peek(), isDigit(scalar) { index += 1 }
  }

  private func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

  // MARK: Strings

  private mutating func string(endingWith quote: Unicode.Scalar) throws(HopdError) -> String {
    let start = index
    index += 1
    var text = String.UnicodeScalarView()
    while let scalar = peek() {
      index += 1
      if scalar == quote { return String(text) }
      text.append(scalar == "\\" ? try escape() : scalar)
    }
    throw source.syntax("the string that begins here has no end", at: start)
  }

  /// Reads an escape after its backslash.
  private mutating func escape() throws(HopdError) -> Unicode.Scalar {
    let start = index - 1
    guard let scalar = peek() else { throw source.syntax("nothing follows the backslash", at: start) }
    index += 1
    switch scalar {
    case "\\", "'", "\"": return scalar
    case "n": return "\n"
    case "r": return "\r"
    case "t": return "\t"
    case "x":
      if let value = hexadecimal(digits: 2), let scalar = Unicode.Scalar(value) { return scalar }
      throw source.syntax("\\x requires two hexadecimal digits", at: start)
    case "u":
      guard let value = hexadecimal(digits: 4) else {
        throw source.syntax("\\u requires four hexadecimal digits", at: start)
      }
      if let scalar = Unicode.Scalar(value) { return scalar }
      // The first half of a surrogate pair: the other half must follow.
      if (0xd800...0xdbff).contains(value), peek() == "\\", peek(1) == "u" {
        index += 2
        if let low = hexadecimal(digits: 4), (0xdc00...0xdfff).contains(low),
          let scalar = Unicode.Scalar(0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00))
        {
          return scalar
        }
      }
      throw source.syntax("\\u of a surrogate is allowed only in a pair of them", at: start)
    default:
      throw source.syntax("the escape \\\(scalar) is unknown", at: start, hint: "write \\\\ for a backslash")
    }
  }

  private mutating func hexadecimal(digits: Int) -> UInt32? {
    var value: UInt32 = 0
    for _ in 0..<digits {
      guard let scalar = peek(), let digit = Character(scalar).hexDigitValue, scalar.isASCII else { return nil }
      value = value << 4 | UInt32(digit)
      index += 1
    }
    return value
  }
}
