// Which file names a watch includes. fnmatch(3) decides, so a pattern means here what it means to the shell; the
// programs never leave the C locale, in which it compares bytes, because the name of a store need not be UTF-8.

import Glibc

/// A pattern for one file name, as in the shell: `*`, `?` (one byte), `[a-z]`, `[!a-z]`, and `\` before a character
/// that stands for itself. A leading dot needs no special pattern.
package struct Glob: Hashable, Sendable {
  /// The pattern as written.
  package let pattern: String
  /// The pattern for fnmatch(3), with its NUL.
  private let characters: [CChar]

  /// Takes a pattern; a `[` without its `]` stands for itself, so that no pattern is wrong.
  package init(_ pattern: String) {
    self.pattern = pattern
    // A backslash before nothing stands for itself too. fnmatch(3) would match no name with it.
    let backslashes = pattern.utf8.reversed().prefix { $0 == UInt8(ascii: "\\") }.count
    characters = Array((backslashes % 2 == 0 ? pattern : pattern + "\\").utf8CString)
  }

  /// Whether the whole name matches.
  package func matches(_ name: [UInt8]) -> Bool {
    fnmatch(characters, name.map { CChar(bitPattern: $0) } + [0], 0) == 0
  }
}
