// Mapping models wherever models are looked for. They cannot be followed yet, and a hop that has one must never be
// inferred behind the user's back; so they are found, named, and where they were asked for, refused.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MappingModel
import SystemPackage

/// Finds mapping models.
enum MappingFiles {
  /// Mapping models at or below `path`, sorted.
  static func find(at path: FilePath) throws -> [FilePath] {
    try MappingFileSearch.find(at: try LinuxFileSystem().canonical(path))
  }

  /// The refusal of mapping models that were asked for.
  static func refusal(_ found: [FilePath], named paths: [FilePath]) -> HopdError {
    let list = (found.isEmpty ? paths : found).map(\.printable).joined(separator: ", ")
    return HopdError(
      .notSupportedYet, "mapping models are not supported yet: \(list)", at: Place(file: found.first ?? paths.first),
      hint: "hops that can be inferred need none: leave --mappings out; hops that need one wait for a later release")
  }

  /// The remark on mapping models beside models.
  static func remark(_ found: [FilePath]) -> HopdError {
    HopdError(
      .mappingNotRead,
      "mapping models are not read yet; a hop that one of them describes is inferred, or refused, without it: "
        + found.map(\.printable).joined(separator: ", "), at: Place(file: found.first),
      hint: "do not migrate over a hop that has a mapping model: the result would not be what its author meant")
  }
}

extension HopdError.Code {
  /// A mapping model lies beside the models and is not read.
  static let mappingNotRead = HopdError.Code("mapping-not-read", exit: .success)
}
