// The few file calls that reading a model needs: the kind of a path, the names in a folder, and the bytes of one file.
// They only read, never block on a pipe and never read more than the limit.

import Diagnostics
import Glibc
import SystemPackage

/// Reads files and folders of models and mapping models.
package enum ModelFiles {
  /// The kind of object at a path, symbolic links followed.
  package enum Kind: Equatable {
    /// A folder, with its identity, by which a search recognizes one that it has visited.
    case folder(device: UInt64, inode: UInt64)
    /// A regular file.
    case file
    /// A pipe, socket or device.
    case other
    /// Nothing.
    case missing
  }

  /// Returns the kind of object at `path`; throws if it cannot be determined.
  package static func kind(of path: FilePath) throws(HopdError) -> Kind {
    var info = stat()
    guard path.withPlatformString({ stat($0, &info) }) == 0 else {
      let code = errno
      // A symbolic link to itself has no target, like one whose target was removed; neither hides the other files of
      // its folder.
      if [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG].contains(code) { return .missing }
      throw error(code, "cannot inspect it", path)
    }
    switch info.st_mode & S_IFMT {
    case S_IFDIR: return .folder(device: UInt64(info.st_dev), inode: UInt64(info.st_ino))
    case S_IFREG: return .file
    default: return .other
    }
  }

  /// Whether the path names a symbolic link.
  static func isLink(_ path: FilePath) -> Bool {
    var info = stat()
    return path.withPlatformString { lstat($0, &info) } == 0 && info.st_mode & S_IFMT == S_IFLNK
  }

  /// Returns the names in a folder in the order of their bytes, without `.` and `..`.
  package static func names(in path: FilePath) throws(HopdError) -> [String] {
    let most = 100_000
    var names: [String] = []
    do throws(Errno) {
      try path.readEntries { entry in
        // A name that is not UTF-8 cannot be a model's.
        if let name = String(validatingCString: entry.name), name != ".", name != ".." { names.append(name) }
        return names.count <= most
      }
    } catch let reason {
      throw error(reason.rawValue, "cannot read the directory", path)
    }
    guard names.count <= most else {
      throw HopdError(.modelTooLarge, "the directory has more than \(most) entries", at: Place(file: path))
    }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// Returns the bytes of a regular file of at most `limit` bytes.
  package static func bytes(of path: FilePath, limit: Int) throws(HopdError) -> [UInt8] {
    // Nonblocking: opening a pipe in place of the file must not block.
    let descriptor = path.withPlatformString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else { throw error(errno, "cannot open the file", path) }
    defer { close(descriptor) }
    var info = stat()
    guard fstat(descriptor, &info) == 0 else { throw error(errno, "cannot inspect the file", path) }
    guard info.st_mode & S_IFMT == S_IFREG else {
      throw HopdError(.invalidModel, "this is not a regular file", at: Place(file: path))
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(min(max(0, Int(info.st_size)), limit) + 1)
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        throw error(errno, "cannot read the file", path)
      }
      if count == 0 { return bytes }
      guard bytes.count + count <= limit else {
        throw HopdError(.modelTooLarge, "the file has more than \(limit) bytes", at: Place(file: path))
      }
      bytes += buffer[..<count]
    }
  }

  private static func error(_ code: Int32, _ what: String, _ path: FilePath) -> HopdError {
    let kind: HopdError.Code =
      switch code {
      case ENOENT, ENOTDIR: .notFound
      case EACCES, EPERM: .noPermission
      default: .inputOutput
      }
    let hint =
      switch kind {
      case .notFound: "check the path"
      case .noPermission: "grant hopd read access to it"
      default: "check that it is a regular file or directory, and check the kernel log: dmesg"
      }
    return HopdError(kind, what, at: Place(file: path), cause: Errno(rawValue: code), hint: hint)
  }
}

extension HopdError.Code {
  /// A link below a folder of models is not searched.
  package static let linkNotSearched = HopdError.Code("link-not-searched", severity: .note)
}

/// Searches a folder and its subfolders, links followed: each folder once, because links can form a cycle. A link to
/// the folder itself or to one above it is not searched: it leads to the whole machine.
package struct FolderSearch {
  /// What a search does with a file or folder.
  package enum Answer {
    /// The path is a result.
    case found
    /// If it is a folder, the search continues in it.
    case descend
    case ignore
  }

  private let judge: (FilePath) throws(HopdError) -> Answer
  private let skipped: (HopdError) -> Void
  private let tooMany: HopdError
  private let above: Set<[UInt64]>
  private var found: [FilePath] = []
  private var visited: Set<[UInt64]> = []
  private var entries = 0

  /// Returns the paths below `folder` for which `judge` returns `found`, sorted by their bytes; hidden folders are not
  /// searched. `skipped` gets the links that are not searched, with the reason.
  ///
  /// Throws `tooMany` for more than 200,000 entries.
  package static func paths(
    below folder: FilePath, tooMany: HopdError, skipped: @escaping (HopdError) -> Void = { _ in },
    judge: @escaping (FilePath) throws(HopdError) -> Answer
  ) throws(HopdError) -> [FilePath] {
    var search = FolderSearch(
      judge: judge, skipped: skipped, tooMany: tooMany.located(Place(file: folder)), above: try foldersAbove(folder))
    try search.visit(folder, depth: 0)
    return search.found.sorted { $0.string.utf8.lexicographicallyPrecedes($1.string.utf8) }
  }

  /// The folder and those that contain it, by device and inode.
  private static func foldersAbove(_ folder: FilePath) throws(HopdError) -> Set<[UInt64]> {
    var above: Set<[UInt64]> = []
    var path = folder
    while case .folder(let device, let inode) = try ModelFiles.kind(of: path), above.insert([device, inode]).inserted {
      path.append(FilePath.Component(".."))
    }
    return above
  }

  private mutating func visit(_ folder: FilePath, depth: Int) throws(HopdError) {
    guard depth <= 12, case .folder(let device, let inode) = try ModelFiles.kind(of: folder),
      visited.insert([device, inode]).inserted
    else { return }
    for name in try ModelFiles.names(in: folder) {
      entries += 1
      guard entries <= 200_000 else { throw tooMany }
      let path = folder.appending(name)
      switch try judge(path) {
      case .found: found.append(path)
      // A repository's own hidden folder can be huge.
      case .descend where !name.hasPrefix("."): try descend(path, depth: depth)
      case .descend, .ignore: break
      }
    }
  }

  private mutating func descend(_ path: FilePath, depth: Int) throws(HopdError) {
    guard case .folder(let device, let inode) = try ModelFiles.kind(of: path) else { return }
    guard ModelFiles.isLink(path) else { return try visit(path, depth: depth + 1) }
    guard !above.contains([device, inode]) else {
      return skip(path, "this link is not searched: it leads to the directory itself, or to one above it", nil)
    }
    do throws(HopdError) {
      try visit(path, depth: depth + 1)
    } catch {
      // What a link leads to is not the folder's own, and must not hide its models.
      guard error.code != tooMany.code else { throw error }
      skip(path, "this link is not searched", error)
    }
  }

  private func skip(_ path: FilePath, _ message: String, _ cause: HopdError?) {
    skipped(
      HopdError(
        .linkNotSearched, message, at: Place(file: path), cause: cause,
        hint: "remove it, or pass the target of the link"))
  }
}
