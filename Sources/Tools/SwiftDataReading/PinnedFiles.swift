// Version hashes in the files of an app: its tests pin them, and hop.lock has them too. Any text file will do, because
// a value proves itself by being equal; nothing in it is run.

import Diagnostics
import Glibc
import ManagedObjectModel
import SwiftDataSource
import SystemPackage

/// Reads pinned hashes.
package enum PinnedFiles {
  private static let mostFiles = 20_000

  /// Returns the values in files, and in the files of folders.
  package static func read(_ paths: [FilePath], limits: SourceLimits = SourceLimits()) throws(HopdError) -> PinnedHashes
  {
    var pinned = PinnedHashes()
    var total = 0
    for path in paths {
      switch try ModelFiles.kind(of: path) {
      case .file: try add(path, &pinned, &total, limits)
      case .folder: for file in try files(in: path) { try add(file, &pinned, &total, limits) }
      default:
        throw HopdError(
          .notFound, "no such file or directory", at: Place(file: path), hint: "pass a directory of tests")
      }
    }
    guard !pinned.isEmpty else {
      throw HopdError(
        .notFound, "no version hash is written here", at: Place(file: paths.first),
        hint: "pass a file that has entity hashes, a checksum or a digest, in base64 or hexadecimal")
    }
    return pinned
  }

  private static func add(
    _ file: FilePath, _ pinned: inout PinnedHashes, _ total: inout Int, _ limits: SourceLimits
  ) throws(HopdError) {
    let bytes = try ModelFiles.bytes(of: file, limit: limits.fileBytes)
    // A file of another kind, such as a picture or a store.
    guard !bytes.prefix(4096).contains(0) else { return }
    total += bytes.count
    guard total <= limits.allBytes else {
      throw HopdError(
        .sourceTooLarge, "the files have more than \(limits.allBytes >> 20) MiB", at: Place(file: file),
        hint: "pass only the directory of the tests")
    }
    pinned.add(bytes, of: file.string)
  }

  /// The files below a folder that can be text. Links are not followed.
  private static func files(in folder: FilePath) throws(HopdError) -> [FilePath] {
    var (found, folders, entries): ([FilePath], [(FilePath, Int)], Int) = ([], [(folder, 0)], 0)
    while let (place, depth) = folders.popLast() {
      for name in try ModelFiles.names(in: place).sorted() where !name.hasPrefix(".") {
        entries += 1
        guard entries <= 500_000, found.count <= mostFiles else {
          throw HopdError(
            .sourceTooLarge, "the directory has too many files", at: Place(file: folder),
            hint: "pass only the directory of the tests")
        }
        let path = place.appending(name)
        var info = stat()
        guard path.withPlatformString({ lstat($0, &info) }) == 0 else { continue }
        switch info.st_mode & S_IFMT {
        // Larger ones are no source.
        case S_IFREG where info.st_size <= 4 << 20: found.append(path)
        case S_IFDIR where depth < 32: folders.append((path, depth + 1))
        default: break
        }
      }
    }
    return found
  }
}
