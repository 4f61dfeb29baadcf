// Finds mapping models: named ones, and those in a folder, which is searched with limits and without bundles. It is
// here rather than in a program because the daemon and the command line must find the same ones.

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// The forms of mapping models, by the end of their names.
package enum MappingForm: Sendable, Hashable {
  /// `.xcmappingmodel`, a folder with one file `xcmapping.xml`.
  case source
  /// `.cdm`.
  case compiled
  /// `.hopmap.toml`, the project's own text form.
  case text

  /// Whether it is a file of stages; it may be among mapping models, but is not one.
  static func isStages(_ path: FilePath) -> Bool {
    path.lastComponent?.string.hasSuffix(DeclaredStage.fileNameEnd) ?? false
  }

  /// The form that a path's name indicates; nil for any other name.
  package init?(_ path: FilePath) {
    guard let name = path.lastComponent else { return nil }
    switch name.extension {
    case "xcmappingmodel": self = .source
    case "cdm": self = .compiled
    case "toml" where name.string.hasSuffix(".hopmap.toml"): self = .text
    default: return nil
    }
  }
}

/// Finds mapping models.
package enum MappingFileSearch {
  /// Returns the mapping models and files of stages at or below `path`, sorted by bytes; `path` itself if it is one.
  ///
  /// Bundles of models and hidden folders are not searched. Throws if the path does not exist or is neither a mapping
  /// model nor a folder.
  package static func find(at path: FilePath) throws(HopdError) -> [FilePath] {
    let kind = try ModelFiles.kind(of: path)
    if kind == .missing {
      throw HopdError(
        .notFound, "no such file or directory", at: Place(file: path), hint: "check the path")
    }
    if MappingForm(path) != nil || MappingForm.isStages(path) { return [path] }
    guard case .folder = kind else {
      throw HopdError(
        .invalidMapping, "not a mapping model or a directory of mapping models", at: Place(file: path),
        hint: "pass an .xcmappingmodel, a .cdm, .hopmap.toml or .hopstages.toml file, or their directory")
    }
    let tooMany = HopdError(
      .mappingTooLarge, "more than 200000 files in this directory",
      hint: "pass the directory that contains the mapping models, not one above it")
    return try FolderSearch.paths(below: path, tooMany: tooMany) { path throws(HopdError) in
      if MappingForm(path) != nil || MappingForm.isStages(path) { return .found }
      let isModel = ["xcdatamodeld", "xcdatamodel", "momd", "mom", "omo"].contains(path.extension ?? "")
      return isModel ? .ignore : .descend
    }
  }
}
