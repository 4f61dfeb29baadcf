// Fuzzes compiled mapping models within the bounds: a keyed archive in, a mapping that is matched with two models and
// checked, or an error with its message, out.

import Diagnostics
import FuzzBounds
import ManagedObjectModel
import MappingModel
import SystemPackage

/// Two versions with the entities that the seeds name.
private let versions = ["V1", "V2"].map { name in
  MappableVersion(
    modelName: "Zoo",
    model: ManagedObjectModel(
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
      ]))
}

/// One input: never a trap, whatever the bytes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  fuzz_bounds_begin()
  defer { fuzz_bounds_end() }
  let bytes = Array(UnsafeBufferPointer(start: data, count: size))
  do {
    let file = try CompiledMappingFile(contents: bytes, path: "/Fuzz.cdm")
    // No seed has a matching hash: mappings that their hashes would rule out are loaded here too.
    _ = try file.load(source: versions[0].model, destination: versions[1].model).warnings.map(\.description)
    let loaded = try file.loadAsCompiled(for: versions[0].model, versions[1].model)
    _ = loaded.warnings.map(\.description)
    for entity in loaded.mapping.entityMappings {
      _ = (entity.attributes + entity.relationships).map { $0.value?.description }
    }
    let findings = MappingChecker.findings(
      in: [loaded.mapping], source: versions[0].model, destination: versions[1].model)
    _ = findings.map(\.description)
    if findings.isEmpty {
      _ = MappedHop(mappings: [loaded.mapping]).nameTrail(source: versions[0].model, destination: versions[1].model)
    }
    _ = MappingCatalog(files: [file]).hops(among: versions).stale.map(\.description)
  } catch {
    _ = "\(error)"
  }
  return 0
}
