// Folding for `[c]` and `[d]` (docs/formats/expressions.md, "Strings"): case by Unicode's simple folding, diacritics by
// canonical decomposition without its combining marks. SQLite knows ASCII only and the standard library offers neither,
// hence a table of our own.

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

  private static let bases: [UInt32: [Unicode.Scalar]] = {
    var last: UInt32 = 0
    var bases: [UInt32: [Unicode.Scalar]] = [:]
    for word in TextFoldingTable.bases.split(whereSeparator: \.isWhitespace) {
      let parts = word.split(separator: ":")
      guard parts.count == 2, let distance = UInt32(parts[0], radix: 16) else { continue }
      last += distance
      bases[last] = parts[1].split(separator: ",").compactMap { UInt32($0, radix: 16).flatMap(Unicode.Scalar.init) }
    }
    return bases
  }()

  /// The text folded; two texts are equal under `[c]`, `[d]` or `[cd]` when their folded forms are.
  package static func fold(_ text: String, ignoringCase: Bool, ignoringDiacritics: Bool) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      if scalar.isASCII {
        result.append(ignoringCase ? lowercaseASCII(scalar) : scalar)
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

  private static func lowercaseASCII(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    (0x41...0x5a).contains(scalar.value) ? Unicode.Scalar(UInt8(scalar.value) + 0x20) : scalar
  }

  /// Simple case folding of one character.
  static func foldedCase(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    // The last run that begins at or before it.
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
