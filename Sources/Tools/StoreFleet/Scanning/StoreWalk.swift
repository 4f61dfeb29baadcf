// The files below folders that may be stores, found batch by batch: a fleet of millions is never in memory as a whole.
// A folder is opened without following a link, and its files are named below its descriptor.

import Diagnostics
import DurableFiles
import Glibc
import StoreReplacement
import SystemPackage

extension HopdError.Code {
  /// A path is not valid UTF-8, so that no command and no line can contain it.
  package static let pathNotText = HopdError.Code("path-not-utf8", exit: .dataError)
}

/// Walks folders in the order of their names. Hidden entries are backups and staged stores, and are left out, as are
/// folders of backups in a configured place, whose names have no leading dot; links are not followed, because a folder
/// could hold itself.
package struct StoreWalk {
  /// A file that may be a store.
  package struct Candidate: Sendable, Hashable {
    package var path: FilePath
    /// Bytes of the database, without its log.
    package var size: Int64
    /// Last change, nanoseconds since 1970.
    package var modified: Int64
    /// Where it was found; nil where it was not found by a walk.
    package var place: FoundPlace?

    /// The path as a line has it: where it is not UTF-8, with its bytes as `\xNN`.
    package var name: String { String(validating: path) ?? path.printable }

    /// Why no command can name the store; nil where its path is UTF-8.
    fileprivate var refusal: HopdError? {
      guard String(validating: path) == nil else { return nil }
      return HopdError(
        .pathNotText, "the path is not UTF-8, so hopd cannot name the store and its side files", at: Place(store: path),
        hint: "rename the store together with its -wal, -shm and -journal files, or its parent directory")
    }
  }

  /// The folders and files that could not be read, with the reason; the walk continues without them. Whoever takes
  /// what it found for the whole fleet must look here first.
  package private(set) var unreadable: [HopdError] = []

  private var folders: [FilePath]
  private var found: [Candidate] = []
  /// The uninspected files of the current folder, the next one last. Names alone: a folder may have a million of them.
  private var folder: OpenDirectory?
  private var names: [String] = []

  /// Prepares a walk. Paths are canonical, and may also name a file. What is named is visited whatever its name or the
  /// folders above it: only who names a folder of backups, or a backup, can mean it.
  package init(_ paths: [FilePath]) throws(HopdError) {
    folders = []
    for path in paths {
      var info = stat()
      guard path.withPlatformString({ stat($0, &info) }) == 0 else {
        let code = errno
        throw HopdError(
          code == EACCES ? .noPermission : .notFound, "no such file or directory", at: Place(file: path),
          cause: Errno(rawValue: code), hint: "check the path")
      }
      if info.st_mode & S_IFMT == S_IFDIR {
        folders.append(path)
      } else {
        found.append(Candidate(path, info))
      }
    }
    folders.reverse()
  }

  /// The next files, about `count` of them; none at the end.
  package mutating func next(_ count: Int) -> [Candidate] {
    while found.count < count {
      if let name = names.popLast() {
        if let component = FilePath.Component(name), let folder { inspect(component, in: folder) }
      } else if let next = folders.popLast() {
        visit(next)
      } else {
        break
      }
    }
    defer { found.removeAll(keepingCapacity: true) }
    return found
  }

  private mutating func inspect(_ component: FilePath.Component, in folder: OpenDirectory) {
    let path = folder.path.appending(component)
    var info = stat()
    guard component.withPlatformString({ fstatat(folder.descriptor, $0, &info, AT_SYMLINK_NOFOLLOW) }) == 0 else {
      return note(Errno(rawValue: errno), "the file cannot be inspected", path)
    }
    // The header of a database has a hundred bytes.
    guard info.st_mode & S_IFMT == S_IFREG, info.st_size >= 100 else { return }
    var candidate = Candidate(path, info)
    candidate.place = FoundPlace(
      folder: folder.identity, file: FileIdentity(device: UInt64(info.st_dev), inode: UInt64(info.st_ino)))
    found.append(candidate)
  }

  private mutating func visit(_ path: FilePath) {
    var below: [FilePath] = []
    var strange: [FilePath.Component] = []
    let folder: OpenDirectory
    do { folder = try OpenDirectory(canonical: path) } catch {
      return note((error as? HopdError)?.errno ?? .ioError, "the directory cannot be read", path)
    }
    self.folder = folder
    do throws(Errno) {
      try folder.readEntries { entry in
        // Bytes that are not UTF-8 are replaced in the text.
        guard let component = entry.component, case let name = component.string, !name.hasPrefix(".") else {
          return true
        }
        switch Self.kind(entry, of: folder, component) {
        case S_IFDIR where !name.hasSuffix(BackupSet.folderSuffix): below.append(path.appending(component))
        // Side files belong to the store beside them.
        case S_IFREG where !Self.sideFileEndings.contains(where: name.hasSuffix):
          if String(validating: component) == nil { strange.append(component) } else { names.append(name) }
        default: break
        }
        return true
      }
    } catch {
      note(error, "the directory cannot be read", path)
    }
    // They come first: there are few of them, and none can be kept as text.
    for component in strange.sorted(by: { $0.string < $1.string }) { inspect(component, in: folder) }
    names.sort(by: >)
    folders += below.sorted { $0.string > $1.string }
  }

  /// Keeps the reason why a folder or file could not be read. One that was removed in the meantime is not a store.
  private mutating func note(_ code: Errno, _ message: String, _ path: FilePath) {
    guard code != .noSuchFileOrDirectory else { return }
    unreadable.append(
      HopdError(
        code == .permissionDenied ? .noPermission : .inputOutput, message, at: Place(file: path), cause: code,
        hint: "ls -ld \(path.quotedForShell)"))
  }

  /// The kind of an entry. Not every file system returns it with the name.
  private static func kind(_ entry: FolderEntry, of folder: OpenDirectory, _ name: FilePath.Component) -> mode_t {
    switch entry.type {
    case Int(DT_REG): return S_IFREG
    case Int(DT_DIR): return S_IFDIR
    case Int(DT_UNKNOWN):
      var info = stat()
      // One that cannot be inspected counts as a file, so that the reason is noted when it is its turn.
      guard name.withPlatformString({ fstatat(folder.descriptor, $0, &info, AT_SYMLINK_NOFOLLOW) }) == 0 else {
        return S_IFREG
      }
      return info.st_mode & S_IFMT
    default: return 0
    }
  }

  private static let sideFileEndings = ["-wal", "-shm", "-journal"]
}

extension StoreLine {
  /// A file that was found and not inspected yet, unless its name is refused.
  package init(_ file: StoreWalk.Candidate) {
    self.init(store: file.name)
    (size, modified, place) = (file.size, file.modified, file.place)
    guard let refusal = file.refusal else { return }
    state = "unreadable"
    error = LineError(refusal)
  }

  /// Whether it stands for a store that no path names: only the walk that found it saw its bytes.
  var hasNoPath: Bool { error?.code == HopdError.Code.pathNotText.name }
}

extension StoreWalk.Candidate {
  /// The present file of a line; nil where there is none.
  init?(_ line: StoreLine) {
    let path = FilePath(line.store)
    guard let info = path.linkStatus() else { return nil }
    self.init(path, info)
  }

  fileprivate init(_ path: FilePath, _ info: stat) {
    let (seconds, _) = Int64(info.st_mtim.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
    self.init(path: path, size: Int64(info.st_size), modified: seconds &+ Int64(info.st_mtim.tv_nsec))
  }
}
