// A line that fits: where a terminal is too narrow for all parts, the most important ones are shown.

import Diagnostics

/// Parts of a line in their order.
struct FittedLine {
  /// A part, in several forms.
  private struct Part {
    /// The longest form first.
    let forms: [String]
    /// Parts with lower numbers come first into a narrow line.
    let rank: Int
    let isCut: Bool
  }

  /// The fewest columns of a part that is cut.
  private static let fewest = 6

  private var parts: [Part] = []
  private let separator: String

  /// Creates an empty line.
  init(separator: String = "  ") { self.separator = separator }

  /// Adds a part; empty forms are skipped. Where no form fits, the last one is cut if `isCut`.
  mutating func add(_ forms: String?..., rank: Int, isCut: Bool = false) {
    let forms = forms.compactMap { $0.flatMap { $0.isEmpty ? nil : $0.escapingControls(keepingNewlines: false) } }
    if !forms.isEmpty { parts.append(Part(forms: forms, rank: rank, isCut: isCut)) }
  }

  /// Returns the line in at most so many columns.
  func text(columns: Int) -> String {
    var shown: [Int: String] = [:]
    var left = columns
    for index in parts.indices.sorted(by: { (parts[$0].rank, $0) < (parts[$1].rank, $1) }) {
      let part = parts[index]
      let room = shown.isEmpty ? left : left - separator.columns
      var form = part.forms.first { $0.columns <= room }
      if form == nil, part.isCut, room >= Self.fewest { form = part.forms.last?.cut(to: room, at: .middle) }
      guard let form else { continue }
      shown[index] = form
      left = room - form.columns
    }
    return parts.indices.compactMap { shown[$0] }.joined(separator: separator)
  }
}
