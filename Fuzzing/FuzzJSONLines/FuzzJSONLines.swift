// Fuzzes JSON lines within the bounds: the bytes are a file, whose values at some paths are read to the end.

import Diagnostics
import FuzzBounds
import Glibc
import StoreExchange
import SystemPackage

/// A file without a name, which the reader opens by the path of its descriptor.
private let file: (descriptor: CInt, path: FilePath) = {
  var template = Array("/tmp/lines-XXXXXX".utf8CString)
  let descriptor = mkstemp(&template)
  unlink(template)
  return (descriptor, FilePath("/proc/self/fd/\(descriptor)"))
}()

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  guard ftruncate(file.descriptor, 0) == 0, pwrite(file.descriptor, data, size, 0) == size else { return 0 }
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  do {
    let reader = try JSONLinesReader(file.path, columns: ["id", "name", "address.city", "tags", "a.b.c"])
    while let record = try reader.next() { _ = record.cells.hashValue }
  } catch let error as HopdError {
    if error.place.file == nil { fatalError("an error of JSON lines names no file") }
    _ = error.description
  } catch {
    fatalError("an error of JSON lines is none of hopd's")
  }
  return 0
}
