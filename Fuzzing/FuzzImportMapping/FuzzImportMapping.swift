// Fuzzes the mappings of imports within the bounds: TOML in, a mapping or an error with its place out.

import Diagnostics
import FuzzBounds
import StoreExchange
import SystemPackage

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  // Bytes that are not text are refused before they are read (TOMLFile).
  let bytes = UnsafeBufferPointer(start: data, count: size)
  guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else { return 0 }
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  do throws(HopdError) {
    _ = try ImportMapping(text: text, file: "/Fuzz.hopimport.toml")
  } catch {
    if error.reasons.isEmpty, error.place.file == nil { fatalError("an error of a mapping names no file") }
    _ = error.description
  }
  return 0
}
