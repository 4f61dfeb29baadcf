// Lists directories: which files count, and their status. Separate from the watcher because it holds no state. Names
// are bytes; links, pipes, devices and sockets are skipped without being opened. Everything is named below the open
// directory of the watch, and no link on the way is followed.

import Diagnostics
import DurableFiles
import Glibc
import SystemPackage

/// Lists and inspects the files of one watch, and decides by name which of them count.
struct DirectoryScan: Sendable {
  /// The content of one directory.
  struct Listing {
    /// Names of files that may count; the caller still has to inspect each.
    var files: [[UInt8]] = []
    /// Names of files that have a side file.
    var withSides: Set<[UInt8]> = []
    /// Names of files that are being sent, each with the store that it belongs to.
    var transfers: [(store: [UInt8], name: [UInt8])] = []
    /// Names of symbolic links that would count if they were files.
    var links: [[UInt8]] = []
    /// Names of directories to descend into.
    var directories: [[UInt8]] = []
  }

  /// What a file name means to the watch.
  enum Kind: Equatable {
    /// A file that counts, if it is a regular one.
    case candidate
    /// A side file of the named file.
    case side(of: [UInt8], isNoisy: Bool)
    /// A file that is being sent and belongs to the named file.
    case transfer(of: [UInt8])
    /// A name that hopd ignores.
    case other
  }

  let watch: WatchedDirectory
  let ignores: @Sendable (String) -> Bool
  let root: [UInt8]
  private let suffixes: [(bytes: [UInt8], isNoisy: Bool)]

  init(_ watch: WatchedDirectory, ignores: @escaping @Sendable (String) -> Bool) {
    self.watch = watch
    self.ignores = ignores
    root = watch.path.withPlatformString { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    suffixes =
      watch.sideSuffixes.map { (Array($0.utf8), false) } + watch.noisySuffixes.map { (Array($0.utf8), true) }
  }

  /// Returns the kind of a file name.
  func kind(_ name: [UInt8]) -> Kind {
    for (suffix, isNoisy) in suffixes where name.count > suffix.count && name.suffix(suffix.count) == suffix[...] {
      return .side(of: Array(name.dropLast(suffix.count)), isNoisy: isNoisy)
    }
    for destination in TransferName.destinations(of: name) {
      let suffix = suffixes.first {
        destination.count > $0.bytes.count && destination.suffix($0.bytes.count) == $0.bytes[...]
      }
      let store = Array(destination.dropLast(suffix?.bytes.count ?? 0))
      if mayCount(store) { return .transfer(of: store) }
    }
    return mayCount(name) ? .candidate : .other
  }

  private func mayCount(_ name: [UInt8]) -> Bool {
    watch.include.contains { $0.matches(name) } && !watch.exclude.contains { $0.matches(name) }
      && (watch.takesEverything || !ignores(String(decoding: name, as: UTF8.self)))
  }

  /// The directory of a name below the watched directory, and the name in it; nil if it no longer exists.
  func place(of relative: [UInt8], in root: OpenDirectory) -> (folder: OpenDirectory, name: [UInt8])? {
    guard let slash = relative.lastIndex(of: UInt8(ascii: "/")) else { return (root, relative) }
    guard let folder = try? root.directory(Self.filePath(Array(relative[..<slash]))) else { return nil }
    return (folder, Array(relative[(slash + 1)...]))
  }

  /// Seconds since the last change of a regular file or of its name, by the system's clock; nil if the file no longer
  /// exists.
  func secondsSinceChange(_ relative: [UInt8]) -> Int64? {
    guard let root = try? watch.root.open(), let (folder, name) = place(of: relative, in: root),
      let status = Self.status(name, in: folder), status.st_mode & S_IFMT == S_IFREG
    else { return nil }
    return Int64(time(nil)) &- Int64(status.st_ctim.tv_sec)
  }

  /// Whether directories of this name are descended into.
  func descends(into name: [UInt8]) -> Bool {
    watch.recursive && name.first != UInt8(ascii: ".") && !name.isEmpty
      && !watch.excludedFolders.contains { $0.matches(name) }
  }

  /// The path of a name below the watched directory; the empty name is the directory itself.
  func path(_ relative: [UInt8]) -> [UInt8] { relative.isEmpty ? root : root + [UInt8(ascii: "/")] + relative }

  /// The same as a `FilePath`.
  func filePath(_ relative: [UInt8]) -> FilePath { Self.filePath(path(relative)) }

  /// The canonical path of a name below the watched directory.
  func key(_ relative: [UInt8]) -> FilePath {
    relative.isEmpty ? watch.root.path : watch.root.path.appending(Self.filePath(relative).components)
  }

  static func filePath(_ bytes: [UInt8]) -> FilePath { withCString(bytes) { FilePath(platformString: $0) } }

  /// The path of `name` in the directory `relative`.
  static func join(_ relative: [UInt8], _ name: [UInt8]) -> [UInt8] {
    relative.isEmpty ? name : relative + [UInt8(ascii: "/")] + name
  }

  /// Returns the current state of a file below the watched directory; nil if it is missing or not a regular file.
  func inspect(at relative: [UInt8]) -> FileObservation? {
    guard let root = try? watch.root.open(), let (folder, name) = place(of: relative, in: root) else { return nil }
    return inspect(at: name, in: folder)
  }

  /// Returns the current state of the file with its side files; nil if it is missing or not a regular file. `hasSides`
  /// is false if its directory was just listed and had none: this saves a call of stat(2) for each.
  func inspect(at name: [UInt8], in folder: OpenDirectory, hasSides: Bool = true) -> FileObservation? {
    guard let status = Self.status(name, in: folder), status.st_mode & S_IFMT == S_IFREG else { return nil }
    var sides: UInt64 = 0
    for (suffix, isNoisy) in suffixes where !isNoisy {
      var mixed: UInt64 = 0
      if hasSides, let side = Self.status(name + suffix, in: folder) {
        mixed = Self.mix(UInt64(bitPattern: Int64(side.st_size)), UInt64(bitPattern: Self.nanoseconds(side)))
        mixed = Self.mix(mixed, UInt64(side.st_ino))
      }
      sides = Self.mix(sides, mixed)
    }
    return FileObservation(
      size: Int64(status.st_size), modified: Self.nanoseconds(status), inode: UInt64(status.st_ino), sides: sides)
  }

  /// Lists a directory; an error if it cannot be read to its end.
  func list(_ folder: OpenDirectory) -> Result<Listing, Errno> {
    let descriptor = folder.openForListing()
    guard descriptor >= 0 else { return .failure(Errno(rawValue: errno)) }
    guard let stream = fdopendir(descriptor) else {
      let code = errno
      close(descriptor)
      return .failure(Errno(rawValue: code))
    }
    defer { closedir(stream) }
    var listing = Listing()
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        return errno == 0 ? .success(listing) : .failure(Errno(rawValue: errno))
      }
      let name = Self.name(of: entry)
      if name == [UInt8(ascii: ".")] || name == [UInt8(ascii: "."), UInt8(ascii: ".")] { continue }
      let type = Int(entry.pointee.d_type)
      if type == Int(DT_DIR) || type == Int(DT_UNKNOWN), descends(into: name), Self.isDirectory(name, in: folder) {
        listing.directories.append(name)
      } else {
        switch kind(name) {
        case .candidate where type == Int(DT_REG) || type == Int(DT_UNKNOWN): listing.files.append(name)
        case .candidate where type == Int(DT_LNK): listing.links.append(name)
        case .side(let main, isNoisy: false): listing.withSides.insert(main)
        case .transfer(let store): listing.transfers.append((store, name))
        case .candidate, .side, .other: break
        }
      }
    }
  }

  /// Whether the file is a directory, and not a link to one.
  private static func isDirectory(_ name: [UInt8], in folder: OpenDirectory) -> Bool {
    status(name, in: folder).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
  }

  private static func name(of entry: UnsafeMutablePointer<dirent>) -> [UInt8] {
    // Never copy the whole structure: the kernel's entry is shorter than the declared 256 bytes.
    guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return [] }
    let start = UnsafeRawPointer(entry) + offset
    return Array(UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self))))
  }

  private static func status(_ name: [UInt8], in folder: OpenDirectory) -> stat? {
    var status = stat()
    return withCString(name) { fstatat(folder.descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) } == 0 ? status : nil
  }

  private static func nanoseconds(_ status: stat) -> Int64 {
    Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
  }

  private static func mix(_ a: UInt64, _ b: UInt64) -> UInt64 {
    var value = (a ^ b) &* 0x9e37_79b9_7f4a_7c15
    value ^= value >> 29
    return (value &+ b) &* 0xbf58_476d_1ce4_e5b9
  }
}
