// Fuzzes CSV within the bounds: the first byte chooses delimiter and encoding, the rest is the file, whose rows are
// read to the end. A row in a wrong form is one error, and reading goes on behind it.

import Diagnostics
import FuzzBounds
import StoreExchange
import SystemPackage

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  guard let data, size > 0 else { return 0 }
  let file = FilePath(platformString: fuzz_file(data + 1, size - 1))
  let delimiters: [UInt8] = [0x2c, 0x09, 0x3b, 0x7c]
  let encodings: [TextEncoding?] = [nil, .utf8, .utf16, .windows1252]
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  do {
    let reader = try CSVReader(
      file, delimiter: delimiters[Int(data[0] & 3)], encoding: encodings[Int(data[0] >> 2 & 3)])
    _ = reader.advice
    var line: Int64 = 0
    while true {
      do {
        guard let record = try reader.next() else { break }
        if record.line < line || record.cells.count != reader.columns.count { fatalError("a row is out of form") }
        line = record.line
        _ = record.cells.hashValue
        if !(0...1).contains(reader.share) { fatalError("the share is out of its range") }
      } catch let error as HopdError where error.code == .rowInvalid {
        mustNameLine(error)
      }
    }
  } catch let error as HopdError {
    if error.code == .inputOutput || error.place.file == nil { fatalError("\(error)") }
    _ = error.description
  } catch {
    fatalError("an error of CSV is none of hopd's")
  }
  return 0
}

/// An error of a row must name its line, or the reader has to search for it.
private func mustNameLine(_ error: HopdError) {
  if error.place.line == nil { fatalError("an error of a row names no line") }
  _ = error.description
}
