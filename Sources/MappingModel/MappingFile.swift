// A mapping model as a file that has been read but not yet been set against models, whatever its form. What it serves is
// asked version by version, each side by itself, because a mapping model may fit any pair of many versions.

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// One version of a model, as far as choosing mapping models needs it.
package struct MappableVersion: Sendable {
  /// Name of the model it belongs to, without extension.
  package let modelName: String
  package let model: ManagedObjectModel
  /// `model.versionHashes`, computed once.
  package let hashes: [String: VersionHash]

  /// Makes a version; the hashes are computed where they are not given.
  package init(modelName: String, model: ManagedObjectModel, hashes: [String: VersionHash]? = nil) {
    self.modelName = modelName
    self.model = model
    self.hashes = hashes ?? model.versionHashes
  }
}

/// Does a mapping model fit a version, on one of its two sides?
package enum MappingFit: Sendable {
  /// It was made for that version.
  case exact
  /// It was made for a version of that name in a model of another name; the remark says so.
  case loose(HopdError)
  /// It was made for that version in another state, or for one that is gone; each reason names what differs. Of several
  /// versions the one with the highest closeness (0 to 1) is the one that was meant.
  case stale([HopdError], closeness: Double)
  /// It has nothing to do with that version.
  case unrelated
}

/// A mapping model that was read.
package protocol MappingFile: Sendable {
  /// The file or folder.
  var path: FilePath { get }
  /// Its name without extension.
  var name: String { get }
  /// Which form it has.
  var form: MappingForm { get }
  /// Names of the source entities that it maps.
  var sourceEntities: Set<String> { get }
  /// Does it begin at that version?
  func fit(source version: MappableVersion) -> MappingFit
  /// Does it end at that version?
  func fit(destination version: MappableVersion) -> MappingFit
  /// The mapping as a `.cdm` would say it; names that lead nowhere are kept, `MappingChecker` finds them.
  ///
  /// Throws where it uses what is not supported.
  func load(
    source: ManagedObjectModel, destination: ManagedObjectModel
  ) throws(HopdError) -> LoadedMapping
}

/// A mapping with what was left out of it.
package struct LoadedMapping: Sendable {
  package let mapping: ExplicitMapping
  package let warnings: [HopdError]

  /// Makes a loaded mapping.
  package init(mapping: ExplicitMapping, warnings: [HopdError] = []) {
    self.mapping = mapping
    self.warnings = warnings
  }
}

/// Reads mapping models.
package enum MappingReader {
  /// The mapping model at `path`; throws where it cannot be read at all.
  package static func read(at path: FilePath) throws(HopdError) -> any MappingFile {
    switch MappingForm(path) {
    case .source?: return try XcodeMappingFile(at: path)
    case .compiled?: return try CompiledMappingFile(at: path)
    case .text?: return try TextMapping.read(at: path)
    case nil:
      throw HopdError(
        .invalidMapping, "this is no mapping model", at: Place(file: path),
        hint: "Name an .xcmappingmodel folder, a .cdm or .hopmap.toml file.")
    }
  }
}
