// The lengths of functions. A function spans from its declaration's first word to its closing brace:
// functions, initialisers, subscripts, and properties with a body, each with the closures and local functions inside.

import Testing

@Suite struct SourceSizeTests {
  @Test func noFunctionHasMoreThanSixtyLines() {
    var count = 0
    for source in ArchitectureTests.sources {
      for function in SwiftOutline(source.text).functions {
        count += 1
        guard function.lines > 60 else { continue }
        Issue.record(
          "\(source.target)/\(source.name) \(function.name), line \(function.start), has \(function.lines) lines")
      }
    }
    #expect(count > 4000, "the scanner finds the functions")
  }

  /// Tests the scanner with texts that would mislead a simpler one.
  @Test func theOutlineOfAText() {
    let text = #"""
      struct A {
        let a: Int  // func no() {
        /* func /* nested */ neither() { */
        let text = "func x() { \(a.map { "}" }) {"
        let raw = #"{ " \#("}".count) { "# + """
          { func "quoted" {
          """
        var sum: Int { a + 1 }
        init(
          a: Int
        ) {
          self.init(b: [a].map {
            $0
          })
        }
        static func one(_ x: (Int) -> Int = { $0 }) -> Int
        where Int: Sendable {
          func inner() { }
          if a { let b = { 1 } }
          return 1
        }
        enum B: Error { case c }
        subscript(i: Int) -> Int { get { i } set { } }
      }
      extension A: P where B == C { deinit { } }
      protocol P { func f(); init(); var g: Int { get } }
      """#
    let functions = SwiftOutline(text).functions.map { "\($0.name) \($0.start) \($0.lines)" }
    #expect(
      functions == [
        "sum 8 1", "init 9 7", "one 16 6", "subscript 23 1", "deinit 25 1", "g 26 1",
      ])
  }
}

/// The functions of a Swift text.
private struct SwiftOutline {
  struct Function {
    let name: String
    /// Line of its first word, from 1.
    let start: Int
    let lines: Int
  }

  private enum Token {
    case word(String)
    case mark(UInt8)
  }

  private(set) var functions: [Function] = []

  private static let types: Set<String> = ["class", "struct", "enum", "actor", "protocol", "extension"]
  private static let bodies: Set<String> = ["func", "init", "deinit", "subscript", "var", "let"]

  init(_ text: String) {
    var scanner = SwiftScanner(bytes: Array(text.utf8))
    /// Open braces: of a type, of a function with its first word, or any other; with the number of parentheses open
    /// outside.
    var open: [(isType: Bool, function: (name: String, start: Int)?, depth: Int)] = []
    var depth = 0
    var last: (keyword: String, name: String, start: Int)?
    while let (token, line, isMember) = scanner.next() {
      let isDeclaring = open.last?.isType ?? true
      switch token {
      case .mark(UInt8(ascii: "(")), .mark(UInt8(ascii: "[")): depth += 1
      case .mark(UInt8(ascii: ")")), .mark(UInt8(ascii: "]")): depth -= 1
      case .mark(UInt8(ascii: "{")):
        let declared = isDeclaring && depth == 0 ? last : nil
        let isType = declared.map { Self.types.contains($0.keyword) } ?? false
        open.append((isType, isType ? nil : declared.map { ($0.name, $0.start) }, depth))
        depth = 0
        if isType { last = nil }
      case .mark(UInt8(ascii: "}")):
        guard let closed = open.popLast() else { continue }
        depth = closed.depth
        if let function = closed.function {
          functions.append(Function(name: function.name, start: function.start, lines: line - function.start + 1))
        }
        // A default value does not end a declaration.
        if depth == 0, open.last?.isType ?? true { last = nil }
      case .word(let word) where isDeclaring && depth == 0 && !isMember:
        if let declared = last, declared.name.isEmpty { last?.name = word }
        guard Self.types.contains(word) || Self.bodies.contains(word) else { continue }
        let isNamed = word == "init" || word == "deinit" || word == "subscript"
        last = (word, isNamed ? word : "", line)
      default: break
      }
    }
  }

  /// Returns the words and brackets of a text, without those in comments and strings.
  private struct SwiftScanner {
    let bytes: [UInt8]
    private var place = 0
    private var line = 1

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// Returns the next token, its line, and whether a full stop precedes it.
    mutating func next() -> (Token, line: Int, isMember: Bool)? {
      while place < bytes.count {
        if starts("//") {
          while place < bytes.count, bytes[place] != UInt8(ascii: "\n") { place += 1 }
        } else if starts("/*") {
          skipComment()
        } else if let hashes = opening() {
          skipString(hashes)
        } else if Self.isWord(bytes[place]) {
          let start = place
          while place < bytes.count, Self.isWord(bytes[place]) { place += 1 }
          let word = String(decoding: bytes[start..<place], as: UTF8.self)
          return (.word(word), line, start > 0 && bytes[start - 1] == UInt8(ascii: "."))
        } else {
          let mark = bytes[place]
          advance()
          if "(){}[]".utf8.contains(mark) { return (.mark(mark), line, false) }
        }
      }
      return nil
    }

    private static func isWord(_ byte: UInt8) -> Bool {
      byte >= 0x80 || byte == UInt8(ascii: "_") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    private mutating func advance() {
      if bytes[place] == UInt8(ascii: "\n") { line += 1 }
      place += 1
    }

    private func starts(_ text: StaticString, at offset: Int = 0) -> Bool {
      text.withUTF8Buffer { bytes[place...].dropFirst(offset).starts(with: $0) }
    }

    private mutating func skipComment() {
      var depth = 0
      repeat {
        if starts("/*") {
          depth += 1
          place += 2
        } else if starts("*/") {
          depth -= 1
          place += 2
        } else {
          advance()
        }
      } while depth > 0 && place < bytes.count
    }

    /// Returns the number of number signs before the quote of a string that begins here; nil if none begins.
    private func opening() -> Int? {
      let hashes = bytes[place...].prefix { $0 == UInt8(ascii: "#") }.count
      return starts("\"", at: hashes) ? hashes : nil
    }

    private mutating func skipString(_ hashes: Int) {
      place += hashes
      let quotes = starts("\"\"\"") ? 3 : 1
      place += quotes
      let end =
        [UInt8](repeating: UInt8(ascii: "\""), count: quotes) + [UInt8](repeating: UInt8(ascii: "#"), count: hashes)
      let escape = [UInt8(ascii: "\\")] + [UInt8](repeating: UInt8(ascii: "#"), count: hashes)
      while place < bytes.count {
        if bytes[place...].starts(with: end) {
          place += end.count
          return
        }
        guard bytes[place...].starts(with: escape) else {
          advance()
          continue
        }
        place += escape.count
        guard place < bytes.count else { return }
        if bytes[place] == UInt8(ascii: "(") { skipInterpolation() } else { advance() }
      }
    }

    private mutating func skipInterpolation() {
      var depth = 0
      repeat {
        if let hashes = opening() {
          skipString(hashes)
          continue
        }
        if bytes[place] == UInt8(ascii: "(") { depth += 1 }
        if bytes[place] == UInt8(ascii: ")") { depth -= 1 }
        advance()
      } while depth > 0 && place < bytes.count
    }
  }
}
