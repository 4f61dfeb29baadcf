// The columns of a terminal that a text takes. Terminals place text by these widths, so tables that count characters
// are askew with Chinese, Japanese and Korean names, and with combining characters.

import Diagnostics

extension Unicode.Scalar {
  /// Ranges of characters with the width Wide or Fullwidth of Unicode Standard Annex 11, apart from emoji.
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115f, 0x2329...0x232a, 0x2e80...0x303e, 0x3041...0xa4cf, 0xa960...0xa97c, 0xac00...0xd7a3,
    0xf900...0xfaff, 0xfe10...0xfe19, 0xfe30...0xfe6f, 0xff01...0xff60, 0xffe0...0xffe6, 0x16fe0...0x18d08,
    0x1b000...0x1b2ff, 0x1f200...0x1f265, 0x20000...0x3fffd,
  ]
  /// Vowels and final consonants of Korean syllables, which join the consonant before them.
  private static let joining: ClosedRange<UInt32> = 0x1160...0x11ff

  /// The columns that the character takes: 0, 1 or 2.
  fileprivate var columns: Int {
    // Below are no wide characters and no combining ones.
    if value < 0x300 { return 1 }
    switch properties.generalCategory {
    case .nonspacingMark, .enclosingMark: return 0
    default: break
    }
    if Self.joining.contains(value) { return 0 }
    return properties.isEmojiPresentation || Self.wide.contains { $0.contains(value) } ? 2 : 1
  }
}

extension StringProtocol {
  /// The columns that the text takes on one line. Control characters must be escaped before.
  var columns: Int { unicodeScalars.reduce(0) { $0 + $1.columns } }

  /// The longest beginning that takes at most so many columns.
  fileprivate func beginning(_ columns: Int) -> SubSequence {
    var left = columns
    return prefix { character in
      left -= String(character).columns
      return left >= 0
    }
  }

  /// The longest end that takes at most so many columns.
  fileprivate func ending(_ columns: Int) -> SubSequence {
    var left = columns
    let count = reversed().prefix { character in
      left -= String(character).columns
      return left >= 0
    }.count
    return suffix(count)
  }
}

extension String {
  /// Where a text is cut that is too long.
  enum Cut {
    case start, middle, end
    /// A path whose file name is too long: only that is shown, cut in front of its end.
    case name
  }

  /// What follows the last slash.
  var fileName: Substring { suffix(from: lastIndex(of: "/").map { index(after: $0) } ?? startIndex) }

  /// Returns the text in at most so many columns, with "…" for what is cut.
  func cut(to width: Int, at place: Cut) -> String {
    guard columns > width else { return self }
    guard width > 0 else { return "" }
    switch place {
    case .start: return "…" + ending(width - 1)
    case .end: return beginning(width - 1) + "…"
    case .middle:
      // The ends of paths tell more than their beginnings.
      let head = beginning((width - 1) / 3)
      return head + "…" + ending(width - 1 - head.columns)
    case .name:
      let name = fileName
      guard name.columns > width else { return String(name) }
      // Names differ at their beginnings; their ends are mostly the same extension.
      let head = name.beginning(width < 16 ? width - 1 : (width - 1) * 2 / 3)
      return head + "…" + name.ending(width - 1 - head.columns)
    }
  }
}
