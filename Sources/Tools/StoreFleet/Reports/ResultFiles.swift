import Diagnostics
import DurableFiles
import SystemPackage

/// Finds results files.
package enum ResultFiles {
  /// The file, or the `.ndjson` files of a folder in the order of their names.
  package static func at(_ path: FilePath) throws -> [FilePath] {
    let files = LinuxFileSystem()
    guard let real = try? CanonicalDirectory(resolving: path).path, try files.status(real)?.kind == .directory else {
      return [path]
    }
    let found = try files.names(in: real).filter { $0.extension == "ndjson" }.map { real.appending($0) }
    guard !found.isEmpty else {
      throw HopdError(
        .notFound, "the directory has no .ndjson files", at: Place(file: path),
        hint: "pass the directory that was passed to `hopctl fleet run --results`")
    }
    return found
  }
}
