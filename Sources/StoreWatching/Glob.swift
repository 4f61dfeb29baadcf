// Which file names count. Separate because names are bytes here: a store's name need not be UTF-8, and a match must not
// depend on how Swift splits characters.

/// A shell pattern for one file name: `*`, `?` (one byte), `[a-z]`, `[!a-z]`, and `\` before a character that stands
/// for itself. A leading dot needs no special pattern.
package struct Glob: Hashable, Sendable {
  private enum Token: Hashable {
    case byte(UInt8)
    case any
    case many
    case set([ClosedRange<UInt8>], negated: Bool)
  }

  /// The pattern as written.
  package let pattern: String
  private let tokens: [Token]

  /// Reads a pattern; a `[` without its `]` stands for itself, so that no pattern is wrong.
  package init(_ pattern: String) {
    self.pattern = pattern
    let bytes = Array(pattern.utf8)
    var tokens: [Token] = []
    var index = 0
    while index < bytes.count {
      let byte = bytes[index]
      index += 1
      switch byte {
      case UInt8(ascii: "*"):
        if tokens.last != .many { tokens.append(.many) }
      case UInt8(ascii: "?"):
        tokens.append(.any)
      case UInt8(ascii: "\\") where index < bytes.count:
        tokens.append(.byte(bytes[index]))
        index += 1
      case UInt8(ascii: "["):
        if let (set, next) = Self.set(bytes, from: index) {
          tokens.append(set)
          index = next
        } else {
          tokens.append(.byte(byte))
        }
      default:
        tokens.append(.byte(byte))
      }
    }
    self.tokens = tokens
  }

  /// Does the whole name match?
  package func matches(_ name: [UInt8]) -> Bool {
    var token = 0
    var position = 0
    // Where to go on when the part after the last `*` does not fit: let that `*` take one byte more.
    var retry: (token: Int, position: Int)?
    while position < name.count {
      if token < tokens.count {
        if tokens[token] == .many {
          retry = (token, position)
          token += 1
          continue
        }
        if Self.fits(tokens[token], name[position]) {
          token += 1
          position += 1
          continue
        }
      }
      guard let last = retry else { return false }
      token = last.token + 1
      position = last.position + 1
      retry = (last.token, position)
    }
    return tokens[token...].allSatisfy { $0 == .many }
  }

  private static func fits(_ token: Token, _ byte: UInt8) -> Bool {
    switch token {
    case .byte(let wanted): wanted == byte
    case .any: true
    case .many: false
    case .set(let ranges, let negated): ranges.contains { $0.contains(byte) } != negated
    }
  }

  /// Reads what follows `[`; a `]` in first place belongs to the set, as in every shell.
  private static func set(_ bytes: [UInt8], from start: Int) -> (Token, next: Int)? {
    var index = start
    var negated = false
    if index < bytes.count, bytes[index] == UInt8(ascii: "!") || bytes[index] == UInt8(ascii: "^") {
      negated = true
      index += 1
    }
    var ranges: [ClosedRange<UInt8>] = []
    let first = index
    while index < bytes.count {
      let low = bytes[index]
      if low == UInt8(ascii: "]"), index > first { return (.set(ranges, negated: negated), index + 1) }
      if index + 2 < bytes.count, bytes[index + 1] == UInt8(ascii: "-"), bytes[index + 2] != UInt8(ascii: "]") {
        let high = bytes[index + 2]
        // A range that runs backwards holds nothing.
        if low <= high { ranges.append(low...high) }
        index += 3
      } else {
        ranges.append(low...low)
        index += 1
      }
    }
    return nil
  }
}
