// Fuzzes the messages of policy programs within the bounds: the bytes of a frame in, a message or an error with
// its message out, at both ends of the pipe. A message that is read must be written, and read again as the same one.

import FuzzBounds
import MigrationPolicy

/// The calls that a reply may answer: they decide its possible contents.
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
  var changes: [PolicyWireOperation]?
  do {
    switch try PolicyWire.decode(json, instances: 2) {
    case .done(let operations), .apply(let operations): changes = operations
    case .message: break
    }
  } catch {
    _ = "\(error)"
  }
  fuzz_bounds_end()
  if let changes {
    guard let frame = PolicyWire.encode(done: changes),
      case .done(let again)? = try? PolicyWire.decode(Array(frame.dropFirst(4)), instances: 2),
      PolicyWire.encode(done: again) == frame
    else { fatalError("changes that were read and written are read as others, or not at all") }
  }
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
