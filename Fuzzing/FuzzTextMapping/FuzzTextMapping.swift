// Fuzzes text mappings within the bounds: TOML in, a mapping that is matched with two models and checked, or an error
// with its message, out. The configuration uses the same reader of TOML.

import Diagnostics
import FuzzBounds
import ManagedObjectModel
import MappingModel
import SystemPackage

/// Two versions with the entities that the seeds name.
private let versions = ["V1", "V2"].map { name in
  ManagedObjectModel(
    name: name,
    entities: [
      Entity(
        name: "Dog", attributes: [Attribute(name: "name", type: .string), Attribute(name: "legs", type: .integer16)],
        relationships: [Relationship(name: "owner", destinationEntityName: "Person", inverseName: "dogs")]),
      Entity(
        name: "Person", attributes: [Attribute(name: name, type: .string)],
        relationships: [
          Relationship(name: "dogs", destinationEntityName: "Dog", inverseName: "owner", isToMany: true)
        ]),
    ])
}

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  // Bytes that are not text are refused before they are read (TOMLFile).
  let bytes = UnsafeBufferPointer(start: data, count: size)
  guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else { return 0 }
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  do throws(HopdError) {
    let file = try TextMapping(text: text, file: "/Fuzz.hopmap.toml")
    let loaded = try file.load(source: versions[0], destination: versions[1])
    for entity in loaded.mapping.entityMappings {
      _ = (entity.attributes + entity.relationships).map { $0.value?.description }
    }
    let findings = MappingChecker.findings(in: [loaded.mapping], source: versions[0], destination: versions[1])
    _ = findings.map(\.description)
    if findings.isEmpty {
      _ = MappedHop(mappings: [loaded.mapping]).nameTrail(source: versions[0], destination: versions[1])
    }
  } catch {
    // An error must name its line, or the reader has to search for it.
    if error.reasons.isEmpty, error.place.file == nil {
      fatalError("an error of a text mapping names no file")
    }
    _ = error.description
  }
  return 0
}
