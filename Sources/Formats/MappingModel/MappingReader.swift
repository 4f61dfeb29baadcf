// The only place that lists all forms of mapping models.

import Diagnostics
import SystemPackage

/// Reads mapping models.
package enum MappingReader {
  /// Returns the mapping model at `path`; throws if it cannot be read at all.
  package static func read(at path: FilePath) throws(HopdError) -> any MappingFile {
    switch MappingForm(path) {
    case .source?: return try XcodeMappingFile(at: path)
    case .compiled?: return try CompiledMappingFile(at: path)
    case .text?: return try TextMapping.read(at: path)
    case nil where MappingForm.isStages(path):
      throw HopdError(
        .invalidMapping, "this is a file of stages and no mapping model", at: Place(file: path),
        hint: "run `hopctl plan STORE --models … --mappings …`, which shows stages among the hops")
    case nil:
      throw HopdError(
        .invalidMapping, "not a mapping model", at: Place(file: path),
        hint: "pass an .xcmappingmodel, a .cdm or .hopmap.toml file")
    }
  }
}
