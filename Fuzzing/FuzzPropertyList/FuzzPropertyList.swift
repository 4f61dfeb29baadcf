// Fuzzes property lists within the bounds: bytes in, a value or an error with its message out. A list that is read must
// be written and read again as the same value.

import Diagnostics
import FuzzBounds
import PropertyLists

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: data, count: size))
  fuzz_bounds_begin()
  let value: PropertyListValue?
  do {
    value = try PropertyList.decode(bytes)
  } catch {
    _ = error.description
    value = nil
  }
  fuzz_bounds_end()
  // hopd never writes strangers' lists, so the cost of writing is not bounded; lists that unfold to more are skipped.
  guard let value, weight(value, limit: 1 << 20) < 1 << 20 else { return 0 }
  let written = PropertyList.encodeBinary(value)
  guard let again = try? PropertyList.decode(written), PropertyList.encodeBinary(again) == written else {
    fatalError("a list that was read and written is read as another one, or not at all")
  }
  return 0
}

/// The approximate number of bytes of a written value; at least `limit` where counting further is not worthwhile.
private func weight(_ value: PropertyListValue, limit: Int) -> Int {
  switch value {
  case .string(let text): 16 + 2 * text.utf8.count
  case .data(let bytes): 16 + bytes.count
  case .array(let elements):
    elements.reduce(16) { $0 < limit ? $0 + weight($1, limit: limit - $0) : $0 }
  case .dictionary(let entries):
    entries.reduce(16) { $0 < limit ? $0 + 2 * $1.key.utf8.count + weight($1.value, limit: limit - $0) : $0 }
  default: 16
  }
}
