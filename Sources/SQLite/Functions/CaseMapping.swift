// A way around values for what functions of SQL are called with most: ASCII text whose letters change their case. A
// String in and a String out would be most of the time that such a row takes.

import CSQLite

/// A change of case that is done byte by byte where all bytes are ASCII; there Unicode's mappings are the same.
package enum CaseMapping: Sendable, Hashable {
  case uppercase
  case lowercase

  /// Answers the text of `argument`, mapped; false where it is not a text, or not ASCII alone.
  func answer(_ argument: OpaquePointer, to context: OpaquePointer) -> Bool {
    guard sqlite3_value_type(argument) == SQLITE_TEXT, let start = sqlite3_value_text(argument) else { return false }
    let text = UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(argument)))
    // The result is made on the stack.
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
