// Fuzzes the messages of the control socket within the bounds. A call or a reply that is read is written again, and
// must be read again as the same message.

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
