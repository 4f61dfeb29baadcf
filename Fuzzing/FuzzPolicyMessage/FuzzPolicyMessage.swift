// Messages of policy programs between libFuzzer and the bounds: the JSON of a frame in, a message or an error with its
// words out, at both ends of the pipe. What reads must also be written and read again as the same message.

import FuzzBounds
import MigrationPolicy

/// The calls a reply may answer: what it may say depends on them.
private let calls: [PolicyCall?] = [
  nil, .begin, .end,
  .createDestinationInstances(
    (1...2).map { key in
      PolicySourceInstance(
        source: PolicyObject(
          id: PolicyObjectID(side: .source, entity: "A", key: Int64(key)), values: ["n": .integer(1)]),
        standard: PolicyObject(
          id: PolicyObjectID(side: .destination, entity: "A", key: Int64(key)), values: ["n": .integer(1)]))
    }),
]

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  let json = Array(UnsafeBufferPointer(start: data, count: size))
  fuzz_bounds_begin()
  var program: [PolicyProgramMessage] = []
  for call in calls {
    do {
      program.append(try PolicyWire.decodeProgram(json, during: call))
    } catch {
      _ = "\(error)"
    }
  }
  var engine: PolicyEngineMessage?
  do {
    engine = try PolicyWire.decodeEngine(json)
  } catch {
    _ = "\(error)"
  }
  fuzz_bounds_end()
  for message in program {
    guard let frame = PolicyWire.encode(message),
      let again = try? PolicyWire.decodeProgram(Array(frame.dropFirst(4)), during: nil),
      PolicyWire.encode(again) == frame
    else { fatalError("a program's message that was read and written is read as another one, or not at all") }
  }
  if let engine {
    guard let frame = PolicyWire.encode(engine),
      let again = try? PolicyWire.decodeEngine(Array(frame.dropFirst(4))), PolicyWire.encode(again) == frame
    else { fatalError("an engine's message that was read and written is read as another one, or not at all") }
  }
  return 0
}
