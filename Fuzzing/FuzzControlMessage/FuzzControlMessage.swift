// Messages of the control socket between libFuzzer and the bounds. What is read as a call or a reply is written again,
// and must read back the same.

import FuzzBounds
import HopdControl

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let bytes = [UInt8](UnsafeBufferPointer(start: data, count: size))
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  if let call = ControlCall(bytes), ControlCall(call.bytes.dropLast()) != call {
    fatalError("a call does not read back as it was written")
  }
  if let reply = ControlReply(bytes), ControlReply(reply.bytes.dropLast()) != reply {
    fatalError("a reply does not read back as it was written")
  }
  return 0
}
