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
    var classes: [CharacterClass] = []
    var isNegated = false

    func contains(_ scalar: UInt32) -> Bool {
      (ranges.contains { $0.contains(scalar) } || classes.contains { $0.contains(scalar) }) != isNegated
    }
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

  /// What one match knows.
  private struct Run {
    let scalars: [UInt32]
    /// The position at which each instruction was added last.
    var marks: [Int]
    var steps = 0
    /// Whether the last character that \b does not pass over is a word's. Kept from position to position, because a
    /// search backwards over marks would cost more than a step.
    var isBehindWord = false

    func isBoundary(at place: Int) -> Bool {
      guard place < scalars.count else { return isBehindWord }
      if RegularPattern.isPassedOver(scalars[place]) { return false }
      return RegularPattern.isWord(scalars[place]) != isBehindWord
    }
  }

  /// The maximum number of instructions of a pattern.
  package static let largestProgram = 20_000
  /// The maximum number of steps of a match.
  package static let mostSteps = 50_000_000

  private let program: [Instruction]
  private let ignoresCase: Bool
  private let hasBoundaries: Bool

  /// Compiles a pattern. The error names a feature that is not supported.
  package init(_ text: String, ignoringCase: Bool = false) throws(HopdError) {
    var parser = RegularPatternParser(text, ignoringCase: ignoringCase)
    let program = try parser.program()
    self.program = program
    ignoresCase = ignoringCase
    hasBoundaries = program.contains { instruction in
      switch instruction {
      case .assert(.wordBoundary), .assert(.noWordBoundary): true
      default: false
      }
    }
  }

  /// Whether the whole text matches.
  package func matches(_ text: String) throws(HopdError) -> Bool {
    var run = Run(
      scalars: text.unicodeScalars.map { ignoresCase ? TextFolding.foldedCase($0).value : $0.value },
      marks: [Int](repeating: -1, count: program.count))
    var current: [Int] = []
    follow(0, at: 0, &current, &run)
    for (place, scalar) in run.scalars.enumerated() {
      if current.isEmpty { return false }
      guard run.steps <= RegularPattern.mostSteps else {
        throw HopdError(.matchTooLong, "a text is too long for the pattern of MATCHES", hint: "use a simpler pattern")
      }
      if hasBoundaries, !RegularPattern.isPassedOver(scalar) { run.isBehindWord = RegularPattern.isWord(scalar) }
      var next: [Int] = []
      for index in current {
        let isMatch =
          switch program[index] {
          case .scalar(let wanted): wanted == scalar
          case .set(let set): set.contains(scalar)
          case .any: !RegularPattern.isLineEnd(scalar)
          default: false
          }
        if isMatch { follow(index + 1, at: place + 1, &next, &run) }
      }
      current = next
    }
    return current.contains { if case .done = program[$0] { true } else { false } }
  }

  /// Adds the instructions reached from one without consuming a character, each at most once at a position.
  private func follow(_ start: Int, at place: Int, _ list: inout [Int], _ run: inout Run) {
    var pending = [start]
    while let index = pending.popLast() {
      guard program.indices.contains(index), run.marks[index] != place else { continue }
      run.marks[index] = place
      run.steps += 1
      switch program[index] {
      case .jump(let target): pending.append(target)
      case .split(let first, let second):
        pending.append(second)
        pending.append(first)
      case .assert(let assertion): if holds(assertion, at: place, run) { pending.append(index + 1) }
      case .scalar, .set, .any, .done: list.append(index)
      }
    }
  }

  private func holds(_ assertion: Assertion, at place: Int, _ run: Run) -> Bool {
    switch assertion {
    case .start: place == 0
    case .end: place == run.scalars.count
    case .wordBoundary: run.isBoundary(at: place)
    case .noWordBoundary: !run.isBoundary(at: place)
    }
  }

  static func isLineEnd(_ scalar: UInt32) -> Bool {
    (0x0a...0x0d).contains(scalar) || scalar == 0x85 || scalar == 0x2028 || scalar == 0x2029
  }
}
