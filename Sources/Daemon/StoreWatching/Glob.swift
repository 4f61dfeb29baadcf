// The patterns of file names that a watch includes. fnmatch(3) matches them, so a pattern means what it means in the
// shell. The programs stay in the C locale, in which it compares bytes, because the name of a store need not be UTF-8.

import Glibc

/// A pattern for one file name, as in the shell: `*`, `?` (one byte), `[a-z]`, `[!a-z]`, and `\` before a character to
/// match it literally. `*` and `?` match a leading dot too.
package struct Glob: Hashable, Sendable {
  /// The pattern as written.
  package let pattern: String
  /// The pattern for fnmatch(3), with its NUL.
  private let characters: [CChar]

  /// Takes a pattern. A `[` without its `]` matches itself, so that every pattern is valid.
  package init(_ pattern: String) {
    self.pattern = pattern
    // A backslash at the end matches itself too. fnmatch(3) would match no name with it.
    let backslashes = pattern.utf8.reversed().prefix { $0 == UInt8(ascii: "\\") }.count
    characters = Array((backslashes % 2 == 0 ? pattern : pattern + "\\").utf8CString)
  }

  /// Whether the whole name matches.
  package func matches(_ name: [UInt8]) -> Bool {
    fnmatch(characters, name.map { CChar(bitPattern: $0) } + [0], 0) == 0
  }
}
