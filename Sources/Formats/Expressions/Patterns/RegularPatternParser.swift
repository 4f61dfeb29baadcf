// Compiles the text of a pattern to the instructions of `RegularPattern`. The grammar is the part that ICU shares with
// other engines: classes, groups, alternation, quantifiers, anchors, \d \w \s \b and escapes.

import Diagnostics

struct RegularPatternParser {
  typealias Instruction = RegularPattern.Instruction

  /// A part of the pattern, before it becomes instructions.
  private indirect enum Part {
    case empty
    case one(Instruction)
    case sequence([Part])
    case choice([Part])
    case repeated(Part, least: Int, most: Int?)
  }

  private static let deepest = 100
  private static let mostRepeats = 1000

  private var rest: ArraySlice<Unicode.Scalar>
  private let ignoresCase: Bool
  private var depth = 0
  private var emitted: [Instruction] = []

  init(_ text: String, ignoringCase: Bool) {
    rest = Array(text.unicodeScalars)[...]
    ignoresCase = ignoringCase
  }

  mutating func program() throws(HopdError) -> [Instruction] {
    let part = try choice()
    guard rest.isEmpty else { throw refusal("a closing parenthesis without an opening one") }
    try emit(part)
    emitted.append(.done)
    return emitted
  }

  private func refusal(_ what: String) -> HopdError {
    HopdError(
      .expressionInvalid, "the pattern of MATCHES has \(what)",
      hint: "use only . [ ] ( ) (?: ) | * + ? {m,n} ^ $ \\d \\D \\w \\W \\s \\S \\b \\B and escaped characters")
  }

  // MARK: Reading

  private mutating func choice() throws(HopdError) -> Part {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.deepest else { throw refusal("more than \(Self.deepest) groups in each other") }
    var parts = [try sequence()]
    while take("|") { parts.append(try sequence()) }
    return parts.count == 1 ? parts[0] : .choice(parts)
  }

  private mutating func sequence() throws(HopdError) -> Part {
    var parts: [Part] = []
    while let next = rest.first, next != "|", next != ")" { parts.append(try quantified()) }
    return parts.isEmpty ? .empty : .sequence(parts)
  }

  private mutating func quantified() throws(HopdError) -> Part {
    let part = try atom()
    guard let (least, most) = try quantifier() else { return part }
    // Lazy quantifiers match the same whole texts; possessive ones do not.
    _ = take("?")
    if rest.first == "+" { throw refusal("a possessive quantifier") }
    if let next = rest.first, "*?{".unicodeScalars.contains(next) { throw refusal("one quantifier behind another") }
    return .repeated(part, least: least, most: most)
  }

  private mutating func quantifier() throws(HopdError) -> (Int, Int?)? {
    if take("*") { return (0, nil) }
    if take("+") { return (1, nil) }
    if take("?") { return (0, 1) }
    guard take("{") else { return nil }
    let least = try number()
    var most: Int? = least
    if take(",") { most = rest.first == "}" ? nil : try number() }
    guard take("}") else { throw refusal("a brace that is not a quantifier: write \\{") }
    if let most, most < least { throw refusal("a quantifier whose bounds are the wrong way round") }
    return (least, most)
  }

  /// Consumes the character if it is the next one.
  private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
    guard rest.first == scalar else { return false }
    rest.removeFirst()
    return true
  }

  private mutating func number() throws(HopdError) -> Int {
    var value = 0
    var count = 0
    while let digit = rest.first, (0x30...0x39).contains(digit.value) {
      rest.removeFirst()
      count += 1
      value = value * 10 + Int(digit.value - 0x30)
      guard value <= Self.mostRepeats else { throw refusal("a quantifier above \(Self.mostRepeats)") }
    }
    guard count > 0 else { throw refusal("a brace that is not a quantifier: write \\{") }
    return value
  }

  private mutating func atom() throws(HopdError) -> Part {
    guard let scalar = rest.popFirst() else { return .empty }
    switch scalar {
    case "(":
      if take("?"), !take(":") { throw refusal("a group of a special kind (?…)") }
      let inner = try choice()
      guard take(")") else { throw refusal("a parenthesis that is not closed") }
      return inner
    case "[": return .one(.set(try bracket()))
    case ".": return .one(.any)
    case "^": return .one(.assert(.start))
    case "$": return .one(.assert(.end))
    case "*", "+", "?", "{": throw refusal("a quantifier behind nothing")
    case "\\": return .one(try escape())
    default: return .one(literal(scalar))
    }
  }

  private func literal(_ scalar: Unicode.Scalar) -> Instruction {
    .scalar(ignoresCase ? TextFolding.foldedCase(scalar).value : scalar.value)
  }

  private mutating func escape() throws(HopdError) -> Instruction {
    if take("b") { return .assert(.wordBoundary) }
    if take("B") { return .assert(.noWordBoundary) }
    if let named = classEscape() { return .set(RegularPattern.CharacterSet(classes: [named])) }
    return literal(try characterEscape())
  }

  /// Reads \d \D \w \W \s \S.
  private mutating func classEscape() -> RegularPattern.CharacterClass? {
    let kind: RegularPattern.CharacterClass.Kind
    switch rest.first {
    case "d", "D": kind = .digit
    case "w", "W": kind = .word
    case "s", "S": kind = .space
    default: return nil
    }
    return RegularPattern.CharacterClass(kind: kind, isNegated: rest.removeFirst().value < 0x60)
  }

  private mutating func characterEscape() throws(HopdError) -> Unicode.Scalar {
    guard let scalar = rest.popFirst() else { throw refusal("a backslash at its end") }
    switch scalar {
    case "n": return "\n"
    case "r": return "\r"
    case "t": return "\t"
    case "f": return "\u{0c}"
    case "u": return try hexadecimal(4)
    case "x": return try hexadecimal(2)
    default:
      let isName = scalar.isASCII && RegularPattern.isWord(scalar.value)
      guard !isName else { throw refusal("the escape \\\(Character(scalar)), which is not supported") }
      return scalar
    }
  }

  private mutating func hexadecimal(_ count: Int) throws(HopdError) -> Unicode.Scalar {
    let digits = String(String.UnicodeScalarView(rest.prefix(count)))
    rest = rest.dropFirst(count)
    guard digits.unicodeScalars.count == count, let value = UInt32(digits, radix: 16),
      let scalar = Unicode.Scalar(value)
    else { throw refusal("an escape \\u or \\x without its digits") }
    return scalar
  }

  private mutating func bracket() throws(HopdError) -> RegularPattern.CharacterSet {
    var set = RegularPattern.CharacterSet()
    set.isNegated = take("^")
    var isFirst = true
    while let scalar = rest.popFirst() {
      if scalar == "]" && !isFirst { return set }
      isFirst = false
      if scalar == "[" { throw refusal("a named set or a set in a set: write \\[ for the character") }
      if scalar == "&" && rest.first == "&" { throw refusal("an intersection of sets") }
      if scalar == "\\" {
        if let inner = classEscape() {
          set.classes.append(inner)
          continue
        }
        try add(from: try characterEscape(), to: &set)
      } else {
        try add(from: scalar, to: &set)
      }
    }
    throw refusal("a bracket that is not closed")
  }

  /// Adds a character, or the range that begins with it.
  private mutating func add(
    from first: Unicode.Scalar, to set: inout RegularPattern.CharacterSet
  ) throws(HopdError) {
    var last = first
    if rest.first == "-", let next = rest.dropFirst().first, next != "]" {
      rest.removeFirst(2)
      if next == "\\" { last = try characterEscape() } else { last = next }
    }
    guard first.value <= last.value else { throw refusal("a range whose ends are the wrong way round") }
    set.ranges.append(first.value...last.value)
    guard ignoresCase else { return }
    // Texts are folded before they are compared.
    guard last.value - first.value <= 0x1_0000 else { throw refusal("a range too wide for [c]") }
    for value in first.value...last.value {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let folded = TextFolding.foldedCase(scalar).value
      if folded != value { set.ranges.append(folded...folded) }
    }
  }

  // MARK: Instructions

  private mutating func append(_ instruction: Instruction) throws(HopdError) -> Int {
    guard emitted.count < RegularPattern.largestProgram else {
      throw refusal("too many parts; counted repeats of long groups make them many")
    }
    emitted.append(instruction)
    return emitted.count - 1
  }

  private mutating func emit(_ part: Part) throws(HopdError) {
    switch part {
    case .empty: break
    case .one(let instruction): _ = try append(instruction)
    case .sequence(let parts): for part in parts { try emit(part) }
    case .choice(let parts):
      var exits: [Int] = []
      for (index, part) in parts.enumerated() {
        guard index < parts.count - 1 else {
          try emit(part)
          break
        }
        let split = try append(.jump(0))
        try emit(part)
        exits.append(try append(.jump(0)))
        emitted[split] = .split(split + 1, emitted.count)
      }
      for exit in exits { emitted[exit] = .jump(emitted.count) }
    case .repeated(let inner, let least, let most):
      for _ in 0..<least {
        let before = emitted.count
        try emit(inner)
        // A part that consumes no character needs no further repetition.
        if emitted.count == before { return }
      }
      guard let most else {
        let split = try append(.jump(0))
        try emit(inner)
        _ = try append(.jump(split))
        emitted[split] = .split(split + 1, emitted.count)
        return
      }
      var splits: [Int] = []
      for _ in least..<most {
        splits.append(try append(.jump(0)))
        try emit(inner)
      }
      for split in splits { emitted[split] = .split(split + 1, emitted.count) }
    }
  }
}
