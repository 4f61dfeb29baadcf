// Fuzzes a store's own copy of its model within the bounds: raw DEFLATE of a keyed archive in, a checked model with its
// hashes or an error with its message out.

import Diagnostics
import FuzzBounds
import ManagedObjectModel
import PersistentStore

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  let bytes = Array(UnsafeBufferPointer(start: data, count: size))
  do {
    let (model, warnings) = try ModelReader.read(compiled: try ModelCache.decompress(bytes), name: "Fuzz")
    _ = model.versionHashes
    _ = warnings.map { String(describing: $0) }
  } catch {
    _ = error.description
  }
  return 0
}
