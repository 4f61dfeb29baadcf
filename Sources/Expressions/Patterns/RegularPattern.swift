// Patterns of MATCHES, which must match the whole text (docs/formats/expressions.md, "Strings"). The project has its
// own matcher because Swift's Regex backtracks without bound, and both patterns and texts may be hostile. Here every
// match takes at most (length of the text) × (size of the pattern) steps. ICU's features beyond the common subset are
// refused by name.

import Diagnostics

/// A compiled pattern.
package struct RegularPattern: Sendable {
  /// The characters that one position accepts.
  struct CharacterSet: Sendable {
    var ranges: [ClosedRange<UInt32>] = []
    var isNegated = false

    func contains(_ scalar: UInt32) -> Bool { ranges.contains { $0.contains(scalar) } != isNegated }
  }

  enum Instruction: Sendable {
    case scalar(UInt32)
    case set(CharacterSet)
    /// Any character except a line terminator.
    case any
    case split(Int, Int)
    case jump(Int)
    case assert(Assertion)
    case done
  }

  enum Assertion: Sendable { case start, end, wordBoundary, noWordBoundary }

  /// The most instructions of a pattern.
  package static let largestProgram = 20_000
  /// The most steps of a match.
  package static let mostSteps = 50_000_000

  private let program: [Instruction]
  private let ignoresCase: Bool

  /// Compiles a pattern. The error names a feature that is not supported.
  package init(_ text: String, ignoringCase: Bool = false) throws(HopdError) {
    var parser = RegularPatternParser(text, ignoringCase: ignoringCase)
    program = try parser.program()
    ignoresCase = ignoringCase
  }

  /// Whether the whole text matches.
  package func matches(_ text: String) throws(HopdError) -> Bool {
    let scalars = text.unicodeScalars.map { ignoresCase ? TextFolding.foldedCase($0).value : $0.value }
    var steps = 0
    var current: [Int] = []
    var marks = [Int](repeating: -1, count: program.count)
    follow(0, at: 0, scalars, &current, &marks, &steps)
    for (place, scalar) in scalars.enumerated() {
      if current.isEmpty { return false }
      guard steps <= RegularPattern.mostSteps else {
        throw HopdError(.matchTooLong, "a text is too long for the pattern of MATCHES", hint: "use a simpler pattern")
      }
      var next: [Int] = []
      for index in current {
        let isMatch =
          switch program[index] {
          case .scalar(let wanted): wanted == scalar
          case .set(let set): set.contains(scalar)
          case .any: !RegularPattern.isLineEnd(scalar)
          default: false
          }
        if isMatch { follow(index + 1, at: place + 1, scalars, &next, &marks, &steps) }
      }
      current = next
    }
    return current.contains { if case .done = program[$0] { true } else { false } }
  }

  /// Adds the instructions reached from one without consuming a character. `marks` prevents adding an instruction twice
  /// at a position.
  private func follow(
    _ start: Int, at place: Int, _ scalars: [UInt32], _ list: inout [Int], _ marks: inout [Int], _ steps: inout Int
  ) {
    var pending = [start]
    while let index = pending.popLast() {
      guard program.indices.contains(index), marks[index] != place else { continue }
      marks[index] = place
      steps += 1
      switch program[index] {
      case .jump(let target): pending.append(target)
      case .split(let first, let second):
        pending.append(second)
        pending.append(first)
      case .assert(let assertion): if holds(assertion, at: place, scalars) { pending.append(index + 1) }
      case .scalar, .set, .any, .done: list.append(index)
      }
    }
  }

  private func holds(_ assertion: Assertion, at place: Int, _ scalars: [UInt32]) -> Bool {
    switch assertion {
    case .start: return place == 0
    case .end: return place == scalars.count
    case .wordBoundary, .noWordBoundary:
      let before = place > 0 && RegularPattern.wordSet.contains(scalars[place - 1])
      let after = place < scalars.count && RegularPattern.wordSet.contains(scalars[place])
      return (before != after) == (assertion == .wordBoundary)
    }
  }

  static func isLineEnd(_ scalar: UInt32) -> Bool {
    (0x0a...0x0d).contains(scalar) || scalar == 0x85 || scalar == 0x2028 || scalar == 0x2029
  }

  /// ASCII only. ICU includes Unicode's letters; a pattern has to list those as ranges.
  static let wordSet = CharacterSet(ranges: [0x30...0x39, 0x41...0x5a, 0x5f...0x5f, 0x61...0x7a])
  static let digitSet = CharacterSet(ranges: [0x30...0x39])
  static let spaceSet = CharacterSet(ranges: [0x09...0x0d, 0x20...0x20])
}
