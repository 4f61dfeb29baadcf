// Fuzzes hop.lock within the bounds: a file that is read is written again, and must be read again as the same file.

import Diagnostics
import FuzzBounds
import MigrationChecking
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
    let lock = try LockFile(text: text, of: "/Fuzz/hop.lock")
    let again = try LockFile(text: lock.text, of: "/Fuzz/hop.lock")
    // The writer sorts models by name.
    let names = lock.models.map(\.name)
    if Set(names).count == names.count, Set(again.models) != Set(lock.models) {
      fatalError("a lock file does not read back as it was written")
    }
  } catch {
    if error.place.file == nil { fatalError("an error of a lock file names no file") }
    _ = error.description
  }
  return 0
}
