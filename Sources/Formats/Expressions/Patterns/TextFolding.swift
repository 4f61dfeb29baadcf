// Folding for `[c]` and `[d]` (docs/formats/expressions.md, "Strings"): case by Unicode's full folding, texts in
// canonical decomposition, diacritics by removing their marks. SQLite folds ASCII only and the standard library has no
// folding, so the project has its own tables.

/// Folding of text.
package enum TextFolding {
  private struct Run {
    let first: UInt32
    let last: UInt32
    let step: UInt32
    let delta: Int64
  }

  private static let runs: [Run] = TextFoldingTable.caseRuns.split(whereSeparator: \.isWhitespace).compactMap { word in
    let parts = word.split(separator: ",").compactMap { Int64($0, radix: 16) }
    guard parts.count == 4 else { return nil }
    return Run(
      first: UInt32(clamping: parts[0]), last: UInt32(clamping: parts[0] + (parts[1] - 1) * parts[2]),
      step: UInt32(clamping: parts[2]), delta: parts[3])
  }

  private static let longFolds = table(TextFoldingTable.longFolds)
  private static let decompositions = table(TextFoldingTable.decompositions)
  /// The marks that form a separate letter with a base that is not Latin, Greek or Cyrillic, by that base.
  private static let compositions: [UInt32: [[Unicode.Scalar]]] = {
    var table: [UInt32: [[Unicode.Scalar]]] = [:]
    for word in TextFoldingTable.compositions.split(whereSeparator: \.isWhitespace) {
      guard let code = UInt32(word, radix: 16), let parts = decompositions[code], let base = parts.first else {
        continue
      }
      table[base.value, default: []].append(Array(parts.dropFirst()))
    }
    return table
  }()
  /// The decompositions without combining marks.
  private static let bases = decompositions.compactMapValues { parts in
    let kept = parts.filter { $0.properties.canonicalCombiningClass == .notReordered }
    return kept.isEmpty ? nil : kept
  }

  private static func table(_ text: String) -> [UInt32: [Unicode.Scalar]] {
    var last: UInt32 = 0
    var table: [UInt32: [Unicode.Scalar]] = [:]
    for word in text.split(whereSeparator: \.isWhitespace) {
      let parts = word.split(separator: ":")
      guard let distance = parts.count == 1 ? 1 : UInt32(parts[0], radix: 16), let end = parts.last else { continue }
      last += distance
      table[last] = end.split(separator: ",").compactMap { UInt32($0, radix: 16).flatMap(Unicode.Scalar.init) }
    }
    return table
  }

  // MARK: Whole texts

  /// Returns the folded text. Two texts are equal under `[c]`, `[d]` or `[cd]` if their folded forms are.
  package static func fold(_ text: String, ignoringCase: Bool, ignoringDiacritics: Bool) -> String {
    if text.utf8.allSatisfy({ $0 < 0x80 }) {
      guard ignoringCase else { return text }
      return String(decoding: text.utf8.map { (0x41...0x5a).contains($0) ? $0 + 0x20 : $0 }, as: UTF8.self)
    }
    var result = String.UnicodeScalarView()
    var rest = decomposed(text)[...]
    // A mark without a base is not a diacritic.
    while let scalar = rest.popFirst() {
      if ignoringCase { result.append(contentsOf: fullFold(scalar)) } else { result.append(scalar) }
      let marks = rest.prefix { isMark($0) }
      rest = rest.dropFirst(marks.count)
      result.append(contentsOf: ignoringDiacritics ? partOfLetter(scalar, marks) : marks)
    }
    return String(result)
  }

  private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value >= 0x300 && scalar.properties.isGraphemeExtend
  }

  /// The marks that are not diacritics: が is a letter of its own, not か with a mark.
  private static func partOfLetter(
    _ base: Unicode.Scalar, _ marks: ArraySlice<Unicode.Scalar>
  ) -> ArraySlice<Unicode.Scalar> {
    guard !marks.isEmpty, let letters = compositions[base.value] else { return [] }
    return marks.prefix(letters.filter { marks.starts(with: $0) }.map(\.count).max() ?? 0)
  }

  /// Folds each character to one character: for patterns, in which `?` and `.` count characters.
  package static func simplyFolded(_ text: String, ignoringCase: Bool, ignoringDiacritics: Bool) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      if scalar.isASCII {
        result.append(ignoringCase ? foldedCase(scalar) : scalar)
      } else if ignoringDiacritics {
        if let parts = bases[scalar.value] {
          for part in parts { result.append(ignoringCase ? foldedCase(part) : part) }
        } else if scalar.properties.canonicalCombiningClass == .notReordered {
          result.append(ignoringCase ? foldedCase(scalar) : scalar)
        }
      } else {
        result.append(foldedCase(scalar))
      }
    }
    return String(result)
  }

  /// Returns the text of `canonical:`: without case, and Latin, Greek and Cyrillic letters without marks; other letters
  /// keep their marks, as written.
  package static func canonical(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    var dropsMarks = false
    for scalar in text.unicodeScalars {
      if isMark(scalar), !result.isEmpty {
        if !dropsMarks { result.append(scalar) }
        continue
      }
      let base = decompositions[scalar.value]?.first ?? scalar
      dropsMarks = base.value < firstAfterCyrillic
      result.append(contentsOf: fullFold(dropsMarks ? base : scalar))
    }
    return String(result)
  }

  /// The letters below are Latin, Greek and Cyrillic (docs/formats/expressions.md, "Strings").
  private static let firstAfterCyrillic: UInt32 = 0x510

  // MARK: Decomposition

  /// Returns the text's canonical decomposition, with marks in canonical order.
  private static func decomposed(_ text: String) -> [Unicode.Scalar] {
    var result: [Unicode.Scalar] = []
    for scalar in text.unicodeScalars {
      if scalar.value < 0xc0 {
        result.append(scalar)
      } else if (0xac00...0xd7a3).contains(scalar.value) {
        appendHangul(scalar.value - 0xac00, to: &result)
      } else if let parts = decompositions[scalar.value] {
        result += parts
      } else {
        result.append(scalar)
      }
    }
    order(&result)
    return result
  }

  /// Appends a syllable by its number: a leading consonant, a vowel and perhaps a trailing consonant.
  private static func appendHangul(_ number: UInt32, to result: inout [Unicode.Scalar]) {
    let trailing = number % 28
    let parts = [0x1100 + number / 588, 0x1161 + number % 588 / 28] + (trailing > 0 ? [0x11a7 + trailing] : [])
    result += parts.compactMap(Unicode.Scalar.init)
  }

  /// Sorts runs of marks by their combining class; marks of equal class keep their order.
  private static func order(_ scalars: inout [Unicode.Scalar]) {
    var start = 0
    while start < scalars.count {
      guard scalars[start].value >= 0x300, combiningClass(scalars[start]) != 0 else {
        start += 1
        continue
      }
      var end = start + 1
      while end < scalars.count, combiningClass(scalars[end]) != 0 { end += 1 }
      if end - start > 1 {
        let marks = scalars[start..<end].enumerated().sorted { one, other in
          (combiningClass(one.element), one.offset) < (combiningClass(other.element), other.offset)
        }
        scalars.replaceSubrange(start..<end, with: marks.map(\.element))
      }
      start = end
    }
  }

  private static func combiningClass(_ scalar: Unicode.Scalar) -> UInt8 {
    scalar.properties.canonicalCombiningClass.rawValue
  }

  // MARK: Case

  private static func fullFold(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
    longFolds[scalar.value] ?? [foldedCase(scalar)]
  }

  /// Returns the simple case folding of one character.
  static func foldedCase(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    if scalar.isASCII {
      return (0x41...0x5a).contains(scalar.value) ? Unicode.Scalar(UInt8(scalar.value) + 0x20) : scalar
    }
    // Finds the last run that begins at or before the character.
    var (low, high) = (0, runs.count)
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].first <= scalar.value { low = middle + 1 } else { high = middle }
    }
    guard low > 0 else { return scalar }
    let run = runs[low - 1]
    guard scalar.value <= run.last, (scalar.value - run.first) % run.step == 0 else { return scalar }
    return Unicode.Scalar(UInt32(clamping: Int64(scalar.value) + run.delta)) ?? scalar
  }
}
