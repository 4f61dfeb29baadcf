// A fast path for the most frequent calls of SQL functions: a change of case of ASCII text. Conversion to a String and
// back would take most of the time for such a row.

import CSQLite

/// A change of case, done byte by byte if all bytes are ASCII; for them Unicode's mappings are the same.
package enum CaseMapping: Sendable, Hashable {
  case uppercase
  case lowercase

  /// Sets the mapped text of `argument` as the function's result; false if it is not a text, not ASCII alone, or too
  /// long.
  func answer(_ argument: OpaquePointer, to context: OpaquePointer) -> Bool {
    guard sqlite3_value_type(argument) == SQLITE_TEXT, let start = sqlite3_value_text(argument) else { return false }
    let text = UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(argument)))
    // The result is built on the stack.
    guard text.count <= 1024 else { return false }
    let first: UInt8 = self == .uppercase ? 0x61 : 0x41
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: max(1, text.count)) { result in
      var all: UInt8 = 0
      for index in text.indices {
        let byte = text[index]
        all |= byte
        result[index] = byte &- first < 26 ? byte ^ 0x20 : byte
      }
      guard all < 0x80 else { return false }
      result.withMemoryRebound(to: CChar.self) {
        sqlite3_result_text64(context, $0.baseAddress, UInt64(text.count), FunctionBox.transient, UInt8(SQLITE_UTF8))
      }
      return true
    }
  }
}
