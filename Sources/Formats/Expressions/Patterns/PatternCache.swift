// Keeps parsed patterns of MATCHES: a hop uses nearly always the same pattern for every row.

import Diagnostics

/// The patterns parsed last. Belongs to one evaluator or one connection.
final class PatternCache {
  private struct Key: Hashable {
    let text: [UInt8]
    let ignoresCase: Bool
  }

  private var patterns: [Key: RegularPattern] = [:]

  /// Returns the pattern of a text.
  func pattern(_ text: String, ignoringCase: Bool) throws(HopdError) -> RegularPattern {
    let key = Key(text: Array(text.utf8), ignoresCase: ignoringCase)
    if let known = patterns[key] { return known }
    let pattern = try RegularPattern(text, ignoringCase: ignoringCase)
    // Patterns may come from rows, so the cache is bounded.
    if patterns.count >= 100 { patterns.removeAll() }
    patterns[key] = pattern
    return pattern
  }
}
