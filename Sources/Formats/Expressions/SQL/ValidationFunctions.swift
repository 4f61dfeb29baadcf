// The two functions that rules need and SQLite does not have: NSString's length, and a pattern for a whole text.

import Diagnostics
import PersistentStore
import SQLite

/// The functions of `ValidationRule`'s conditions.
package enum ValidationFunctions {
  /// Registers the functions; a second call replaces them.
  package static func register(on connection: Connection) throws(SQLiteError) {
    try connection.registerFunction(ValidationRule.lengthFunction, argumentCount: 1) { values in
      guard case .text(let text)? = values.first else { return .null }
      return .integer(Int64(text.utf16.count))
    }
    // A hop has few patterns and matches each of them many times.
    var patterns: [String: RegularPattern?] = [:]
    try connection.registerFailingFunction(ValidationRule.matchesFunction, argumentCount: 2) { values in
      guard values.count == 2, case .text(let text) = values[0], case .text(let pattern) = values[1] else {
        return .null
      }
      let known = patterns[pattern] ?? (try? RegularPattern(pattern))
      patterns[pattern] = .some(known)
      // The plan has reported the patterns that are not supported, and that nothing is checked against them.
      guard let known else { return .null }
      return .integer(try known.matches(text) ? 1 : 0)
    }
  }
}
