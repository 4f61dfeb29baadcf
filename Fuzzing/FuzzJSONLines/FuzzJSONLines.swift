// Fuzzes JSON lines within the bounds: the bytes are a file, whose values at some paths are read to the end.

import Diagnostics
import FuzzBounds
import StoreExchange
import SystemPackage

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let file = FilePath(platformString: fuzz_file(data, size))
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  do {
    let reader = try JSONLinesReader(file, columns: ["id", "name", "address.city", "tags", "a.b.c"])
    while let record = try reader.next() { _ = record.cells.hashValue }
  } catch let error as HopdError {
    if error.code == .inputOutput || error.place.file == nil { fatalError("\(error)") }
    _ = error.description
  } catch {
    fatalError("an error of JSON lines is none of hopd's")
  }
  return 0
}
