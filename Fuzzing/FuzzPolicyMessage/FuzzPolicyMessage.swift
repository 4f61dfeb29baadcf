// Fuzzes the messages of policy programs within the bounds: the bytes of a frame in, packed or JSON, a message or an
// error with its message out, at both ends of the pipe. A message that is read must be written, in both forms, and read
// again as the same message.

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
    guard let packed = PolicyWire.encodePacked(changes, isEnd: true),
      case .done(let again)? = try? PolicyWire.decode(Array(packed.dropFirst(4)), instances: 2),
      let plain = PolicyWire.encode(done: changes), PolicyWire.encode(done: again) == plain,
      case .done(let read)? = try? PolicyWire.decode(Array(plain.dropFirst(4)), instances: 2),
      PolicyWire.encode(done: read) == plain
    else { fatalError("changes are not the same in both forms") }
  }
  // Only small messages: a value that a row shares with its source is written in full.
  if json.count < 4096, case .call(.createDestinationInstances(let instances), let keys)? = engine {
    guard let frame = PolicyWire.encodePacked(PolicyBatch(instances), keys: keys), let engine,
      let again = try? PolicyWire.decodeEngine(Array(frame.dropFirst(4))),
      PolicyWire.encode(again) == PolicyWire.encode(engine)
    else { fatalError("a call is not the same in both forms") }
  }
  if json.count >= 4096, json.first.map({ $0 < 9 }) ?? false { return 0 }
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
